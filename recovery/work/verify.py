"""What a look-up proves: keep its finding as evidence, and close the action or leave it with what is still open."""

from __future__ import annotations

from datetime import datetime

from steadyhand.manifest import Tool

from recovery import callbacks, settle
from recovery import case as cases
from recovery.case import Case
from recovery.connectors.base import Finding
from recovery.rules import assembly, bounds
from recovery.work import recounts
from runs import definitions, gathering, record, redact, vault
from runs.definitions import Definition
from runs.models import Action, Run
from runs.record import Actor

STRENGTH = {
    "present": 5,
    "undone": 5,
    "conflict": 5,
    "failed": 5,
    "partial": 4,
    "processing": 3,
    "absent": 3,
    "probe_failed": 1,
}
STRENGTH_FINAL = 5


def prove(
    run: Run, action: Action, finding: Finding, *, asked_after: int, started_at: datetime, actor: Actor, ours: bool
) -> None:
    """Record a finding and settle by it.

    `ours` False: the lease was lost, so it is evidence and moves nothing (F058). The same holds where the call was
    settled or sent again while the look was under way: a look speaks about the `asked_after` tries that it followed.

    `started_at` is the database's time before the request left: whether the answer is final is computed from it and
    from the bounds that the tool declares, never taken from the connector (DECISIONS 2).
    """
    definition = definitions.of_run(run)
    tool = definition.tools[action.tool]
    current = action.attempts == asked_after
    case = cases.read(run, action) if current else None
    final_at = case.final_at if case else None
    verdict = bounds.finalize(finding.verdict, started_at=started_at, final_at=final_at)
    record.add_evidence(
        action,
        run=run,
        kind="probe",
        verdict=verdict,
        count=finding.count,
        source=_source(tool, case),
        strength=STRENGTH_FINAL if verdict.endswith("_final") else STRENGTH[finding.verdict],
        fact=finding.fact,
        raw=redact.redact(finding.raw, sensitive=tool.sensitive_fields),
        sealed_record=_sealed(definition, finding),
        external_id=finding.external_id,
        after_attempt=asked_after,
        started_at=started_at,
    )
    if action.state == "succeeded" and ours and current:
        return recounts.conclude(run, action, verdict=verdict, fact=finding.fact, actor=actor)
    if not (ours and current) or action.settled_at is not None:
        settle.ask_if_contradicted(run, action, actor)
        record.write_event(run, "late_look", actor, action=action, reason=finding.fact, data={"verdict": verdict})
        return None
    gathering.change(action, {}, {"verdict": verdict})
    settle.settle(run, action, actor)
    callbacks.use_waiting(run, action)
    return None


def _source(tool: Tool, case: Case | None) -> str:
    if tool.poll is not None and case is not None and assembly.polled(case.known):
        return tool.poll.tool
    return tool.reconcile.connector if tool.reconcile else "look-up"


def _sealed(definition: Definition, finding: Finding) -> bytes | None:
    """The record that was found; a poll that proves the end without one leaves what the accepted reply said."""
    found = finding.verdict in ("present", "undone") and finding.record is not None
    return vault.seal(definition.keys, finding.record) if found else None
