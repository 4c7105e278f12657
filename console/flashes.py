"""What is said once after an act: left in the session by the verb, shown by the next page."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.messages import get_messages
from django.http import HttpRequest

from console import looks
from console.pages.common import Flash

_CUT = "\n"


def leave(request: HttpRequest, notice: str, title: str, text: str = "") -> None:
    """Keep a notice for the next page; `notice` is a key of looks.NOTICE."""
    messages.add_message(request, messages.INFO, f"{title}{_CUT}{text}", extra_tags=notice)


def of(request: HttpRequest) -> list[Flash]:
    """The notices that wait for this person; reading them uses them up."""
    return [_flash(str(message), message.extra_tags or "") for message in get_messages(request)]


def _flash(message: str, notice: str) -> Flash:
    title, _, text = message.partition(_CUT)
    return Flash(looks.NOTICE.get(notice, looks.NOTICE["info"]), title, text)
