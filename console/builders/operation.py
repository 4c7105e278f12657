"""The operation of a task: requested, dispatched, and what it proved; never more than the record says."""

from __future__ import annotations

from console import looks
from console.builders import rest
from console.builders.evidence import words_of
from console.builders.record import Record
from console.pages.common import Flash
from recovery.models import Decision
from recovery.panel import Panel
from recovery.rules.policy import LABELS
from runs.models import Evidence

PROVEN = ("present", "present_final", "absent_final")


def of(panel: Panel, record: Record) -> Flash | None:
    """What is under way, else how the task ended, else what the last check brought; None if there was none."""
    if panel.running is not None:
        return _under_way(panel)
    if panel.statement is not None:
        text = "It counts for nothing until a second person confirms it."
        return Flash(looks.NOTICE["requested"], f"{panel.statement}.", text)
    if panel.task.resolved_at is not None:
        return Flash(looks.NOTICE["verified" if _by_proof(panel) else "info"], f"Resolved: {panel.task.resolution}",
                     "Recorded", at=panel.task.resolved_at)  # fmt: skip
    waits = rest.of(record, panel.task.action, panel.situation.now)
    if waits is not None:
        return waits
    last = next(
        (one for one in reversed(record.decisions) if one.task_id == panel.task.pk and one.verb == "reconcile"), None
    )
    return _ended(last, _finding(panel, record, last)) if last is not None and last.ended_at is not None else None


def _under_way(panel: Panel) -> Flash:
    running = panel.running
    assert running is not None  # noqa: S101  (asked by the caller)
    tool = panel.task.tool or "the run"
    if running.verb == "trial":
        return Flash(looks.NOTICE["requested"], "Requested: a trial of the circuit.",
                     "It asks only whether the provider is back. Recorded", at=running.requested_at)  # fmt: skip
    if running.verb == "send":
        return Flash(looks.NOTICE["requested"], f"Requested: {tool} is sent by a worker.",
                     "Its outcome is not known yet. Recorded", at=running.requested_at)  # fmt: skip
    if running.state == "requested":
        return Flash(looks.NOTICE["requested"], f"Requested: check of {tool}.",
                     "A worker takes it up; nothing is known yet. Recorded", at=running.requested_at)  # fmt: skip
    return Flash(looks.NOTICE["dispatched"], f"Dispatched: a worker is asking the provider about {tool}.",
                 "It reads only. Requested", at=running.requested_at)  # fmt: skip


def _by_proof(panel: Panel) -> bool:
    """Whether evidence ended the task, not somebody's wish."""
    return panel.task.action is not None and panel.task.resolution.startswith(
        ("The effect is proven", "It is proven")
    )


def _finding(panel: Panel, record: Record, decision: Decision | None) -> Evidence | None:
    """What the look of this decision brought: the last one recorded before it ended."""
    if decision is None or panel.task.action_id is None:
        return None
    facts = record.evidence.get(panel.task.action_id, [])
    probes = [fact for fact in facts if fact.kind == "probe" and fact.recorded_at >= decision.requested_at]
    return probes[0] if probes else None


def _ended(decision: Decision, finding: Evidence | None) -> Flash:
    if decision.state in ("refused", "failed"):
        return Flash(looks.NOTICE["refused"], f"Not carried out: {LABELS[decision.verb].lower()}.",
                     f"{decision.result} Nothing was sent.", at=decision.ended_at)  # fmt: skip
    if finding is not None and finding.verdict in PROVEN:
        return Flash(looks.NOTICE["verified"], f"Verified: {finding.fact}", "Checked", at=decision.ended_at)
    text = words_of(finding) if finding is not None else decision.result
    return Flash(looks.NOTICE["info"], "Checked: this settles nothing yet.", text, at=decision.ended_at)
