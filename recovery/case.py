"""One action with everything recorded about it, read under the run's lock and ready for the table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import cast

from steadyhand.manifest import Tool

from recovery import escalation
from recovery.rules import assembly, decide
from recovery.rules.assembly import Fact, Known, Try
from recovery.rules.decide import NextAction
from recovery.rules.evidence import Evidence, Goal
from runs import definitions
from runs.definitions import Definition
from runs.models import Action, Run
from runs.querysets import read_clock


@dataclass(frozen=True)
class Case:
    """What is known, what it amounts to, and what the table says."""

    run: Run
    action: Action
    definition: Definition
    tool: Tool
    known: Known
    evidence: Evidence
    answer: NextAction
    now: datetime

    @property
    def final_at(self) -> datetime | None:
        return assembly.final_from(self.tool, self.known.tries[-1].ended_at if self.known.tries else None)

    def suppose(self, **changes: object) -> NextAction:
        """What the table would say if a part of the evidence were different; the panel asks this."""
        return decide.decide(self.evidence._replace(**changes))  # type: ignore[arg-type]


def read(run: Run, action: Action, *, next_due_at: datetime | None = None) -> Case:
    """Assemble the case of one action and ask the table. `next_due_at`: when a retry would be due."""
    now = read_clock()
    definition = definitions.of_run(run)
    tool = definition.tools[action.tool]
    held = escalation.holder(run) is not None
    known = _known(run, action, definition, tool, now, next_due_at, held)
    evidence = assembly.assemble(known, now)
    return Case(run, action, definition, tool, known, evidence, decide.decide(evidence), now)


def _known(
    run: Run,
    action: Action,
    definition: Definition,
    tool: Tool,
    now: datetime,
    next_due_at: datetime | None,
    held: bool,
) -> Known:
    tries = tuple(
        Try(number, observed, ended_at)
        for number, observed, ended_at in action.tries.order_by("number").values_list(
            "number", "observed", "ended_at"
        )
    )
    facts = tuple(
        Fact(kind, verdict, after, started)
        for kind, verdict, after, started in action.evidence.order_by("id").values_list(
            "kind", "verdict", "after_attempt", "started_at"
        )
    )
    connector = definition.connector(tool)
    over = over_threshold(definition, tool, action.value_minor)
    return Known(
        tool=tool,
        connector_kind=connector.kind if connector else None,
        tries=tries,
        facts=facts,
        goal=cast(Goal, run.goal),
        looks_made=action.looks,
        due_at=action.due_at,
        first_dispatched_at=action.first_dispatched_at,
        max_attempts=run.max_attempts,
        budget_left=within_budget(run, now),
        deadline_at=run.deadline_at,
        next_due_at=next_due_at,
        over_threshold=over,
        gate_open=action.gate_open or not (held or over or tool.requires_approval),
        never_again=_refused_for_good(tries),
    )


def over_threshold(definition: Definition, tool: Tool, value_minor: int | None) -> bool:
    """Whether a write moves more than one person may decide; an amount that is missing counts as so."""
    threshold = definition.manifest.value_threshold_minor
    if tool.effect == "read" or threshold is None or tool.value_field is None:
        return False
    return value_minor is None or value_minor > threshold


def within_budget(run: Run, now: datetime) -> bool:
    """Whether the run may do one more unit of work (the exact ceiling is named by `spent_budget`)."""
    return spent_budget(run, now) is None


def spent_budget(run: Run, now: datetime) -> str | None:
    """The reason code of the first ceiling that has been reached, in a fixed order (F101)."""
    checks = (
        (run.elapses_at <= now, "time_budget_exhausted"),
        (run.max_cost_minor is not None and run.cost_minor >= run.max_cost_minor, "cost_budget_exhausted"),
        (run.max_input_tokens is not None and run.input_tokens >= run.max_input_tokens, "token_budget_exhausted"),
        (run.max_output_tokens is not None and run.output_tokens >= run.max_output_tokens, "token_budget_exhausted"),
    )
    return next((reason for spent, reason in checks if spent), None)


def _refused_for_good(tries: tuple[Try, ...]) -> bool:
    """A later permanent refusal beside an unsettled earlier try only says that trying again is useless."""
    return bool(tries) and tries[-1].observed == "permanent_reject"
