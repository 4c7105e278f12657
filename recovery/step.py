"""One settling: the case at hand, who acts, and what the answer just brought. What every handler shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from steadyhand.contract import OUTCOME_OF

from recovery import escalation, sla
from recovery.case import Case
from recovery.rules.classify import Classified
from runs import gathering, record
from runs.models import Action, Attempt, Run
from runs.record import Actor


def _ends(tries: QuerySet[Attempt]) -> QuerySet[Attempt]:
    return tries.only("number", "reason_code")


@dataclass(frozen=True)
class Step:
    """`classified` is the answer that caused this, if an answer did; `retry_in` the seconds until another try."""

    case: Case
    actor: Actor
    classified: Classified | None
    retry_in: float

    @property
    def run(self) -> Run:
        return self.case.run

    @property
    def action(self) -> Action:
        return self.case.action

    @property
    def is_undo(self) -> bool:
        return self.action.role == "undo"

    def move(self, to: str, *, kind: str, **changes: Any) -> None:
        before, rule = self.action.state, self.case.answer.rule
        record.move_action(
            self.action, to, self.actor, run=self.run, kind=kind, reason=f"Rule {rule}.", rule=rule, **changes
        )
        if before != to and "processing" in (before, to):
            sla.follow_call(self.run, self.action, self.actor)

    def resolve(self, resolution: str) -> None:
        escalation.resolve_tasks(self.run, action=self.action, actor=self.actor, resolution=resolution)

    def last_reason(self) -> str | None:
        """Why the last try ended as it did."""
        tries = gathering.rows(Attempt, "action_id", self.action.pk, _ends)
        last = max(tries, key=lambda one: one.number, default=None)
        return (last.reason_code if last else None) or self.action.reason_code

    def waiting_reason(self) -> str:
        reason = self.classified.reason if self.classified else self.last_reason()
        return reason if reason and OUTCOME_OF[reason].value == "retryable" else "provider_unavailable"
