"""Carrying out a bulk operation: pass by pass under a lease, each item once, by the verb's own function.

The row is the work. A pass that is killed leaves items that are still pending; a second worker finds the lease taken,
and one whose lease ran out finds another's fence and begins nothing. An item and its decision are committed together,
and the decision's key is the item's: nothing is lost and nothing is done twice.
"""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from recovery import crashpoints, permissions
from recovery.models import BulkItem, BulkOperation, Decision, HumanTask
from recovery.rules import bulk as rules
from recovery.work import bulk_sight, decisions, nudges, together
from recovery.work.wishes import Order, Overtaken, Refused, Unusable
from runs import gathering, record, wall
from runs.models import Evidence, Run
from runs.querysets import database_now, read_clock
from runs.record import RULE
from runs.states import advance

LEASE = timedelta(minutes=2)
PAUSE = timedelta(seconds=1)
RING_AGAIN = timedelta(seconds=4)
CHUNK = 50
"""Items in one transaction: few enough that somebody who suspends it does not wait for long."""
TOGETHER = ("reconcile", "claim", "release", "assign", "snooze", "comment")
"""Verbs that write little and only to their own task: many of them share a transaction. Others have one each."""
SIGHTS_A_PASS = 500
BEGUN = ("running", "suspended", "cancelled")
"""States in which an answer may still come in."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Lease:
    """A worker's right to one operation."""

    tenant_id: uuid.UUID
    operation_id: uuid.UUID
    fence: int


@dataclass(frozen=True)
class Outcome:
    """What came of an item that ends now."""

    state: str
    code: str
    words: str


def due(tenant_id: uuid.UUID, ring: nudges.Ring) -> int:
    """Ring for the operations of which something is due; a message that is lost is sent again."""
    with wall.within(tenant_id, by="timer"):
        now = read_clock()
        free = Q(lease_until__isnull=True) | Q(lease_until__lte=now)
        found = BulkOperation.objects.select_for_update(skip_locked=True).filter(free, due_at__lte=now)
        ids = list(found.order_by("due_at").values_list("pk", flat=True)[:100])
        BulkOperation.objects.filter(pk__in=ids).update(due_at=now + RING_AGAIN)
    for operation_id in ids:
        nudges.now(operation_id, ring)
    return len(ids)


def execute(operation_id: uuid.UUID, *, ring: nudges.Ring | nudges.Peal) -> None:
    """One pass; a message that comes twice finds the lease taken, or nothing to do."""
    tenant_id = wall.tenant_of_bulk(operation_id)
    lease = _take(tenant_id, operation_id) if tenant_id is not None else None
    if lease is None:
        return
    state = _state(lease)
    if state == "created":
        bulk_sight.look(lease.tenant_id, operation_id, most=SIGHTS_A_PASS)
    else:
        _collect(lease)
        if state == "running":
            _begin(lease, ring)
    _rest(lease)


def _take(tenant_id: uuid.UUID, operation_id: uuid.UUID) -> Lease | None:
    with wall.within(tenant_id, by="worker"):
        operation = BulkOperation.objects.select_for_update(no_key=True).get(pk=operation_id)
        taken = operation.lease_until is not None and operation.lease_until > read_clock()
        if operation.due_at is None or taken:
            return None
        BulkOperation.objects.filter(pk=operation_id).update(
            fence=operation.fence + 1, lease_until=database_now() + LEASE
        )
        return Lease(tenant_id, operation_id, operation.fence + 1)


def _state(lease: Lease) -> str:
    with wall.within(lease.tenant_id):
        return BulkOperation.objects.values_list("state", flat=True).get(pk=lease.operation_id)


def _ours(lease: Lease, *states: str) -> BulkOperation | None:
    """The operation, locked, if the lease on it still counts and it is in one of these states."""
    still = BulkOperation.objects.select_for_update(no_key=True, of=("self",)).select_related("started_by")
    return still.filter(pk=lease.operation_id, fence=lease.fence, state__in=states or BEGUN).first()


def _collect(lease: Lease) -> None:
    """Items whose decision a worker has ended meanwhile end as it did, also after the operation was stopped."""
    while True:
        with wall.within(lease.tenant_id, by="worker"):
            operation = _ours(lease)
            items = list(_answered(operation)[: 10 * CHUNK]) if operation is not None else []
            with gathering.gathered():
                for item in items:
                    assert item.decision is not None  # noqa: S101  (they were chosen for it)
                    _end(item, _of_decision(item.decision, item.verdict))  # type: ignore[attr-defined]
            if operation is not None:
                _check(operation)
        if not items:
            return


def _answered(operation: BulkOperation) -> QuerySet[BulkItem]:
    """Pending items whose decision has ended, with what the look behind it said."""
    looked = (
        Evidence.objects.filter(action=OuterRef("task__action"), kind="probe").order_by("-id").values("verdict")[:1]
    )
    ended = operation.items.filter(state="pending", decision__state__in=("done", "failed", "refused"))
    return ended.select_related("decision").annotate(verdict=Subquery(looked.values("verdict")[:1])).order_by("place")


