"""Examples of the help pages, as they are built."""

from console.builders import help as build
from console.pages.help import HelpPage, TopicPage


def help_page() -> HelpPage:
    return build.page([])


def topic_page() -> TopicPage:
    page = build.topic("unknown-outcome")
    assert page is not None
    return page
