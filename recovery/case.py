"""One action with everything recorded about it, read under the run's lock and ready for the table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import cast

from steadyhand.manifest import Tool

from recovery import circuits, demotions, escalation, letters, planning, undos
from recovery.models import DeadLetter
from recovery.rules import assembly, bounds, decide, elsewhere, paging, snapshots, testimony, trust
from recovery.rules import circuit as circuit_rules
from recovery.rules.decide import Action as Answer
from recovery.rules.decide import NextAction
from recovery.rules.evidence import Circuit as CircuitState
from recovery.rules.evidence import Evidence, Goal
from recovery.rules.known import Fact, Known, Try
from runs import budgets, definitions, gathering
from runs.definitions import Definition
from runs.models import Action, Attempt, Circuit, Run
from runs.models import Evidence as Learned
from runs.querysets import read_clock
from runs.together import Statement, read_together


@dataclass(frozen=True)
class Case:
    """What is known, what it amounts to, and what the table says.

    `would`: what it would say with every circuit closed. `way`: the circuit that this would go through; `circuit` its
    row, where it is not closed. `troubled`: every such row, and those that closed lately.
    """

    run: Run
    action: Action
    definition: Definition
    tool: Tool
    known: Known
    evidence: Evidence
    answer: NextAction
    now: datetime
    would: NextAction
    way: str | None
    circuit: Circuit | None
    troubled: list[Circuit]

    @property
    def final_at(self) -> datetime | None:
        return bounds.final_from(self.tool, self.known.tries[-1].ended_at if self.known.tries else None)

    @property
    def uncertain_since(self) -> datetime:
        """The report or the lease's end of the last dispatch."""
        return self.known.tries[-1].ended_at or self.now

    def next_look_at(self) -> datetime | None:
        """When to look next by itself; None once the run has ended over an accepted job: a person asks then."""
        return assembly.next_look_at(self.known, self.now)

    def page(self, reason: str, *, answers_later: bool = False) -> str | None:
        """Why the question with this reason pages; None where it waits in the queue (ruling 13)."""
        return paging.pages(
            paging.Question(
                reason_code=reason,
                effect=self.evidence.effect,
                unknown=reason == "external_outcome_unknown" or self._is_unknown,
                over_threshold=self.known.over_threshold,
                irreversible=self.tool.irreversible,
                answers_later=answers_later,
            )
        )

    @property
    def _is_unknown(self) -> bool:
        open_end = self.evidence.observation in testimony.UNSETTLED
        told = self.evidence.verdict in ("present_final", "absent_final", "partial_final")
        return self.evidence.verdict == "conflict" or (open_end and not told)

    @property
    def evidence_hash(self) -> str:
        return snapshots.hash_of(self.known)

    def snapshot(self) -> dict[str, object]:
        """Everything that the answer rested on, to be stored with a decision and recomputed from it."""
        return snapshots.taken(self.known, self.now, self.evidence, self.answer)

    @property
    def waits_for_circuit(self) -> bool:
        return self.answer.action is Answer.WAIT and self.answer.reason == "circuit"

    def ask_again_at(self) -> datetime:
        """When to ask again what the circuit kept back."""
        assert self.circuit is not None  # noqa: S101  (waits_for_circuit)
        terms = circuit_rules.terms_of(self.circuit.name, self.definition.manifest.connectors)
        return circuits.ask_again_at(self.circuit, self.now, terms)

    def suppose(self, **changes: object) -> NextAction:
        """What the table would say if a part of the evidence were different; the panel asks this."""
        return decide.decide(self.evidence._replace(**changes))  # type: ignore[arg-type]


