"""Effects that a connector lists, held against what the record admits: what nobody admits is a person's question.

An effect is admitted by a call that the other system saw our reference or key of, or that is recorded under its id.
A call that is closed as without an effect admits none: there the record is contradicted. A question about an effect
that belongs to no run hangs on a run of its own, of origin "outside", which no agent can touch.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Q
from steadyhand.connector import Listed
from steadyhand.contract import OpenRun

from recovery import endings, escalation, settle
from recovery.connectors import listing
from recovery.models import Gap, OutsideSweep
from recovery.rules import messages
from runs import definitions, record, redact, vault
from runs.models import WITHOUT_EFFECT, Action, AgentClient, Attempt, Effect, Run, Workflow
from runs.querysets import read_clock
from runs.record import Actor

ORIGIN = "outside"
LISTING = "listing"
STRENGTH = 5
_DENIED = tuple(state for state in WITHOUT_EFFECT if state != "compensated")


@dataclass
class Admitted:
    """Which calls stand behind what was listed: by our id, by the key that was sent, and by the other side's id."""

    by_word: dict[str, uuid.UUID] = field(default_factory=dict)
    by_id: dict[str, uuid.UUID] = field(default_factory=dict)

    def call_of(self, one: Listed) -> uuid.UUID | None:
        words = [self.by_word.get(word) for word in (one.reference, one.key) if word]
        return next((call for call in (*words, self.by_id.get(one.external_id)) if call is not None), None)


def compare(sweep: OutsideSweep, found: Sequence[Listed], actor: Actor) -> int:
    """Hold a whole listing against the record; returns how many new questions it raised. Nothing is asked twice."""
    admitted = _admitted(found)
    by_call: dict[uuid.UUID, list[Listed]] = {}
    nobodys: dict[str, Listed] = {}
    for one in found:
        call = admitted.call_of(one)
        if call is None:
            nobodys[one.external_id] = one
        else:
            by_call.setdefault(call, []).append(one)
    new = _new(sweep, nobodys)
    for one in new:
        _open_gap(sweep, one, actor)
    return len(new) + sum(_hold_against(sweep, call, by_call[call], actor) for call in _doubtful(by_call))


def unlisted(sweep: OutsideSweep, why: str, actor: Actor) -> None:
    """Ask a person why nothing can be listed; the run that holds this question stays until a listing succeeds."""
    ref = f"unlisted:{sweep.connector}:{sweep.listed_until.isoformat(timespec='seconds')}"
    intent = f"Listing what happened at {sweep.connector}. {why}"
    sweep.run = _outside_run(sweep.workflow, ref, intent)
    OutsideSweep.objects.filter(pk=sweep.pk).update(run=sweep.run)
    endings.escalate_run(sweep.run, "effects_unlisted", actor)


def listed_again(sweep: OutsideSweep, actor: Actor) -> None:
    """It can be listed: the question is answered, and the run that held it is over."""
    run = record.lock_run(sweep.run_id) if sweep.run_id else None
    OutsideSweep.objects.filter(pk=sweep.pk).update(run=None)
    if run is None or run.ended_at is not None:
        return
    escalation.resolve_tasks(run, action=None, actor=actor, resolution="It can be listed again.")
    record.move_run(
        run, "completed", actor, kind="completed", outcome="ok", reason_code="completed",
        customer_message=messages.customer_message("completed"), operator_detail="",
    )  # fmt: skip


def _admitted(found: Iterable[Listed]) -> Admitted:
    words = {word for one in found for word in (one.reference, one.key) if word}
    ids = {one.external_id for one in found}
    known = Admitted()
    calls = Action.objects.filter(Q(action_id__in=words) | Q(idempotency_key__in=words), role__in=("call", "undo"))
    for pk, action_id, key in calls.values_list("pk", "action_id", "idempotency_key"):
        known.by_word |= {action_id: pk, key: pk} if key else {action_id: pk}
    tries = Attempt.objects.filter(idempotency_key__in=words).exclude(idempotency_key="")
    known.by_word |= dict(tries.values_list("idempotency_key", "action_id"))
    known.by_id = dict(Effect.objects.filter(external_id__in=ids).values_list("external_id", "action_id"))
    return known


