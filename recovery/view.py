"""What is read of a run to answer one proposal: all of it in one round trip, under the run's lock (PERFORMANCE 5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from recovery import circuits, gate
from recovery.models import HumanTask
from recovery.proposal import Prepared, Refusal
from recovery.work import stops
from runs import vault
from runs.models import Action, Attempt, Circuit, Run, Stop
from runs.querysets import TenantQuerySet
from runs.together import Question, Statement


@dataclass(frozen=True)
class View:
    """A proposal, and beside it everything in its run that may stand in its way.

    `known`: the call itself, and calls that mean the same. `unsettled`: writes. `last`: the latest settled calls that
    mean the same. `denied`: a write of this tool that policy denied. `loops`: questions about going in circles.
    `troubled`: circuits that are not closed, or closed lately.
    """

    prepared: Prepared
    now: datetime
    known: list[Action]
    unsettled: list[Action]
    in_flight: list[Attempt]
    switches: list[Stop]
    last: list[Action]
    denied: list[Action]
    loops: list[HumanTask]
    troubled: list[Circuit]

    @property
    def has_expired(self) -> bool:
        """Whether a lease has run out that nobody has noticed yet."""
        return any(attempt.lease_until <= self.now for attempt in self.in_flight)

    def existing(self) -> Action | None:
        """The call that this proposal repeats: the same identity; else one that means the same under another step.

        A write means the same while it is unsettled and after it was refused, a read while it waits to be made again
        (F094). What succeeded may be asked for once more under another step: that is a new call.
        """
        same = (action for action in self.known if action.action_id == self.prepared.action_id)
        return next(same, self.known[0] if self.known else None)

    def stop(self, run: Run) -> Stop | None:
        return stops.strictest(self.switches, run)

    def drift(self) -> Refusal | None:
        """A write of a tool that was denied before in this run: no smaller amount and no other step passes by itself
        (ruling 4)."""
        if not self.denied:
            return None
        name = self.prepared.tool.name
        return Refusal("policy_denied", sentence=f"{name} was denied in this run; changing it does not help.")

    def runs_in_circles(self) -> bool:
        """Whether the last calls like this one all came back with the same answer (no progress; C034).

        After a person let the run go on, only what came later counts.
        """
        forgiven = max((task.resolved_at for task in self.loops if task.resolved_at is not None), default=None)
        counted = [action for action in self.last if forgiven is None or action.created_at > forgiven]
        return len(counted) == _most(self.prepared) and len({self._answer(action) for action in counted}) == 1

    def blocking(self, run: Run, existing: Action | None) -> Action | None:
        """The unsettled write that this call has to wait for: an earlier turn's, one of this turn whose outcome is
        open, or its own step's with other arguments."""
        own = {self.prepared.action_id, existing.action_id if existing else self.prepared.action_id}
        step = existing.step if existing else self.prepared.step
        others = (action for action in self.unsettled if action.action_id not in own and not self._is_alike(action))
        return next((action for action in others if self._holds(run, action, step)), None)

    def lease_end(self, action: Action) -> datetime | None:
        return next((one.lease_until for one in self.in_flight if one.action_id == action.pk), None)

    def _holds(self, run: Run, action: Action, step: str) -> bool:
        after, free = self.prepared.tool.after, action.state in gate.NOT_SENT_OR_FREE
        if free and action.tool in gate.tools_that_ask_for(self.prepared):
            return False
        earlier = action.turn < run.turns or action.state not in gate.OUTCOME_NOT_OPEN
        return action.step == step or (earlier and (after is None or action.tool in after))

    def _is_alike(self, action: Action) -> bool:
        return (action.tool, action.arguments_hash) == (self.prepared.tool.name, self.prepared.arguments_hash)

    def _answer(self, action: Action) -> str:
        """What a call came back with, comparable: each result is sealed under a nonce of its own."""
        if action.state != "succeeded" or action.sealed_result is None:
            return f"{action.state} {action.reason_code}"
        return repr(vault.unseal(self.prepared.facts.definition.keys, bytes(action.sealed_result)))


def questions(prepared: Prepared) -> list[Question]:
    """What a view is made of; the wall is open, and the run is locked before they are asked."""
    run_id, definition = prepared.run_id, prepared.facts.definition
    actions = Action.objects.filter(run_id=run_id)
    alike, write = _alike(actions, prepared), prepared.tool.effect == "write"
    denied = actions.filter(tool=prepared.tool.name, effect="write", role="call", reason_code="policy_denied")
    return [
        Statement("SELECT app_now()"),
        actions.filter(Q(action_id=prepared.action_id) | Q(pk__in=_repeated(alike, write).values("pk"))).order_by(
            "-settled_at", "-id"
        ),
        actions.filter(effect="write", settled_at__isnull=True).exclude(role="item").order_by("id"),
        Attempt.objects.filter(run_id=run_id, ended_at__isnull=True),
        stops.concerning(
            definition.tenant_id,
            workflow=definition.name,
            tool=prepared.tool.name,
            connectors=definition.connectors_of(prepared.tool),
            run_id=run_id,
        ),
        alike.filter(settled_at__isnull=False).order_by("-id")[: _most(prepared)],
        denied[:1] if write else denied.none(),
        HumanTask.objects.filter(run_id=run_id, reason_code="no_progress_loop"),
        circuits.troubled(definition.tenant_id),
    ]


def of(prepared: Prepared, answers: list[list[Any]]) -> View:
    """The view that the answers to `questions` make."""
    clock, *rows = answers
    return View(prepared, clock[0][0], *rows)


def _alike(actions: TenantQuerySet[Action], prepared: Prepared) -> TenantQuerySet[Action]:
    return actions.filter(
        tool=prepared.tool.name, arguments_hash=prepared.arguments_hash, effect=prepared.tool.effect, role="call"
    )


def _repeated(alike: TenantQuerySet[Action], write: bool) -> TenantQuerySet[Action]:
    unsettled = Q(settled_at__isnull=True)
    if write:
        return alike.filter(unsettled | Q(state__in=("rejected", "refused_permanent")))
    return alike.filter(unsettled).exclude(state="permitted")


def _most(prepared: Prepared) -> int:
    return prepared.facts.definition.manifest.budgets.max_same_answers
