"""Runs locked together, with everything read ahead that the table usually asks about them.

What else is asked is read when it is asked, so the answers are the same; only the number of statements differs.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import cast

from django.db.models import Q

from recovery.models import DeadLetter, Decision, HumanTask
from recovery.work.orders import WAITS
from runs.gathering import Gathering
from runs.models import Action, Attempt, Evidence, Run
from runs.querysets import TenantQuerySet, database_now
from runs.states import TASK_OPEN

IN_QUESTION = Q(settled_at=None) | Q(due_at__isnull=False)
"""Calls that a pass of the sweep or an answer of a look-up can be about; the others were settled for good."""


def lock(gathering: Gathering, run_ids: Iterable[uuid.UUID], calls: Iterable[uuid.UUID] = ()) -> list[Run]:
    """The runs among these that nobody else has locked, oldest first (F070). `calls`: settled ones as well."""
    runs = list(Run.objects.select_for_update(skip_locked=True, no_key=True).filter(pk__among=run_ids).order_by("id"))
    gathering.hold(runs)
    _read(gathering, runs, calls)
    return runs


def look_at(gathering: Gathering, run_ids: Iterable[uuid.UUID], calls: Iterable[uuid.UUID] = ()) -> None:
    """The same papers for whoever only looks: no run is locked, and none that is locked is passed by."""
    _read(gathering, list(Run.objects.filter(pk__among=run_ids).select_related("workflow").order_by("id")), calls)


def _read(gathering: Gathering, runs: list[Run], calls: Iterable[uuid.UUID]) -> None:
    by_id = {run.pk: run for run in runs}
    actions = gathering.read_ahead(Action.objects.filter(IN_QUESTION | Q(pk__among=calls)), "run_id", by_id)
    for action in actions:
        action.run = by_id[action.run_id]
    known = {action.pk: action for action in actions}
    _read_tries(gathering, by_id, known)
    gathering.read_ahead(Evidence.objects.defer("raw"), "action_id", known)
    gathering.read_ahead(DeadLetter.objects.all(), "action_id", known)
    told = gathering.read_ahead(Decision.objects.filter(state__in=WAITS).select_related("by"), "action_id", known)
    for decision in told:
        decision.run, decision.action = by_id[decision.run_id], known[cast(uuid.UUID, decision.action_id)]
    gathering.shelve(Decision, "run_id", by_id, told)
    for task in gathering.read_ahead(_open_tasks(), "run_id", by_id):
        task.run = by_id[task.run_id]
        if task.action_id in known:
            task.action = known[task.action_id]


def _open_tasks() -> TenantQuerySet[HumanTask]:
    return HumanTask.objects.filter(state__in=TASK_OPEN).select_related("claimed_by")


def _read_tries(gathering: Gathering, runs: dict[uuid.UUID, Run], actions: dict[uuid.UUID, Action]) -> None:
    """Of each call all tries, and of each run those whose lease ran out: one row of both is one row in memory."""
    tries = gathering.read_ahead(Attempt.objects.all(), "action_id", actions)
    for one in tries:
        one.action = actions[one.action_id]
    over = Attempt.objects.filter(ended_at=None, lease_until__lte=database_now(), run_id__among=runs)
    stray = over.exclude(action_id__among=actions).select_related("action")
    expired = [one for one in tries if one.ended_at is None]
    gathering.shelve(Attempt, "run_id", runs, sorted([*expired, *stray], key=lambda one: one.pk))
