"""Everything that the record holds about one run, read once for all parts of a page."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import F, Q, Window
from django.db.models.functions import RowNumber
from steadyhand.manifest import Tool

from console import looks
from console.builders import changed
from console.looks import Look
from recovery import undos
from recovery.models import Decision
from runs import definitions
from runs.definitions import Definition
from runs.models import Action, Attempt, Effect, Event, Evidence, Run
from runs.models import TenantRow as Row

MOST_ACTIONS = 200
MOST_EVENTS = 1000

R = TypeVar("R", bound=Row)


@dataclass(frozen=True)
class Record:
    """A run with its rows, oldest first. Each action carries `answer`: what it changed (builders.changed)."""

    run: Run
    definition: Definition
    actions: list[Action]
    attempts: dict[uuid.UUID, list[Attempt]]
    evidence: dict[uuid.UUID, list[Evidence]]
    effects: dict[uuid.UUID, Effect]
    decisions: list[Decision]

    def tool(self, action: Action) -> Tool | None:
        """The tool's contract; None for a name that the manifest does not have."""
        return self.definition.tools.get(action.tool)

    def limit(self, action: Action) -> int:
        """How many tries this call may have: an undo has a ceiling of its own."""
        return undos.max_attempts(self.definition, action) if action.role == "undo" else self.run.max_attempts

    def tries(self, action: Action) -> list[Attempt]:
        return self.attempts.get(action.pk, [])

    def facts(self, action: Action) -> list[Evidence]:
        return self.evidence.get(action.pk, [])

    @property
    def standing(self) -> list[Effect]:
        """What this run did and nobody took back, or only in part; an undo is no effect of its own."""
        undos = {action.pk for action in self.actions if action.role == "undo"}
        found = [effect for effect in self.effects.values() if effect.action_id not in undos]
        return [effect for effect in found if effect.compensated_by_id is None or effect.residual]

    @property
    def partly(self) -> list[Effect]:
        """What was taken back in part: of it something stands."""
        return [effect for effect in self.standing if effect.compensated_by_id is not None]

    @property
    def contested(self) -> list[Effect]:
        """What stands by one word and is denied by another, while a person is asked which is true."""
        denied = {action.pk for action in self.actions if answer_of(action) == "conflict"}
        return [effect for effect in self.standing if effect.action_id in denied]

    @property
    def undone(self) -> list[Effect]:
        """What was taken back whole."""
        found = self.effects.values()
        return [effect for effect in found if effect.compensated_by_id is not None and not effect.residual]

    @property
    def unsettled(self) -> list[Action]:
        return [action for action in self.actions if action.settled_at is None]

    @property
    def planned(self) -> list[Tool]:
        """Required effects for which no call was proposed yet."""
        called = {action.tool for action in self.actions if action.state != "rejected"}
        tools = self.definition.tools
        return [tools[name] for name in self.definition.manifest.required_effects if name not in called]


def answer_of(action: Action) -> str:
    """What this action changed, a key of looks.ANYTHING_CHANGED."""
    return str(action.answer)  # type: ignore[attr-defined]


def look_of_run(run: Run) -> Look:
    """The badge of a run: one whose effects were all taken back on request says that, and not that it failed."""
    if run.reason_code == "partly_compensated":
        return looks.PARTLY_COMPENSATED
    rolled_back = run.state == "failed" and run.goal == "rollback"
    return looks.ROLLED_BACK if rolled_back else looks.look("run", run.state)


def read(run: Run) -> Record:
    """Five statements; the wall is open. All name the tenant, with which their indexes begin."""
    same: dict[str, Any] = {"tenant_id": run.tenant_id}
    actions = run.actions.filter(**same).annotate(answer=changed.of_action()).order_by("pk")[:MOST_ACTIONS]
    calls = {**same, "action__among": [action.pk for action in actions]}
    return Record(
        run=run,
        definition=definitions.of_run(run),
        actions=list(actions),
        attempts=_by_action(Attempt.objects.filter(**calls).order_by("pk")),
        evidence=_by_action(Evidence.objects.filter(**calls).order_by("pk")),
        effects={effect.action_id: effect for effect in run.effects.filter(**same)},
        decisions=list(Decision.objects.filter(run=run, **same).select_related("by").order_by("pk")),
    )


def events(run: Run) -> list[Event]:
    """The run's history, newest first."""
    return list(
        run.events.filter(tenant_id=run.tenant_id)
        .select_related("action")
        .order_by(*Event.NEWEST_FIRST)[:MOST_EVENTS]
    )


def events_under(run: Run, mark: Event, kinds: Q, limit: int) -> list[Event]:
    """The next older ones of these kinds under `mark`, each with `seq`, its place in the whole history."""
    place = Window(RowNumber(), order_by=[F(name).asc() for name in Event.IN_ORDER])
    under = Q(number__lt=mark.number) | Q(number=mark.number, pk__lt=mark.pk)
    rows = run.events.select_related("action").annotate(seq=place).filter(kinds, under)
    return list(rows.order_by(*Event.NEWEST_FIRST)[:limit])


def _by_action(rows: Iterable[R]) -> dict[uuid.UUID, list[R]]:
    found: dict[uuid.UUID, list[R]] = defaultdict(list)
    for row in rows:
        found[row.action_id].append(row)  # type: ignore[attr-defined]
    return dict(found)
