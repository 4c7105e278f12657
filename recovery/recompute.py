"""A recorded recommendation decided again, from its own row: the same, or what differs (DECISIONS 2)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from recovery.models import Decision
from recovery.rules import snapshots
from recovery.rules.decide import TABLE_VERSION, NextAction
from recovery.rules.snapshots import Again


def find(decision_id: uuid.UUID) -> Decision | None:
    """The decision inside the open wall; None for a missing one and a foreign one alike."""
    return Decision.objects.filter(pk=decision_id).select_related("by").first()


def differs(decision: Decision) -> str | None:
    """What comes out otherwise today, in a line; None where nothing does. Raises snapshots.Unreadable."""
    again = snapshots.again(decision.snapshot)
    return next(_differences(decision, again), None)


def lines(decision: Decision) -> Iterator[str]:
    """Then and now, a line each. Raises snapshots.Unreadable."""
    again = snapshots.again(decision.snapshot)
    who = str(decision.by) if decision.by else f"the {decision.actor_kind}"
    yield f"{decision.verb} by {who} at {decision.requested_at.isoformat()}, allowed by rule {decision.rule}"
    yield f"then  {_said(again.then)}, table version {again.version_then}"
    yield f"now   {_said(again.now)}, table version {TABLE_VERSION}"
    yield from _differences(decision, again) if differs(decision) else ["The same."]


def _differences(decision: Decision, again: Again) -> Iterator[str]:
    if not again.intact:
        yield "The stored facts do not fit their digest: somebody changed them."
    if snapshots.hash_in(decision.snapshot) != decision.evidence_hash:
        yield "The stored facts do not fit the evidence hash of the decision."
    for name, (was, now) in again.differing.items():
        yield f"Differs: {name} was {was} and comes out as {now}."
    if again.then != again.now:
        version = again.version_then
        table = "the same table" if version == TABLE_VERSION else f"table {version} then, {TABLE_VERSION} now"
        yield f"Differs: {_said(again.then)} became {_said(again.now)} ({table})."


def _said(answer: NextAction) -> str:
    return f"{answer.action} by rule {answer.rule} ({answer.reason})"
