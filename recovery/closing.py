"""How a call ends: proven, with its effect written down; taken apart into items; or over without an effect."""

from __future__ import annotations

from datetime import datetime, timedelta

from recovery import escalation, letters, undos
from recovery.rules import bounds
from recovery.rules.classify import NO_RESULT
from recovery.step import Step
from runs import gathering, record, vault
from runs.models import Action, Evidence

PROOF_REASON = {
    "response": "completed",
    "probe": "completed_reconciled",
    "listing": "completed_reconciled",
    "late_report": "completed_late_result",
    "callback": "completed_late_result",
    "person": "completed_reconciled",
}
PROVEN_BY = {"listing": "probe"}
"""What a listing holds of a call speaks like a look, and proves like one."""


def prove(step: Step) -> None:
    """Close the action on the strongest proof there is, and write the effect down.

    The parts of a batch are effects of their own, so the batch has none.
    """
    action, found = step.action, _found(step.action)
    if step.case.evidence.verdict in ("present", "present_final") and found is not None:
        by, external_id, sealed = found.kind, found.external_id or action.external_id, _record_of(found, action)
    else:
        by, external_id, sealed = "response", *_from_reply(step)
    step.move(
        "succeeded", kind="succeeded", reason_code=_reason(step, by), external_id=external_id, sealed_result=sealed,
        due_at=_recount_at(step),
    )  # fmt: skip
    if action.effect == "write" and not _taken_apart(step):
        record.prove_effect(action, run=step.run, by=PROVEN_BY.get(by, by), external_id=external_id)
    letters.close(step.run, action, step.actor, effect=True)
    if step.is_undo and action.parent is not None:
        undos.close(step.run, action.parent, action, step.actor)


def void(step: Step) -> None:
    """It is certain that nothing happened, and nothing more is to happen."""
    step.move("void", kind="void", reason_code="not_applied")
    letters.close(step.run, step.action, step.actor, effect=False)
    step.resolve("It is proven that nothing happened.")


def ask_about_kept_effect(step: Step) -> None:
    """An effect stands in a cancelled run and could be taken back: the task that was open for it asks that now.

    Where its outcome had been unknown it pages: somebody was told that the run is over.
    """
    was_unknown = step.action.tries.exclude(observed="ok_valid").exists()
    page = "An effect stands after the cancel whose outcome had been unknown." if was_unknown else None
    escalation.ask_about_kept(step.run, step.action, step.actor, page=page)


def _taken_apart(step: Step) -> bool:
    named = step.classified is not None and step.classified.items
    return bool(named) or (step.case.tool.batch is not None and step.action.parts.filter(role="item").exists())


def _reason(step: Step, by: str) -> str:
    """An accepted job that ends as it should has simply completed; a lost answer that was found says how."""
    if by == "response" and step.classified:
        return step.classified.reason
    told = _evidence(step.action) if by in ("probe", "callback") else []
    awaited = any((one.kind, one.verdict) == ("reply", "processing") for one in told)
    return "completed" if awaited else PROOF_REASON[by]


def _recount_at(step: Step) -> datetime | None:
    """When to count once more what was believed on less than a final look (DECISIONS 2); None if it was final."""
    connector = step.case.definition.connector(step.case.tool)
    after = bounds.recount_after(step.case.tool, connector.kind if connector else None)
    if after is None or step.case.evidence.verdict == "present_final":
        return None
    return max(step.case.now, step.case.uncertain_since + timedelta(seconds=after))


def _found(action: Action) -> Evidence | None:
    present = [one for one in _evidence(action) if one.verdict in ("present", "present_final", "undone")]
    return max(present, key=lambda one: (one.strength, one.pk), default=None)


def _evidence(action: Action) -> list[Evidence]:
    return gathering.rows(Evidence, "action_id", action.pk, lambda found: found.defer("raw"))


def _record_of(found: Evidence, action: Action) -> bytes | None:
    """What was found, or where it came without a record of its own, what the accepted reply had said."""
    sealed = found.sealed_record or action.sealed_result
    return bytes(sealed) if sealed else None


def _from_reply(step: Step) -> tuple[str, bytes | None]:
    if step.classified is None or step.classified.result is NO_RESULT:
        kept = step.action.sealed_result
        return step.action.external_id, bytes(kept) if kept else None
    return step.classified.external_id, vault.seal(step.case.definition.keys, step.classified.result)
