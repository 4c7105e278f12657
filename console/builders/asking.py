"""The link to a requester: shown once to whoever made it, and mailed where the requester is an address."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.urls import reverse

from console.builders import words
from console.builders.task import Seen
from console.pages.asking import AskedPage, LinkPage
from console.pages.common import Link
from recovery import post, questions
from recovery.models import Decision
from recovery.rules.questions import shown
from recovery.work.inputs import Asked


def link_of(decision: Decision) -> str | None:
    """The link that a decision made; None once it was handed out."""
    made = decision.snapshot.get("question")
    return questions.hand_out(decision.tenant_id, uuid.UUID(made)) if isinstance(made, str) else None


def page(seen: Seen, address: str, mailed: str) -> LinkPage:
    """What the operator sees: the address to copy, and whether mail took it."""
    task, action = seen.task, seen.action
    field = questions.field_of(task.run, action) if action is not None else None
    number, back = words.number(task.number), reverse("task", args=[task.pk])
    return LinkPage(
        crumbs=[Link("Queue", reverse("queue")), Link(number, back), Link("Ask the requester", "")],
        number=number,
        back_url=back,
        address=address,
        label=field.label if field else "one field",
        until=action.due_at if action else None,
        mailed=mailed,
    )


def mail(requester: str, by: str, address: str) -> str:
    """Send the link to a requester who is an address; says what became of it. No transaction is open."""
    try:
        validate_email(requester)
    except ValidationError:
        return "The requester is no mail address: give them the link yourself."
    if not settings.SENDS_MAIL:
        return "No mail host is set up: give them the link yourself."
    told = f"{by} cannot go on with your request before you have answered one question"
    body = f"{told}:\n\n{address}\n\nThe link works once."
    sent = post.send([requester], f"{by} needs one more thing from you", body)
    return f"Mailed to {requester}." if sent else "The mail could not be sent: give them the link yourself."


def question(asked: Asked, *, typed: str = "", error: str = "") -> AskedPage:
    """What the requester sees: the question and the one field."""
    field = asked.field
    choices = [(shown(one), shown(one)) for one in field.choices]
    if field.kind == "yes_no":
        choices = [("true", "Yes"), ("false", "No")]
    return AskedPage(
        by=asked.by,
        about=asked.about,
        label=field.label,
        hint=" ".join(part for part in (field.hint, field.rule) if part),
        choices=choices,
        longest=field.longest if field.kind == "text" else 40,
        long=field.kind == "text" and field.longest > 200,
        numeric=field.kind in ("whole", "number"),
        typed=typed,
        error=error,
    )