def read(run: Run, action: Action, *, again_in: float | None = None) -> Case:
    """Assemble the case of one action and ask the table. `again_in`: seconds until a retry would be due."""
    now, troubled = _moment(run)
    next_due_at = None if again_in is None else now + timedelta(seconds=again_in)
    definition = definitions.of_run(run)
    tries, demoted = _tries(run, action, definition)
    tool = _contract(run, action, definition, demoted=demoted)
    known = replace(_known(run, action, definition, tool, now, next_due_at, tries), demoted=demoted)
    evidence = assembly.assemble(known, now)
    would = decide.decide(evidence)
    way = _way(definition, known, would.action)
    circuit = circuits.find(troubled, way)
    if circuit is not None:
        evidence = evidence._replace(circuit=_state_of(circuit, definition, now, is_undo=action.role == "undo"))
    answer = decide.decide(evidence) if circuit is not None else would
    return Case(
        run, action, definition, tool, known, evidence, answer, now, would=would, way=way, circuit=circuit,
        troubled=troubled,
    )  # fmt: skip


def _moment(run: Run) -> tuple[datetime, list[Circuit]]:
    """The time and the circuits that are not as they should be: in one round trip, or once for many runs."""
    if gathering.is_open():
        key = ("circuits", run.tenant_id)
        return read_clock(), gathering.once(key, lambda: list(circuits.troubled(run.tenant_id)))
    clock, troubled = read_together(Statement("SELECT app_now()"), circuits.troubled(run.tenant_id))
    return clock[0][0], troubled


def _way(definition: Definition, known: Known, would: Answer) -> str | None:
    """The circuit that the answer would go through; None where it calls nobody (DECISIONS 2)."""
    if would is Answer.PROBE:
        return way_of_look(definition, known)
    if would is Answer.COMPENSATE and known.tool.compensate is not None:
        return circuit_rules.of_call(definition.tools[known.tool.compensate.tool])
    return circuit_rules.of_call(known.tool) if would is Answer.RETRY else None


def way_of_look(definition: Definition, known: Known) -> str | None:
    """The circuit that a look goes through: the one of the poll, if that is what is asked."""
    if known.tool.poll is not None and assembly.polled(known):
        return circuit_rules.of_call(definition.tools[known.tool.poll.tool])
    return circuit_rules.of_look(known.tool)


def _state_of(circuit: Circuit, definition: Definition, now: datetime, *, is_undo: bool) -> CircuitState:
    """An undo is no trial: it waits until the circuit is closed (5c, 6d)."""
    terms = circuit_rules.terms_of(circuit.name, definition.manifest.connectors)
    at = gathering.once(("standing", circuit.pk), lambda: circuits.standing(circuit, now))
    state = circuit_rules.as_evidence(at, now, terms)
    return "shut" if is_undo and state == "half_slot" else state


def _contract(run: Run, action: Action, definition: Definition, *, demoted: bool) -> Tool:
    """The tool's promises, as far as they hold for where the call was made, and as far as they were kept."""
    tool = definition.tools[action.tool]
    tool = trust.undeclared(tool) if demoted else tool
    return elsewhere.contract_of(tool, keyed=bool(action.idempotency_key)) if run.origin == "ingest" else tool


def _known(
    run: Run,
    action: Action,
    definition: Definition,
    tool: Tool,
    now: datetime,
    next_due_at: datetime | None,
    tries: tuple[Try, ...],
) -> Known:
    told = gathering.rows(Learned, "action_id", action.pk, lambda found: found.only(*_TOLD))
    facts = tuple(Fact(one.kind, one.verdict, one.after_attempt, one.started_at, one.count) for one in told)
    connector = definition.connector(tool)
    letter = letters.of(action) if action.attempts >= run.max_attempts else None
    is_undo = action.role == "undo"
    ceiling = undos.max_attempts(definition, action) if is_undo else run.max_attempts
    rollback = run.goal == "rollback" and not is_undo
    return Known(
        tool=tool,
        connector_kind=connector.kind if connector else None,
        tries=tries,
        facts=facts,
        # An undo goes its own way, unless its rollback was cancelled with the run.
        goal="forward" if is_undo and run.goal != "cancel" else cast(Goal, run.goal),
        looks_made=action.looks,
        due_at=action.due_at,
        first_dispatched_at=action.first_dispatched_at,
        max_attempts=ceiling + letters.extra_attempts(letter),
        # An undo is not the agent's work: it has tries and an end of its own, and the run's time and money do not
        # keep it from being carried out.
        budget_left=is_undo or within_budget(run, max(now, next_due_at or now)),
        deadline_at=undos.sent_until(definition, action) if is_undo else run.deadline_at,
        next_due_at=next_due_at,
        over_threshold=_over(definition, tool, action),
        gate_open=_gate_open(run, action, definition, tool, letter),
        never_again=_refused_for_good(tries),
        ends_at=budgets.ends_at(run),
        undo=undos.state_of(action) if rollback else "none",
        undo_in_time=not rollback or undos.in_time(action, tool, now),
    )