def _of_decision(decision: Decision, verdict: str | None) -> Outcome:
    if decision.state != "done":
        return Outcome("failed", decision.state, decision.result)
    if decision.verb in rules.LOOKED_UP and verdict in (None, "probe_failed"):
        return Outcome("failed", "probe_failed", f"{decision.result} Nothing was learned.")
    return Outcome("done", verdict or decision.rule or "done", decision.result)


def _begin(lease: Lease, ring: nudges.Ring | nudges.Peal) -> None:
    """As many items as the rate lets begin now, the canary alone first."""
    while True:
        with wall.within(lease.tenant_id, by="worker"):
            operation = _ours(lease, "running")
            items = _next(operation) if operation is not None and _may(operation) else []
        if operation is None or not items:
            return
        handled = _act_together(lease, items, ring) if operation.verb in TOGETHER else set()
        for item in items:
            if item.pk not in handled:
                _act_alone(lease, operation, item, ring)
        with wall.within(lease.tenant_id, by="worker"):
            operation = _ours(lease, "running")
            if operation is not None:
                _check(operation)
        crashpoints.point("B1")


def _may(operation: BulkOperation) -> bool:
    """Whether the person in whose name it runs may still do this; else it is suspended (I13)."""
    by = operation.started_by
    assert by is not None  # noqa: S101  (a running one was started by somebody: constraint)
    abilities = permissions.grants(by).get(operation.tenant_id, frozenset())
    why = bulk_sight.may_go_on(operation, by, abilities, operation.items.count())
    if why:
        _suspend(operation, why)
    return not why


def _next(operation: BulkOperation) -> list[BulkItem]:
    """The next items; none while a canary's answer is awaited, or the rate is used up."""
    now = read_clock()
    told = operation.items.aggregate(
        last_minute=Count("pk", filter=Q(begun_at__gt=now - timedelta(minutes=1))),
        last_moments=Count("pk", filter=Q(begun_at__gt=now - timedelta(seconds=rules.MOMENT))),
        canary=Count("pk", filter=Q(canary=True, state="pending")),
    )
    waiting = operation.items.filter(state="pending", begun_at__isnull=True).order_by("place")
    most = rules.begin_now(operation.rate, last_minute=told["last_minute"], last_moments=told["last_moments"])
    if told["canary"]:
        # What is done at once shows at once whether to go on; what is looked up is asked together and awaited.
        most = min(most, CHUNK if operation.verb in rules.LOOKED_UP else 1)
        return list(waiting.filter(canary=True).select_related("task")[:most])
    return list(waiting.select_related("task")[: min(most, CHUNK)])


def _act_together(lease: Lease, items: Sequence[BulkItem], ring: nudges.Ring | nudges.Peal) -> set[uuid.UUID]:
    """Items of runs that nobody else has locked, in one transaction; gives those that had their turn."""
    by_run: dict[uuid.UUID, list[uuid.UUID]] = defaultdict(list)
    for item in items:
        by_run[item.task.run_id].append(item.pk)
    rung: list[uuid.UUID] = []

    def handle(run: Run) -> Iterable[uuid.UUID]:
        key = ("bulk", lease)
        standing, fresh = gathering.once(key, lambda: _fresh(lease, [item.pk for item in items]))
        if standing is not None:
            for pk in by_run[run.pk]:
                _turn(standing, fresh[pk], run, rung.append)
                yield pk

    calls = [item.task.action_id for item in items if item.task.action_id is not None]
    done = together.in_batches(lease.tenant_id, by_run, lambda run: list(handle(run)), by="person", calls=calls)
    nudges.each(rung, ring)
    return set(done)


def _fresh(lease: Lease, ids: Sequence[uuid.UUID]) -> tuple[BulkOperation | None, dict[uuid.UUID, BulkItem]]:
    """The operation if it is still this worker's, and the items as they stand now."""
    return _ours(lease, "running"), {item.pk: item for item in BulkItem.objects.filter(pk__among=ids)}


def _act_alone(lease: Lease, operation: BulkOperation, item: BulkItem, ring: nudges.Ring | nudges.Peal) -> None:
    """One item in a transaction of its own; what goes wrong in it is its own outcome."""
    try:
        with wall.within(lease.tenant_id, by="person"):
            run = next(iter(record.lock_family(item.task.run_id)[-1:]))
            standing, fresh = _fresh(lease, [item.pk])
            if standing is not None:
                _turn(standing, fresh[item.pk], run, ring)
        return
    except Refused as why:
        outcome = Outcome("skipped", why.rule, rules.plain(str(why)))
    except Unusable as wrong:
        outcome = Outcome("failed", "unusable", str(wrong))
    except Exception as wrong:
        log.exception("an item of bulk operation %s could not be carried out", operation.pk)
        outcome = Outcome("failed", "error", f"It broke ({type(wrong).__name__}). Nothing was recorded or sent.")
    with wall.within(lease.tenant_id, by="worker"):
        standing, fresh = _fresh(lease, [item.pk])
        if standing is not None and fresh[item.pk].state == "pending":
            _end(fresh[item.pk], outcome, begun_at=read_clock())


