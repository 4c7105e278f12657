"""What the clock brings: leases that ran out, looks that are due, claims that decayed, messages that were lost.

Tenant by tenant, five hundred runs to a short transaction; a run that somebody else has locked is skipped and found
again a few seconds later, so two sweeps at once do no harm (F070).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from recovery import case as cases
from recovery import leases, settle
from recovery.models import Decision, HumanTask
from recovery.rules.decide import Action as Answer
from recovery.work import approvals, bulk_run, checks, nudges, orders, outside, together, upkeep
from runs import gathering, record, wall
from runs.models import Action, Attempt, Run
from runs.querysets import database_now, read_clock
from runs.record import TIMER
from runs.states import advance

A_PASS = 20 * together.BATCH
"""What a step takes on at once for a tenant; the rest waits for the next pass."""
AGENTS_TURN = ("planning", "executing", "recovering")
NUDGE_AGAIN = timedelta(seconds=1)
"""How old an order is that nobody has begun when it is rung again; `app_due_tenants()` knows it too. A message that
was only slow finds nothing to do."""

Work = Callable[[uuid.UUID, nudges.Ring], int]
"""One step of a pass for one tenant; returns how many rows it handled."""
Find = Callable[[], Iterable[uuid.UUID]]
Handle = Callable[[Run, nudges.Ring], int]


def sweep(*, ring: nudges.Ring) -> dict[str, int]:
    """One pass over every tenant with something due; returns how many rows each step handled."""
    done = dict.fromkeys(STEPS, 0)
    for tenant_id in wall.due_tenants():
        for name, work in STEPS.items():
            done[name] += work(tenant_id, ring)
    return done


def by_run(find: Find, handle: Handle) -> Work:
    """A step over runs: `find` gives the ids of those with something due, `handle` gets each of them locked.

    Many runs share a transaction and its statements (runs/gathering.py). `handle` need not know; what it reads beside
    what recovery/papers.py reads ahead costs a statement for each run.
    """

    def work(tenant_id: uuid.UUID, ring: nudges.Ring) -> int:
        rung: list[uuid.UUID] = []
        with wall.within(tenant_id):
            found = list(find())
        done = together.in_batches(tenant_id, found, lambda run: [handle(run, rung.append)], by="timer")
        nudges.each(rung, ring)
        return sum(done)

    return work


def _runs_with_expired_leases() -> Iterable[uuid.UUID]:
    expired = Attempt.objects.filter(ended_at__isnull=True, lease_until__lte=database_now())
    return expired.order_by("lease_until").values_list("run_id", flat=True).distinct()[:A_PASS]


def _runs_with_due_actions() -> Iterable[uuid.UUID]:
    due = Action.objects.filter(due_at__lte=database_now())
    return due.order_by("due_at").values_list("run_id", flat=True).distinct()[:A_PASS]


def _expire_leases(run: Run, _: nudges.Ring) -> int:
    return leases.expire_of_run(run)


def _runs_out_of_time() -> Iterable[uuid.UUID]:
    """Runs that nobody would ever touch again: their agent is gone and their time is used up (I2, I16)."""
    over = Q(elapses_at__lte=database_now()) | Q(deadline_at__lte=database_now())
    runs = Run.objects.filter(over, ended_at__isnull=True, state__in=AGENTS_TURN)
    return runs.order_by("elapses_at").values_list("pk", flat=True)[:A_PASS]


def _stop_overrun(run: Run, _: nudges.Ring) -> int:
    if run.state not in AGENTS_TURN:
        return 0
    late = run.deadline_at is not None and run.deadline_at <= read_clock()
    settle.escalate_run(run, "deadline_exceeded" if late else "time_budget_exhausted", TIMER)
    return 1


def _runs_with_decayed_claims() -> Iterable[uuid.UUID]:
    return HumanTask.objects.filter(_decayed()).order_by("claimed_until").values_list("run_id", flat=True)[:A_PASS]


def _decayed() -> Q:
    return Q(state="claimed", claimed_until__lte=database_now())


def _with_claimers(tasks: QuerySet[HumanTask]) -> QuerySet[HumanTask]:
    return tasks.filter(_decayed()).select_related("claimed_by")


def _is_over(time: datetime | None) -> bool:
    return time is not None and time <= read_clock()


def _due_actions(run: Run, ring: nudges.Ring) -> int:
    calls = gathering.rows(Action, "run_id", run.pk, lambda found: found.filter(due_at__lte=database_now()))
    due = [action for action in calls if _is_over(action.due_at)]
    for action in due:
        act_on_due(run, action, ring)
    return len(due)


def act_on_due(run: Run, action: Action, ring: nudges.Ring) -> None:
    """A look or a recount that is due is ordered; a due retry is announced, for the agent's runner sends it.

    An approval that nobody gave in time ends its call (F127); a question that nobody answered becomes a colleague's.
    """
    if action.state == "awaiting_approval":
        return approvals.expire(run, action)
    if action.state == "held" and action.reason_code == "user_input_required":
        return approvals.give_up_waiting(run, action)
    answer = cases.read(run, action).answer
    if answer.action is Answer.PROBE or action.state == "succeeded":
        orders.order_look(action, actor=TIMER, ring=ring)
    elif answer.action is Answer.RETRY:
        # What a dead worker still holds stays due until its order is closed: nothing else would send it again (F007).
        if orders.send_now(run, action, actor=TIMER, ring=ring) is None and orders.under_way_since(action) is None:
            _announce(run, action)
    else:
        settle.settle(run, action, TIMER)
    return None


def _announce(run: Run, action: Action) -> None:
    """The agent's runner sends it; the feed tells it that it may."""
    gathering.change(action, {}, {"due_at": None})
    data = {"step": action.step, "tool": action.tool}
    record.write_event(run, "ready", TIMER, action=action, from_state=run.state, to_state=run.state, data=data)