_TOLD = ("kind", "verdict", "after_attempt", "started_at", "count")
CREDENTIAL_REFUSED = ("credentials_invalid", "credentials_revoked")
"""Refusals of the caller, not of the call: for good until a person says that the connection is renewed."""
_OBSERVED_OF = {
    "succeeded": "ok_valid",
    "compensating": "ok_valid",
    "compensation_held": "ok_valid",
    "compensated": "ok_valid",
    "refused_permanent": "permanent_reject",
    "refused_transient": "transient_reject",
}


_TRY = ("number", "observed", "ended_at", "reason_code", "dispatched_at", "idempotency_key")


def _tries(run: Run, action: Action, definition: Definition) -> tuple[tuple[Try, ...], bool]:
    """The attempts of a call, and whether its look-up's connector is demoted, in one question.

    An item of a batch was sent with it, and stands as that answer said.
    """
    if action.role == "item":
        return (Try(1, _OBSERVED_OF.get(action.state, "unknown"), action.settled_at),), False
    rule = definition.tools[action.tool].reconcile
    tries = gathering.rows(
        Attempt,
        "action_id",
        action.pk,
        lambda found: found.only(*_TRY).annotate(demoted=demotions.beside(run, rule.connector if rule else "")),
    )
    rows = sorted(tries, key=lambda one: one.number)
    return _as_tried(action, rows), demotions.is_demoted(run, rule.connector, rows) if rule and rows else False


def _as_tried(action: Action, rows: list[Attempt]) -> tuple[Try, ...]:
    freed = action.state in ("held", "refused_transient")
    keys = list(dict.fromkeys(one.idempotency_key for one in rows))
    return tuple(
        Try(
            number=one.number,
            observed="transient_reject" if freed and one.reason_code in CREDENTIAL_REFUSED else one.observed,
            ended_at=one.ended_at,
            sent_at=one.dispatched_at,
            generation=keys.index(one.idempotency_key) + 1,
        )
        for one in rows
    )


def waits_for_credential(action: Action) -> bool:
    """Whether a person has to renew a credential first; nothing was applied, so the same call may go after that."""
    return action.state == "held" and action.reason_code in CREDENTIAL_REFUSED and not action.gate_open


def _gate_open(run: Run, action: Action, definition: Definition, tool: Tool, letter: DeadLetter | None) -> bool:
    """Whether this may be sent: freed by a person, or small enough or approved, and nobody holds the run's task.

    What would be sent in a rollback is the undo, so there it is the gate of the plan that the undo stands in.
    """
    if run.goal == "rollback" and action.role != "undo":
        return undos.planned(definition, action) is None or planning.is_free(run)
    if action.gate_open or letters.is_replayed(letter):
        return True
    held = escalation.holder(run)
    if held is not None and (action.role != "undo" or held.action_id == action.pk):
        return False
    if action.role == "undo":
        return action.attempts > 0 or planning.is_free(run)
    return action.approved_at is not None or not (tool.requires_approval or _over(definition, tool, action))


def _over(definition: Definition, tool: Tool, action: Action) -> bool:
    """An undo moves as much as the effect that it takes back, whether or not its own arguments say so."""
    if action.role == "undo" and tool.value_field is None:
        return undos.over_threshold(definition, action.value_minor)
    return over_threshold(definition, tool, action.value_minor)


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
    """The reason code of the first ceiling that has been reached; the deadline is no budget, and asked for apart."""
    return next((reason for reason in budgets.fired(run, now) if reason != "deadline_exceeded"), None)


def _refused_for_good(tries: tuple[Try, ...]) -> bool:
    """A later permanent refusal beside an unsettled earlier try only says that trying again is useless."""
    return bool(tries) and tries[-1].observed == "permanent_reject"
