"""What a person does with a bulk operation: freeze a list, start it, suspend it, let it go on, stop it.

A list is frozen once and acted on exactly (U01). The work is done by recovery/work/bulk_run.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError
from django.db.models import Count

from recovery import permissions
from recovery.models import BulkItem, BulkOperation, HumanTask
from recovery.rules import bulk as rules
from recovery.rules.policy import LABELS
from recovery.work import bulk_sight, nudges
from recovery.work.decisions import NEEDS_REASON
from runs import gathering, record, redact, wall
from runs.models import Person
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import advance

FIRST = 100
"""Items that the dry run looks at before the form's answer is drawn; a worker looks at the others."""


class NoSuchOperation(Exception):
    """There is no such operation for this person."""


class Refused(Exception):
    """Nothing was changed; the message says why, `field` which part of the form it concerns."""

    def __init__(self, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True)
class Wish:
    """A list that is to be frozen. `key`: the form's one-time key; `words`, `address`: the selection."""

    verb: str
    task_ids: list[uuid.UUID]
    words: str
    address: str
    key: str
    versions: str = ""


@dataclass(frozen=True)
class Pace:
    """How an operation is to run: its reason, how many go first, how many a minute, after how many failures it stops.

    `more`: what the verb asks for besides ("until" as ISO, "to" as a person's id).
    """

    reason: str
    canary: int
    rate: int
    stop_after: int
    more: dict[str, Any] = field(default_factory=dict)


def freeze(by: Person, tenant_id: uuid.UUID, wish: Wish, *, ring: nudges.Ring, request_id: str = "") -> BulkOperation:
    """The operation with its items and its dry run; a second click of the same form gets the same one (U07).

    Raises Refused: no right, no task, too many.
    """
    try:
        operation = _freeze(by, tenant_id, wish, request_id)
    except IntegrityError:
        operation = None  # the other click of the same button was faster
    if operation is None:
        return _by_key(by, tenant_id, wish)
    if bulk_sight.look(tenant_id, operation.pk, most=FIRST):
        nudges.now(operation.pk, ring)
    return operation


def _by_key(by: Person, tenant_id: uuid.UUID, wish: Wish) -> BulkOperation:
    with wall.within(tenant_id):
        before = BulkOperation.objects.filter(key=wish.key, by=by, verb=wish.verb).first()
    if before is None:
        raise Refused("This form was sent already, for something else. Open it again. Nothing was frozen.")
    return before


def _freeze(by: Person, tenant_id: uuid.UUID, wish: Wish, request_id: str) -> BulkOperation | None:
    _check_right(by, tenant_id, wish.verb, len(wish.task_ids))
    with wall.within(tenant_id, by="person"):
        if BulkOperation.objects.filter(key=wish.key).exists():
            return None
        tasks = HumanTask.objects.filter(pk__among=wish.task_ids)
        found = {row[0]: row[1:] for row in tasks.values_list("pk", "version", "run__workflow_id")}
        listed = [one for one in dict.fromkeys(wish.task_ids) if one in found]
        if not listed:
            raise Refused("There is no task in this list any more. Nothing was frozen.")
        operation = BulkOperation.objects.create(
            tenant_id=tenant_id, verb=wish.verb, key=wish.key, by=by, words=wish.words, address=wish.address,
            versions=wish.versions, due_at=read_clock(), changed_by=by,
        )  # fmt: skip
        BulkItem.objects.bulk_create(
            BulkItem(
                tenant_id=tenant_id, operation=operation, place=place, task_id=task_id,
                task_version=found[task_id][0], workflow_id=found[task_id][1],
            )
            for place, task_id in enumerate(listed, start=1)
        )  # fmt: skip
        _note(operation, "bulk_frozen", by, request_id, items=len(listed), selection=wish.words)
    return operation


def start(
    by: Person, tenant_id: uuid.UUID, operation_id: uuid.UUID, pace: Pace, *, version: int, key: str,
    ring: nudges.Ring, request_id: str = "",
) -> BulkOperation:  # fmt: skip
    """Let it run. What the dry run did not find ready is skipped with its cause; the others have their turn."""
    with wall.within(tenant_id, by="person"):
        operation = _locked(operation_id)
        if operation.moved_key == key:
            return operation
        _check_state(operation, ("created",), version)
        counts = dict(operation.items.values_list("kind").annotate(n=Count("pk")))
        _check_right(by, tenant_id, operation.verb, sum(counts.values()))
        _check_pace(operation, pace, counts)
        now = read_clock()
        advance(
            operation, machine="bulk", to="running", reason=redact.clean_text(pace.reason), more=pace.more,
            canary=pace.canary, rate=pace.rate, stop_after=pace.stop_after, started_by=by, started_at=now,
            changed_at=now, changed_by=by, why="", moved_key=key, due_at=now,
        )  # fmt: skip
        _leave_out(operation)
        first = operation.items.filter(kind="will_run").order_by("place").values("pk")[: pace.canary]
        operation.items.filter(pk__in=list(first.values_list("pk", flat=True))).update(canary=True)
        _note(operation, "bulk_started", by, request_id, reason=pace.reason, canary=pace.canary, rate=pace.rate)
    nudges.now(operation_id, ring)
    return operation


