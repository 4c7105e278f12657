"""What only the requester can answer: the field at fault, the link that asks for it, and the answers a run has.

A link is signed over what it is good for (run, call, field, and the call's version), and stands nowhere: the row
knows whether it was handed out, spent, or is too old.
"""

from __future__ import annotations

import hashlib
import uuid

from django.core import signing
from django.db.models import F
from steadyhand.contract import ProvidedInput

from recovery.models import InputRequest
from recovery.rules import questions
from recovery.rules.questions import Field
from runs import definitions, vault, wall
from runs.ids import parse_id
from runs.models import Action, Run
from runs.querysets import database_now

WAITS = "user_input_required"
MOST_TRIES = 10
"""Answers that did not fit, after which a link is closed: somebody who knows is asked instead."""
_SALT = "steadyhand.question"


def waits(action: Action | None) -> bool:
    """Whether this call stands still until its requester has changed something."""
    return action is not None and action.state == "held" and action.reason_code == WAITS


def field_of(run: Run, action: Action) -> Field | None:
    """The field at fault as a form can ask for it."""
    tool = definitions.of_run(run).tools[action.tool]
    return questions.field_of(tool.input_schema, action.error_field)


def unaskable(run: Run, action: Action) -> str:
    """Why no form can ask for it, in a sentence; empty where one can."""
    if not action.error_field:
        return "the tool did not say which field is at fault."
    if field_of(run, action) is None:
        return (
            f"{action.error_field} is no single value that the tool's schema describes, so a form cannot ask for it."
        )
    return ""


def link_of(asked: InputRequest) -> str:
    """The signed part of the address."""
    return signing.dumps([asked.tenant_id.hex, asked.pk.hex, _bound(asked)], salt=_SALT)


def hand_out(tenant_id: uuid.UUID, question_id: uuid.UUID) -> str | None:
    """The link, once: None for whoever asks a second time."""
    with wall.within(tenant_id):
        still = InputRequest.objects.filter(pk=question_id, shown_at__isnull=True)
        if not still.update(shown_at=database_now()):
            return None
        return link_of(InputRequest.objects.get(pk=question_id))


def tenant_of(link: str) -> tuple[uuid.UUID, uuid.UUID, str] | None:
    """(tenant, question, what it is bound to) of a link that we signed; None for any other text."""
    try:
        tenant, question, bound = signing.loads(link, salt=_SALT)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    tenant_id, question_id = parse_id(str(uuid.UUID(tenant))), parse_id(str(uuid.UUID(question)))
    return (tenant_id, question_id, bound) if tenant_id and question_id else None


def good(question_id: uuid.UUID, bound: str) -> InputRequest | None:
    """The question behind a link that can still be answered, inside its tenant's wall; None without a reason."""
    asked = (
        InputRequest.objects.filter(
            pk=question_id, answered_at__isnull=True, expires_at__gt=database_now(), tries__lt=MOST_TRIES
        )
        .select_related("run", "action", "task")
        .first()
    )
    if asked is None or _bound(asked) != bound:
        return None
    fits = waits(asked.action) and asked.action.version == asked.action_version
    return asked if fits and asked.action.error_field == asked.field else None


def count_try(question_id: uuid.UUID) -> None:
    InputRequest.objects.filter(pk=question_id).update(tries=F("tries") + 1)


def answered(run: Run) -> list[ProvidedInput]:
    """What requesters of this run answered, for the agent that goes on with it; oldest first."""
    keys = definitions.of_run(run).keys
    rows = InputRequest.objects.filter(run=run, answered_at__isnull=False).select_related("action").order_by("id")
    return [
        ProvidedInput(
            step=row.action.step, tool=row.action.tool, field=row.field,
            value=vault.unseal(keys, row.sealed_answer) if row.sealed_answer else None,
        )
        for row in rows
    ]  # fmt: skip


def _bound(asked: InputRequest) -> str:
    facts = f"{asked.run_id}\0{asked.action_id}\0{asked.field}\0{asked.action_version}"
    return hashlib.sha256(facts.encode()).hexdigest()[:32]
