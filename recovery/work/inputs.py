"""The requester's answer: asked for by a link, given by them or told to a colleague. It is never an approval.

What is given ends the call that waits for it. The agent reads it when it resumes and proposes a call with it: another
action, which is validated and authorized like any other (DESIGN: Action identity).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from steadyhand.paths import dig

from recovery import escalation, questions, settle
from recovery.models import HumanTask, InputRequest
from recovery.panel import Panel
from recovery.rules import questions as rules
from recovery.rules.questions import Field, Unfit
from recovery.work.wishes import Done, Order, Unusable
from runs import definitions, record, redact, vault, wall
from runs.models import Action, Run, Tenant
from runs.querysets import read_clock
from runs.record import Actor


@dataclass(frozen=True)
class Asked:
    """What the page behind a link may say: who asks, what the call does in its author's words, and the one field.

    What the tool itself said when it refused is not among it: that text may hold anything.
    """

    by: str
    field: Field
    about: str = ""


class Closed(Exception):
    """The link is not good: wrong, too old, spent, or the question is no longer open. It does not say which."""


def ask(seen: Panel, order: Order, actor: Actor) -> Done:
    """Make a link for the field at fault; the console hands it out once (`questions.hand_out`)."""
    action = seen.call
    assert action.due_at is not None  # noqa: S101  (policy: the question waits, and so has an end)
    made = InputRequest.objects.create(
        tenant_id=seen.run.tenant_id, run=seen.run, action=action, task=seen.task, field=action.error_field,
        action_version=action.version, by=order.by, expires_at=action.due_at,
    )  # fmt: skip
    return Done(
        f"A link asks for {made.field} until {made.expires_at:%Y-%m-%d %H:%M} UTC.", {"question": str(made.pk)}
    )


def provide(seen: Panel, order: Order, actor: Actor) -> Done:
    """A colleague says what the requester told them. Raises Unusable for what does not fit."""
    action, field = seen.call, questions.field_of(seen.run, seen.call)
    assert field is not None  # noqa: S101  (policy: a form can ask for it)
    assert action.due_at is not None  # noqa: S101
    try:
        value = _fitting(seen.run, action, field, order.value)
    except Unfit as wrong:
        raise Unusable("value", str(wrong)) from wrong
    asked = InputRequest(
        tenant_id=seen.run.tenant_id, run=seen.run, action=action, task=seen.task, field=action.error_field,
        action_version=action.version, by=order.by, expires_at=action.due_at,
    )  # fmt: skip
    _take(asked, seen.run, action, seen.task, value, actor, f"{order.by} answered for the requester.")
    return Done("Recorded. The agent goes on with it.", {"field": action.error_field})


def read(link: str) -> Asked:
    """What a link asks; changes nothing. Raises Closed."""
    tenant_id, question_id, bound = _signed(link)
    with wall.within(tenant_id):
        asked = questions.good(question_id, bound)
        field = questions.field_of(asked.run, asked.action) if asked is not None else None
        if field is None:
            raise Closed
        assert asked is not None  # noqa: S101  (it has a field)
        tool = definitions.of_run(asked.run).tools[asked.action.tool]
        return Asked(Tenant.objects.values_list("name", flat=True).get(pk=tenant_id), field, tool.title)


def answer(link: str, text: str, *, request_id: str) -> None:
    """Take the requester's answer, once. Raises Closed, and Unfit with a sentence that the requester may read."""
    tenant_id, question_id, bound = _signed(link)
    unfit = _answer(tenant_id, question_id, bound, text, request_id)
    if unfit is not None:
        raise unfit


def _answer(tenant_id: uuid.UUID, question_id: uuid.UUID, bound: str, text: str, request_id: str) -> Unfit | None:
    """One transaction; an answer that does not fit is counted, so that nobody can try values for ever."""
    with wall.within(tenant_id, by="person"):
        known = InputRequest.objects.filter(pk=question_id).values_list("run_id", flat=True).first()
        run = record.lock_run(known) if known is not None else None
        asked = questions.good(question_id, bound)
        field = questions.field_of(run, asked.action) if run is not None and asked is not None else None
        if run is None or asked is None or field is None:
            raise Closed
        try:
            value = _fitting(run, asked.action, field, text)
        except Unfit as wrong:
            questions.count_try(asked.pk)
            return wrong
        actor = Actor("person", "requester", request_id)
        _take(asked, run, asked.action, asked.task, value, actor, "The requester answered.")
        return None


def _signed(link: str) -> tuple[uuid.UUID, uuid.UUID, str]:
    found = questions.tenant_of(link)
    if found is None:
        raise Closed
    return found


def _fitting(run: Run, action: Action, field: Field, text: str) -> Any:
    """The value, if a call with it would be one that the tool takes and that was not refused before. Raises Unfit."""
    value, definition = rules.read(field, text), definitions.of_run(run)
    arguments = vault.unseal(definition.keys, bytes(action.sealed_arguments))
    if dig(arguments, field.path) == value:
        raise Unfit("This is what was sent before, and it was not accepted.")
    breach = definition.check_arguments(definition.tools[action.tool], rules.with_value(arguments, field.path, value))
    if breach is not None:
        raise Unfit("This does not fit. " + field.rule if field.rule else "This does not fit what is asked for.")
    return value


def _take(
    asked: InputRequest, run: Run, action: Action, task: HumanTask, value: Any, actor: Actor, words: str
) -> None:
    """Keep the answer sealed, end the call that waited, and let the run go on."""
    definition, now = definitions.of_run(run), read_clock()
    shown = _redacted(definition.tools[action.tool].sensitive_fields, asked.field, value)
    _keep(asked, now, vault.seal(definition.keys, value), shown)
    data = {"step": action.step, "tool": action.tool, "field": asked.field, "value": shown}
    record.write_event(run, "input_provided", actor, action=action, reason=words, data=data)
    record.move_action(
        action, "void", actor, run=run, kind="superseded", reason="A new call takes its place.", due_at=None
    )  # fmt: skip
    escalation.close(task, actor=actor, resolution=words)
    settle.refresh_run(run, actor)


def _keep(asked: InputRequest, now: datetime, sealed: bytes, shown: Any) -> None:
    asked.answered_at, asked.sealed_answer, asked.answer = now, sealed, shown
    if asked._state.adding:
        asked.save(force_insert=True)
    else:
        asked.save(update_fields=["answered_at", "sealed_answer", "answer"])


def _redacted(sensitive: list[str], path: str, value: Any) -> Any:
    return dig(redact.redact(rules.with_value({}, path, value), sensitive=sensitive), path)