def _doubtful(by_call: dict[uuid.UUID, list[Listed]]) -> list[uuid.UUID]:
    """Calls that the listing may contradict: only their runs are locked, for all others' agents are at work there."""
    calls = Action.objects.filter(pk__in=list(by_call)).order_by("run_id", "id")
    return [call.pk for call in calls.only("external_id", "state") if _contradicted(call, by_call[call.pk])]


def _contradicted(action: Action, found: list[Listed]) -> bool:
    return len(_ids(action, found)) > 1 or action.state in _DENIED


def _ids(action: Action, found: list[Listed]) -> list[str]:
    return sorted({one.external_id for one in found} | ({action.external_id} if action.external_id else set()))


def _hold_against(sweep: OutsideSweep, call: uuid.UUID, found: list[Listed], actor: Actor) -> int:
    """Two effects of one call, or one of a call that is said to have had none, are evidence against the record."""
    run = record.lock_run(Action.objects.values_list("run_id", flat=True).get(pk=call))
    action = Action.objects.get(pk=call)
    ids = _ids(action, found)
    if run is None or not _contradicted(action, found):
        return 0
    if action.evidence.filter(kind=LISTING, external_id=ids[-1]).exists():
        return 0
    twice = len(ids) > 1
    record.add_evidence(
        action,
        run=run,
        kind=LISTING,
        verdict="conflict" if twice else "present",
        count=len(ids),
        source=sweep.connector,
        strength=STRENGTH,
        fact=f"The listing of {sweep.connector} holds {', '.join(ids)} under our reference.",
        raw=redact.redact([listing.plain(one) for one in found[:10]]),
        external_id=ids[-1],
        started_at=max(one.at for one in found),
    )
    settle.ask_if_contradicted(run, action, actor)
    return 1


def _new(sweep: OutsideSweep, nobodys: dict[str, Listed]) -> list[Listed]:
    """Those that were not asked about before."""
    known = Gap.objects.filter(connector=sweep.connector, external_id__in=list(nobodys))
    asked = set(known.values_list("external_id", flat=True))
    return [one for external_id, one in nobodys.items() if external_id not in asked]


def _open_gap(sweep: OutsideSweep, one: Listed, actor: Actor) -> None:
    intent = f"{one.external_id} at {sweep.connector}: which call made it?"
    run = _outside_run(sweep.workflow, f"gap:{sweep.connector}:{one.external_id}"[:200], intent)
    Gap.objects.create(
        tenant_id=sweep.tenant_id, connector=sweep.connector, external_id=one.external_id, run=run,
        reference=redact.clean_text(one.reference, 200), happened_at=one.at,
        raw=redact.redact(listing.plain(one)),
    )  # fmt: skip
    data = {"connector": sweep.connector, "external_id": one.external_id, "happened_at": one.at.isoformat()}
    record.write_event(run, "gap_found", actor, reason=_sentence(sweep, one.external_id, one.at), data=data)
    endings.escalate_run(run, "unadmitted_effect", actor)


def _sentence(sweep: OutsideSweep, external_id: str, at: datetime) -> str:
    return f"{sweep.connector} lists {external_id}, made at {at:%Y-%m-%d %H:%M:%S} UTC, and no call admits it."


def _outside_run(workflow: Workflow, ref: str, intent: str) -> Run:
    """A run that holds a question about what happened outside; its client signs in nowhere."""
    client = _nobody(workflow.tenant_id)
    manifest = definitions.of_workflow(workflow, workflow.tenant).manifest
    request = OpenRun(workflow=workflow.name, client_ref=redact.clean_text(ref, 200), intent=intent[:2000])
    run = record.open_run(request, client=client, workflow=workflow, manifest=manifest)
    Run.objects.filter(pk=run.pk).update(origin=ORIGIN)
    run.refresh_from_db()
    return run


def _nobody(tenant_id: uuid.UUID) -> AgentClient:
    """The client of such runs: revoked from its first moment, with a secret that nobody was told."""
    now = read_clock()
    found = AgentClient.objects.filter(name=ORIGIN, revoked_at__isnull=False).order_by("id").first()
    return found or AgentClient.objects.create(
        tenant_id=tenant_id, name=ORIGIN, secret_hash=vault.hash_secret(os.urandom(32).hex()), workflows=[],
        expires_at=now, revoked_at=now,
    )  # fmt: skip