def _leave_out(operation: BulkOperation) -> None:
    """What the dry run found not ready is not tried: only what was shown as ready is run."""
    with gathering.gathered():
        now = read_clock()
        for item in list(operation.items.filter(state="pending").exclude(kind="will_run")):
            advance(item, machine="bulk_item", to="skipped", code=item.kind, words=item.sentence, ended_at=now)


def suspend(
    by: Person, tenant_id: uuid.UUID, operation_id: uuid.UUID, *, version: int, key: str, request_id: str = ""
) -> BulkOperation:
    """Nothing more is begun; what is under way comes to its end."""
    return _move(by, tenant_id, operation_id, "suspended", "bulk_suspended", version, key, request_id)


def resume(
    by: Person, tenant_id: uuid.UUID, operation_id: uuid.UUID, *, version: int, key: str, ring: nudges.Ring,
    request_id: str = "",
) -> BulkOperation:  # fmt: skip
    """Go on with what is pending; failures are counted anew."""
    moved = _move(by, tenant_id, operation_id, "running", "bulk_resumed", version, key, request_id)
    nudges.now(operation_id, ring)
    return moved


def stop(
    by: Person, tenant_id: uuid.UUID, operation_id: uuid.UUID, *, version: int, key: str, request_id: str = ""
) -> BulkOperation:
    """The end of it: nothing more is begun. It undoes nothing."""
    return _move(by, tenant_id, operation_id, "cancelled", "bulk_stopped", version, key, request_id)


_FROM = {"suspended": ("running",), "running": ("suspended",), "cancelled": ("created", "running", "suspended")}
_WORDS = {"suspended": "suspended it", "running": "let it go on", "cancelled": "stopped it"}


def _move(
    by: Person, tenant_id: uuid.UUID, operation_id: uuid.UUID, to: str, kind: str, version: int, key: str,
    request_id: str,
) -> BulkOperation:  # fmt: skip
    with wall.within(tenant_id, by="person"):
        operation = _locked(operation_id)
        if operation.moved_key == key:
            return operation
        _check_right(by, tenant_id, operation.verb, operation.items.count())
        _check_state(operation, _FROM[to], version)
        now = read_clock()
        ending: dict[str, Any] = {"ended_at": now} if to == "cancelled" else {}
        advance(
            operation, machine="bulk", to=to, changed_at=now, changed_by=by, why="", moved_key=key, due_at=now,
            **ending,
        )  # fmt: skip
        _note(operation, kind, by, request_id)
    return operation


def _locked(operation_id: uuid.UUID) -> BulkOperation:
    found = BulkOperation.objects.select_for_update(no_key=True).filter(pk=operation_id).first()
    if found is None:
        raise NoSuchOperation
    return found


def _check_right(by: Person, tenant_id: uuid.UUID, verb: str, items: int) -> None:
    if verb not in rules.VERBS:
        raise Refused(f"This is never done in bulk: {rules.ONE_BY_ONE.get(verb, 'there is no such verb.')}")
    if items > rules.MOST_ITEMS:
        raise Refused(f"A list holds at most {rules.MOST_ITEMS:,} tasks. Narrow the selection. Nothing was frozen.")
    why = rules.refusal(permissions.grants(by).get(tenant_id, frozenset()), verb, items)
    if why:
        raise Refused(why, "right")


def _check_state(operation: BulkOperation, states: Iterable[str], version: int) -> None:
    if operation.state in states and operation.version == version:
        return
    who = str(operation.changed_by) if operation.changed_by else "A rule"
    what = _WORDS.get(operation.state, "moved it")
    raise Refused(f"{who} {what} at {operation.changed_at:%H:%M:%S} UTC. Your click changed nothing.", "state")


def _check_pace(operation: BulkOperation, pace: Pace, counts: dict[str, int]) -> None:
    if counts.get("", 0):
        raise Refused("The dry run is not through yet. Nothing was started.", "state")
    if not counts.get("will_run", 0):
        raise Refused("No task of this list would run. Nothing was started.", "state")
    if operation.verb in (*NEEDS_REASON, "comment") and not pace.reason.strip():
        raise Refused("Say why, in a few words.", "reason")
    if not 0 <= pace.canary <= rules.MOST_ITEMS:
        raise Refused("Write how many go first: a whole number, 0 for none.", "canary")
    if not 1 <= pace.rate <= rules.MOST_A_MINUTE:
        raise Refused(f"Write a rate from 1 to {rules.MOST_A_MINUTE:,} a minute.", "rate")
    if not 1 <= pace.stop_after <= rules.MOST_ITEMS:
        raise Refused("Write after how many failures it stops: at least 1.", "stop_after")


def _note(operation: BulkOperation, kind: str, by: Person, request_id: str, **more: Any) -> None:
    """The life of an operation stands in the history of its tenant."""
    reason = str(more.pop("reason", "")) or f"{LABELS[operation.verb]}: {operation.words}"
    data = {"operation": str(operation.pk), "verb": operation.verb, **more}
    record.write_event(
        None, kind, Actor("person", str(by), request_id), tenant_id=operation.tenant_id, to_state=operation.state,
        reason=reason, data=data,
    )  # fmt: skip