def _turn(operation: BulkOperation, item: BulkItem, run: Run, ring: nudges.Ring) -> None:
    """The turn of one item: everything is checked again, and the verb's own function decides (I13, U01)."""
    if item.state != "pending" or item.begun_at is not None:
        return
    verb, now = operation.verb, read_clock()
    decision, refusal = decisions.locked(
        verb, _order(operation, item), run, task=_kept(run, item.task_id),
        ring=ring if verb in rules.LOOKED_UP else None,
    )  # fmt: skip
    gathering.flush()  # the decision stands before the item names it
    if decision is None:
        _end(item, _of_refusal(refusal), begun_at=now)
    elif decision.state == "done":
        _end(item, _of_decision(decision, None), begun_at=now, decision=decision)
    else:
        gathering.change(item, {"state": "pending", "begun_at": None}, {"begun_at": now, "decision": decision})


def _order(operation: BulkOperation, item: BulkItem) -> Order:
    more: dict[str, Any] = dict(operation.more)
    if "until" in more:
        more["until"] = datetime.fromisoformat(more["until"])
    assert operation.started_by is not None  # noqa: S101  (constraint)
    return Order(
        task_id=item.task_id, by=operation.started_by, reason=operation.reason, evidence_hash=item.evidence_hash,
        version=item.task_version, key=item.pk.hex, request_id=f"bulk-{operation.pk.hex}", listed=True, **more,
    )  # fmt: skip


def _kept(run: Run, task_id: uuid.UUID) -> HumanTask | None:
    """The task as it was read ahead with its run and its call; None lets the verb read it."""
    if not gathering.is_open():
        return None
    return next((one for one in gathering.rows(HumanTask, "run_id", run.pk) if one.pk == task_id), None)


def _of_refusal(refusal: Exception | None) -> Outcome:
    if isinstance(refusal, Overtaken):
        return Outcome("skipped", "changed", refusal.recorded.replace(" Your click changed and sent nothing.", ""))
    rule = refusal.rule if isinstance(refusal, Refused) else "refused"
    return Outcome("skipped", rule, rules.plain(str(refusal)))


def _end(item: BulkItem, outcome: Outcome, **also: Any) -> None:
    advance(
        item, machine="bulk_item", to=outcome.state, code=outcome.code[:40], words=outcome.words,
        ended_at=read_clock(), **also,
    )  # fmt: skip


def _check(operation: BulkOperation) -> None:
    """Suspend it where something unexpected came of its canary, or too much failed; end it where nothing is left."""
    if operation.state == "cancelled":
        return None
    total, pending = operation.items.count(), operation.items.filter(state="pending").count()
    if not pending:
        return _finish(operation, total)
    if operation.state != "running":
        return None
    since = operation.items.filter(ended_at__gte=operation.changed_at, begun_at__isnull=False)
    odd = since.filter(canary=True).exclude(state="done").order_by("place").select_related("task").first()
    failed = since.filter(state="failed").count()
    if odd is not None:
        _suspend(operation, f"The canary met something unexpected at T-{odd.task.number}: {odd.words}")
    elif failed >= operation.stop_after:
        what = "1 item" if failed == 1 else f"{failed} items"
        _suspend(operation, f"{what} failed, the limit is {operation.stop_after}.")
    return None


def _suspend(operation: BulkOperation, why: str) -> None:
    _move(operation, "suspended", "bulk_suspended", why)


def _finish(operation: BulkOperation, total: int) -> None:
    to = rules.ended(done=operation.items.filter(state="done").count(), total=total)
    _move(operation, to, "bulk_ended", "Every item has its outcome.", ended_at=read_clock())


def _move(operation: BulkOperation, to: str, kind: str, why: str, **changes: Any) -> None:
    advance(
        operation, machine="bulk", to=to, changed_at=read_clock(), changed_by=None, why=why, moved_key="", **changes
    )
    record.write_event(
        None, kind, RULE, tenant_id=operation.tenant_id, to_state=to, reason=why,
        data={"operation": str(operation.pk), "verb": operation.verb, **counts(operation)},
    )  # fmt: skip


def counts(operation: BulkOperation) -> dict[str, int]:
    """How many items are in each state."""
    return dict(operation.items.values_list("state").annotate(n=Count("pk")))


def _rest(lease: Lease) -> None:
    """The lease is given back, and the next look at it is due soon, or never where nothing is left to be done."""
    with wall.within(lease.tenant_id, by="worker"):
        operation = BulkOperation.objects.select_for_update(no_key=True).get(pk=lease.operation_id)
        if operation.fence != lease.fence:
            return
        pending = operation.items.filter(state="pending")
        left = {
            "created": operation.items.filter(kind=""),
            "running": pending,
        }.get(operation.state, pending.filter(begun_at__isnull=False))
        due_at = read_clock() + PAUSE if left.exists() else None
        BulkOperation.objects.filter(pk=operation.pk).update(lease_until=None, due_at=due_at)
