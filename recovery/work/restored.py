"""After a restore from an older backup the record has forgotten what was sent since: nothing leaves unseen (F068).

Every open call that may have been sent meanwhile counts as sent with an unknown outcome: one more try is written down
for it, and its bounds run from now on. The numbers of leases jump, so that what comes under an old one is late. Every
open run becomes a person's, and a switch keeps everything from leaving until somebody lifts it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Q

from recovery import leases, settle
from recovery.models import Decision
from recovery.work import stops
from runs import record, wall
from runs.models import Action, Attempt, Event, Person, Run
from runs.querysets import database_now, read_clock
from runs.record import Actor
from runs.states import RUN_OPEN, advance, may_move

EPOCH = 1_000_000
"""How far a fence jumps: further than one row has ever been leased."""
LAYER = "after_restore"
KIND = "restored"
LOST = "The record was restored from a backup; whether this was sent since then is to be found out."
HANDED_OVER = ("planning", "executing", "waiting_for_tool", "verifying", "recovering")


class Unusable(Exception):
    """The order cannot be carried out; the message says why."""


@dataclass(frozen=True)
class Restored:
    """How many runs were handed to a person, calls count as sent, and approvals still wait."""

    runs: int
    calls: int
    approvals: int


def after_restore(by: Person, tenant_id: uuid.UUID, *, taken_at: datetime, request_id: str = "") -> Restored:
    """Make one tenant safe after its database was restored as it stood at `taken_at`; a second time changes nothing.

    Raises Unusable for a time that has not come yet, and stops.Refused without the right to stop everything.
    """
    with wall.within(tenant_id):
        if taken_at > read_clock():
            raise Unusable("the backup cannot have been taken in the future.")
    reason = f"The database was restored from a backup of {taken_at:%Y-%m-%d %H:%M:%S} UTC."
    stops.set_stop(by, tenant_id, scope="everything", mode="halt", reason=reason, request_id=request_id)
    actor = Actor("person", str(by), request_id)
    counted = [_one_run(tenant_id, run_id, taken_at, reason, actor) for run_id in _runs(tenant_id)]
    done = [one for one in counted if one is not None]
    return Restored(len(done), sum(calls for calls, _ in done), sum(approvals for _, approvals in done))


def _runs(tenant_id: uuid.UUID) -> Iterator[uuid.UUID]:
    """Open runs, and ended ones with a call that is not settled."""
    with wall.within(tenant_id):
        unsettled = Action.objects.filter(settled_at__isnull=True).values("run_id")
        ids = list(Run.objects.filter(Q(state__in=RUN_OPEN) | Q(pk__in=unsettled)).values_list("pk", flat=True))
    yield from ids


def _one_run(
    tenant_id: uuid.UUID, run_id: uuid.UUID, taken_at: datetime, reason: str, actor: Actor
) -> tuple[int, int] | None:
    """(calls that count as sent, approvals that wait) of one run; None for a run that was done before."""
    with wall.within(tenant_id, by="worker"):
        run = record.lock_run(run_id)
        backup = taken_at.isoformat()
        if run is None or Event.objects.filter(run=run, kind=KIND, data__backup=backup).exists():
            return None
        _forget_what_was_under_way(run)
        calls = [action for action in _may_have_been_sent(run) if _count_as_sent(run, action, actor)]
        leases.expire_of_run(run)
        run.refresh_from_db()
        if run.state in HANDED_OVER:
            settle.escalate_run(run, "stopped_by_operator", actor)
        record.write_event(run, KIND, actor, reason=reason, data={"backup": backup, "calls": len(calls)})
        return len(calls), run.actions.filter(state="awaiting_approval").count()


def _forget_what_was_under_way(run: Run) -> None:
    """Leases that were held at the time of the backup belong to nobody; no fence of theirs is ever reached again."""
    Action.objects.filter(run=run, settled_at__isnull=True).update(fence=F("fence") + EPOCH)
    Decision.objects.filter(run=run, state__in=("requested", "running")).update(fence=F("fence") + EPOCH)
    Attempt.objects.filter(run=run, ended_at__isnull=True).update(lease_until=database_now())
    for decision in Decision.objects.filter(run=run, state__in=("requested", "running")):
        advance(decision, machine="decision", to="refused", ended_at=read_clock(), lease_until=None, result=LOST)


def _may_have_been_sent(run: Run) -> list[Action]:
    """Whatever is neither settled nor in flight by the record; in flight it counts as sent already."""
    open_calls = run.actions.filter(settled_at__isnull=True).exclude(role="item").exclude(state="permitted")
    return list(open_calls.order_by("id"))


def _count_as_sent(run: Run, action: Action, actor: Actor) -> bool:
    """One more try, whose lease is over: the next thing that happens to it is a look, or a person."""
    if action.state == "probing":
        record.move_action(action, "probe_failed", actor, run=run, kind="look_lost", due_at=None)
    if not may_move("action", action.state, "permitted", "worker"):
        return False
    record.grant_attempt(action, run=run, layer=LAYER, lease_seconds=0, key=action.idempotency_key, actor=actor)
    Run.objects.filter(pk=run.pk).update(in_flight=F("in_flight") + 1, version=F("version") + 1)
    run.refresh_from_db()
    return True
