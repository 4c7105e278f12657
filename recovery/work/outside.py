"""The out-of-band sweep: each connector that can list is asked, again and again, what it did, and the record is held
against it.

One interval follows the other and overlaps it, so that nothing falls between two listings. A listing that is not
whole moves nothing forward: it is tried again, more slowly each time, and after a few failures a person is asked.
What is too long to be listed at once is listed piece by piece, one a minute.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Q
from steadyhand.connector import Listed
from steadyhand.manifest import Manifest

from recovery import gaps
from recovery.connectors import listing
from recovery.connectors.listing import CannotList, Interval
from recovery.models import OutsideSweep
from recovery.work import nudges, sending
from runs import definitions, wall
from runs.definitions import Definition
from runs.models import Workflow
from runs.querysets import read_clock
from runs.record import Actor

log = logging.getLogger(__name__)
BATCH = 100
FAILURES_UNTIL_ASKED = 3
FIRST_PAUSE = timedelta(minutes=1)
RING_AGAIN = timedelta(minutes=1)
GRACE = timedelta(seconds=30)
SWEEP = Actor("timer", "sweep")


@dataclass(frozen=True)
class Round:
    """One listing under a lease."""

    tenant_id: uuid.UUID
    sweep_id: uuid.UUID
    fence: int
    interval: Interval


def enrol(workflow: Workflow, manifest: Manifest) -> None:
    """From now on the effects of these connectors are listed, by what this version says; the wall is open."""
    now = read_clock()
    for name, connector in manifest.connectors.items():
        if connector.lists is None:
            continue
        OutsideSweep.objects.update_or_create(
            tenant_id=workflow.tenant_id, connector=name,
            defaults={"workflow": workflow, "due_at": now + timedelta(seconds=connector.lists.every_seconds)},
            create_defaults={
                "workflow": workflow, "listed_until": now,
                "due_at": now + timedelta(seconds=connector.lists.every_seconds),
            },
        )  # fmt: skip


def due(tenant_id: uuid.UUID, ring: nudges.Ring) -> int:
    """Ring for the listings that are due; a message that is lost is sent again a minute later."""
    with wall.within(tenant_id, by="timer"):
        now = read_clock()
        free = Q(lease_until__isnull=True) | Q(lease_until__lte=now)
        rows = OutsideSweep.objects.select_for_update(skip_locked=True).filter(free, due_at__lte=now)
        ids = list(rows.order_by("due_at").values_list("pk", flat=True)[:BATCH])
        OutsideSweep.objects.filter(pk__in=ids).update(due_at=now + RING_AGAIN)
    for sweep_id in ids:
        nudges.now(sweep_id, ring)
    return len(ids)


def execute(sweep_id: uuid.UUID) -> None:
    """List what is next and hold the record against it; a message that comes twice finds the lease taken."""
    tenant_id = wall.tenant_of_outside_sweep(sweep_id)
    round_ = _take(tenant_id, sweep_id) if tenant_id is not None else None
    if round_ is None:
        return None
    try:
        found, until = listing.as_far_as_fits(round_.interval)
    except CannotList as why:
        return _failed(round_, str(why))
    try:
        return _compared(round_, found, until)
    except Exception as wrong:
        # A listing that cannot be compared was none: it is told like one, or it would be tried again unseen for ever.
        log.exception("the listing of a connector could not be compared")
        return _failed(round_, f"What it lists could not be compared: {type(wrong).__name__}.")


def _take(tenant_id: uuid.UUID, sweep_id: uuid.UUID) -> Round | None:
    with wall.within(tenant_id, by="worker"):
        sweep = _locked(sweep_id)
        now = read_clock()
        if sweep is None or (sweep.lease_until is not None and sweep.lease_until > now):
            return None
        definition = definitions.of_workflow(sweep.workflow, sweep.workflow.tenant)
        interval = _interval(sweep, definition, now)
        if interval is None:
            OutsideSweep.objects.filter(pk=sweep_id).update(due_at=None)
            return None
        seconds = interval.connector.timeout_seconds * interval.listing.max_pages * (1 + listing.HALVINGS)
        lease = now + timedelta(seconds=seconds) + GRACE
        OutsideSweep.objects.filter(pk=sweep_id).update(lease_until=lease, fence=F("fence") + 1)
        return Round(tenant_id, sweep_id, sweep.fence + 1, interval)


def _interval(sweep: OutsideSweep, definition: Definition, now: datetime) -> Interval | None:
    """From a little before where the last one ended; None where this connector lists no more, or nothing is new."""
    connector = definition.manifest.connectors.get(sweep.connector)
    how = connector.lists if connector is not None else None
    if connector is None or how is None or now <= sweep.listed_until:
        return None
    since = sweep.listed_until - timedelta(seconds=how.overlap_seconds)
    return Interval(connector, how, sending.whom(definition, sweep.connector), since, now)


def _compared(round_: Round, found: list[Listed], until: datetime) -> None:
    with wall.within(round_.tenant_id, by="worker"):
        sweep = _still_ours(round_)
        if sweep is None:
            return
        gaps.compare(sweep, found, SWEEP)
        if sweep.run_id is not None:
            gaps.listed_again(sweep, SWEEP)
        _end(sweep, listed_until=until, due_at=_next_at(round_, sweep, until), failures=0, failure="")


def _next_at(round_: Round, sweep: OutsideSweep, until: datetime) -> datetime:
    """The next piece soon, where this one ended early; else when it is time again."""
    whole = timedelta(seconds=round_.interval.listing.every_seconds)
    if until == round_.interval.until:
        return read_clock() + whole
    log.warning("the effects of %s are listed only up to %s so far: too many pages", sweep.connector, until)
    return read_clock() + min(FIRST_PAUSE, whole)


def _failed(round_: Round, why: str) -> None:
    """Nothing was compared, so nothing counts as listed; it is tried again, and after a while somebody is asked."""
    with wall.within(round_.tenant_id, by="worker"):
        sweep = _still_ours(round_)
        if sweep is None:
            return
        log.warning("the effects of %s cannot be listed: %s", sweep.connector, why)
        longest = timedelta(seconds=round_.interval.listing.every_seconds)
        pause = min(FIRST_PAUSE * 2 ** min(sweep.failures, 10), longest)
        if sweep.failures + 1 >= FAILURES_UNTIL_ASKED and sweep.run_id is None:
            gaps.unlisted(sweep, why, SWEEP)
        _end(sweep, due_at=read_clock() + pause, failures=sweep.failures + 1, failure=why)


def _end(sweep: OutsideSweep, **changes: object) -> None:
    OutsideSweep.objects.filter(pk=sweep.pk).update(lease_until=None, **changes)


def _still_ours(round_: Round) -> OutsideSweep | None:
    sweep = _locked(round_.sweep_id)
    return sweep if sweep is not None and sweep.fence == round_.fence and sweep.lease_until is not None else None


def _locked(sweep_id: uuid.UUID) -> OutsideSweep | None:
    rows = OutsideSweep.objects.select_for_update(of=("self",)).select_related("workflow__tenant")
    return rows.filter(pk=sweep_id).first()