def _decay_claims(run: Run, _: nudges.Ring) -> int:
    claims = gathering.rows(HumanTask, "run_id", run.pk, _with_claimers)
    decayed = [task for task in claims if task.state == "claimed" and _is_over(task.claimed_until)]
    for task in decayed:
        holder = str(task.claimed_by)
        advance(task, machine="task", to="open", claimed_by=None, claimed_until=None)
        reason = f"The claim of {holder} ended without an act."
        data = {"task": str(task.pk)}
        record.write_event(run, "claim_decayed", TIMER, action=task.action, to_state="open", reason=reason, data=data)
    return len(decayed)


def _nudge(tenant_id: uuid.UUID, ring: nudges.Ring) -> int:
    """Ring again where a message was lost or a worker died; rows are claimed, so that two sweeps share none."""
    with wall.within(tenant_id, by="timer"):
        now = read_clock()
        waits = Q(state="requested") | Q(state="running", lease_until__lte=now)
        lost = Decision.objects.select_for_update(skip_locked=True).filter(waits, nudged_at__lte=now - NUDGE_AGAIN)
        ids = list(lost.order_by("nudged_at").values_list("pk", flat=True)[:A_PASS])
        Decision.objects.filter(pk__in=ids).update(nudged_at=now)
    nudges.each(ids, ring)
    return len(ids)


STEPS: dict[str, Work] = {
    "leases": by_run(_runs_with_expired_leases, _expire_leases),
    "due": by_run(_runs_with_due_actions, _due_actions),
    "claims": by_run(_runs_with_decayed_claims, _decay_claims),
    "overrun": by_run(_runs_out_of_time, _stop_overrun),
    "nudges": _nudge,
    "outside": lambda tenant_id, ring: outside.due(tenant_id, ring),  # it needs what needs the sweep
    "checks": lambda tenant_id, ring: checks.due(tenant_id, ring),
    "bulk": lambda tenant_id, ring: bulk_run.due(tenant_id, ring),
    "late": upkeep.mark_late,
    "woken": by_run(upkeep.asleep, upkeep.wake),
    "reminded": by_run(upkeep.unapproved, upkeep.remind),
    "offers": by_run(upkeep.unanswered, upkeep.expire_offers),
    "left": by_run(upkeep.left_behind, upkeep.take_back),
    "totals": lambda tenant_id, ring: upkeep.fold_totals(tenant_id),
}
"""What a pass does for each tenant, in this order. What these look for, `wall.due_tenants()` has to know of."""
