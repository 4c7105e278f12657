"""The help pages, and the steps of the tour."""

from __future__ import annotations

from django.urls import reverse

from console.pages.common import Flash, Link, Step
from console.pages.help import Entry, HelpPage, TopicPage
from console.topics import BY_SLUG, TOPICS, rules

STEPS = [
    Step("pages", "Pages", "A number is work that waits there. Violet is a write whose outcome nobody knows."),
    Step("views", "Views", "The same tasks from several sides: yours, those of nobody, those whose time runs out."),
    Step("rows", "Causes", "One row is one cause with its tasks: did anything change, and is retry safe?"),
    Step("search", "Search", "Any id, task number, reference, or words of what was asked. The key / leads here."),
    Step("help", "Help", "What the words mean, and each rule by its id. The key ? lists all keys."),
]  # fmt: skip


def page(flashes: list[Flash]) -> HelpPage:
    return HelpPage(
        title="Help",
        entries=[Entry(topic.name, topic.short, topic_url(topic.slug)) for topic in TOPICS],
        rules=[Entry(name, words, rule_url(name)) for name, words in rules().items()],
        tour_url=reverse("start_tour"),
        flashes=flashes,
    )


def topic(slug: str) -> TopicPage | None:
    """None for a word that has no page."""
    found = BY_SLUG.get(slug)
    if found is None:
        return None
    see = [Link(BY_SLUG[other].name, topic_url(other)) for other in found.see]
    return TopicPage(found.name, _crumbs(found.name), [found.short, *found.more], see)


def rule(name: str) -> TopicPage | None:
    """None for an id that no rule of the table has."""
    words = rules().get(name)
    if words is None:
        return None
    title, about = f"Rule {name}", BY_SLUG["rules"]
    return TopicPage(title, _crumbs(title), [words], [Link(about.name, topic_url(about.slug))])


def topic_url(slug: str) -> str:
    return reverse("help_topic", args=[slug])


def rule_url(name: str) -> str:
    return reverse("help_rule", args=[name])


def _crumbs(title: str) -> list[Link]:
    return [Link("Help", reverse("help")), Link(title, "")]
