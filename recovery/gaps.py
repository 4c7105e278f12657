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
from typing import Any

from django.db.models import Q
from steadyhand.connector import Ask, Listed
from steadyhand.contract import OpenRun
from steadyhand.judging import Seen, fields_of
from steadyhand.manifest import Tool
from steadyhand.paths import MISSING, dig

from recovery import endings, escalation, settle
from recovery.connectors import listing
from recovery.models import Gap, OutsideSweep
from recovery.rules import foreign, messages
from runs import definitions, record, redact, vault
from runs.models import WITHOUT_EFFECT, Action, AgentClient, Attempt, Effect, Run, Workflow
from runs.querysets import read_clock
from runs.record import Actor

ORIGIN = "outside"
LISTING = "listing"
STRENGTH = 5
MOST_OF_ONE_CALL = 10
MOST_ASKED_ONE_BY_ONE = 50
MOST_NAMED = 100
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
    """Hold a whole listing against the record; returns how many new questions it raised. Nothing is asked twice.

    Of many effects that nobody admits the first have a question each, and all others one together: whoever sees the
    first ones sees why, and a queue of thousands hides everything else.
    """
    admitted = _admitted(sweep.connector, found)
    by_call: dict[uuid.UUID, list[Listed]] = {}
    nobodys: dict[str, Listed] = {}
    for one in found:
        call = admitted.call_of(one)
        if call is None:
            nobodys[one.external_id] = one
        else:
            by_call.setdefault(call, []).append(one)
    new = _new(sweep, nobodys)
    rest = new[MOST_ASKED_ONE_BY_ONE:]
    for one in new[:MOST_ASKED_ONE_BY_ONE]:
        _open_gap(sweep, one, actor)
    if rest:
        _open_together(sweep, rest, actor)
    asked = min(len(new), MOST_ASKED_ONE_BY_ONE) + bool(rest)
    return asked + sum(_hold_against(sweep, call, by_call[call], actor) for call in _doubtful(by_call))


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


def _admitted(connector: str, found: Iterable[Listed]) -> Admitted:
    words = {word for one in found for word in (one.reference, one.key) if word}
    ids = {one.external_id for one in found}
    known = Admitted()
    calls = Action.objects.filter(Q(action_id__in=words) | Q(idempotency_key__in=words), role__in=("call", "undo"))
    for pk, action_id, key in calls.values_list("pk", "action_id", "idempotency_key"):
        known.by_word |= {action_id: pk, key: pk} if key else {action_id: pk}
    tries = Attempt.objects.filter(idempotency_key__in=words).exclude(idempotency_key="")
    known.by_word |= dict(tries.values_list("idempotency_key", "action_id"))
    effects = Effect.objects.filter(external_id__in=ids).select_related("action", "run").order_by("id")
    known.by_id = {one.external_id: one.action_id for one in effects if _may_be_from(connector, one)}
    return known


def _may_be_from(connector: str, effect: Effect) -> bool:
    """Two systems may give the same id to different things: an effect of a tool that goes elsewhere admits none."""
    return _goes_to(connector, definitions.of_run(effect.run).tools[effect.action.tool])


def _goes_to(connector: str, tool: Tool) -> bool:
    declared = {part.connector for part in (tool.reconcile, tool.send) if part is not None}
    return not declared or connector in declared


def _shown(one: Listed, run: Run, connector: str) -> Any:
    """What was listed, without what any tool that may have made it declares as sensitive (SEC-34)."""
    tools = definitions.of_run(run).tools.values()
    hidden = [path for tool in tools if _goes_to(connector, tool) for path in tool.sensitive_fields]
    return redact.redact(listing.plain(one), sensitive=hidden)


def _doubtful(by_call: dict[uuid.UUID, list[Listed]]) -> list[uuid.UUID]:
    """Calls of which the listing says more than the record: only their runs are locked, for all others' agents are at
    work there."""
    calls = Action.objects.filter(pk__in=list(by_call)).order_by("run_id", "id")
    return [call.pk for call in calls.only("external_id", "state") if _says_more(call, by_call[call.pk])]


def _says_more(action: Action, found: list[Listed]) -> bool:
    return action.state in _DENIED or any(one.external_id != action.external_id for one in found)


def _hold_against(sweep: OutsideSweep, call: uuid.UUID, found: list[Listed], actor: Actor) -> int:
    """Keep each effect of a call that the record does not know yet, for the next listing may hold another one.

    Two effects of one call, or one of a call that is said to have had none, are a person's question; one of a call
    that is still open speaks like a look, so that it is not sent again (F028, F029).
    """
    run = record.lock_run(Action.objects.values_list("run_id", flat=True).get(pk=call))
    if run is None:
        return 0
    action = Action.objects.get(pk=call)
    denied = action.state in _DENIED
    kept = set(action.evidence.filter(kind=LISTING).values_list("external_id", flat=True))
    admitted = {action.external_id} - {""} if not denied else set()
    new = {one.external_id: one for one in found if one.external_id not in kept | admitted}
    ids = sorted(kept | admitted | new.keys())
    for one in list(new.values())[:MOST_OF_ONE_CALL]:
        _keep(sweep, run, action, one, ids)
    if not new or (len(ids) < 2 and action.state == "succeeded"):
        return 0
    if action.settled_at is None and action.attempts and action.state != "permitted":
        settle.settle(run, action, actor)
    else:
        settle.ask_if_contradicted(run, action, actor)
    return 1 if denied or len(ids) > 1 else 0


def _keep(sweep: OutsideSweep, run: Run, action: Action, one: Listed, ids: list[str]) -> None:
    verdict = "conflict" if len(ids) > 1 else _verdict_on(run, action, one)
    record.add_evidence(
        action,
        run=run,
        kind=LISTING,
        verdict=verdict,
        count=len(ids),
        source=sweep.connector,
        strength=STRENGTH,
        fact=f"The listing of {sweep.connector} holds {', '.join(ids[:10])} under our reference.",
        raw=_shown(one, run, sweep.connector),
        sealed_record=_sealed(run, action, one) if verdict == "present" else None,
        external_id=one.external_id,
        started_at=one.at,
    )


def _sealed(run: Run, action: Action, one: Listed) -> bytes | None:
    """What the call returns if the listing proves it: the part of the record that a look would take (7a)."""
    definition = definitions.of_run(run)
    rule = definition.tools[action.tool].reconcile
    path = rule.look.result if rule is not None and rule.look is not None else None
    result = one.record if path is None else dig(one.record, path)
    return None if result is None or result is MISSING else vault.seal(definition.keys, result)


def _verdict_on(run: Run, action: Action, one: Listed) -> str:
    """What one listed effect says of its call: ours only if its fields are, as for a look (F044, F045)."""
    definition = definitions.of_run(run)
    rule = definition.tools[action.tool].reconcile
    seen = Seen("present", 1, one.external_id, one.record)
    if rule is None or not rule.match or action.state in _DENIED:
        return seen.verdict
    arguments = vault.unseal(definition.keys, bytes(action.sealed_arguments))
    asked = Ask(action.tool, action.action_id, str(run.pk), action.idempotency_key, arguments)
    return fields_of(seen, rule.match, asked).verdict


def _new(sweep: OutsideSweep, nobodys: dict[str, Listed]) -> list[Listed]:
    """Those that were not asked about before."""
    known = Gap.objects.filter(connector=sweep.connector, external_id__in=list(nobodys))
    asked = set(known.values_list("external_id", flat=True))
    return [one for external_id, one in nobodys.items() if external_id not in asked]


def _open_gap(sweep: OutsideSweep, one: Listed, actor: Actor) -> None:
    intent = f"{one.external_id} at {sweep.connector}: which call made it?"
    run = _outside_run(sweep.workflow, f"gap:{sweep.connector}:{one.external_id}", intent)
    _gap(sweep, one, run).save(force_insert=True)
    data = {"connector": sweep.connector, "external_id": one.external_id, "happened_at": one.at.isoformat()}
    record.write_event(run, "gap_found", actor, reason=_sentence(sweep, one.external_id, one.at), data=data)
    endings.escalate_run(run, "unadmitted_effect", actor)


def _open_together(sweep: OutsideSweep, found: Sequence[Listed], actor: Actor) -> None:
    """One question about all of them: how many, since when, and the first ids. Each is kept as a gap of its run."""
    begun, ended = (pick(one.at for one in found) for pick in (min, max))
    ids = [one.external_id for one in found[:MOST_NAMED]]
    span = f"made from {begun:%Y-%m-%d %H:%M:%S} to {ended:%Y-%m-%d %H:%M:%S} UTC"
    words = f"{sweep.connector} lists {len(found)} more, {span}, and no call admits them."
    unnamed = f" and {len(found) - len(ids)} more" if len(found) > len(ids) else ""
    ref = f"gaps:{sweep.connector}:{ids[0]}"
    run = _outside_run(sweep.workflow, ref, f"{words} Which calls made them? {', '.join(ids)}{unnamed}")
    Gap.objects.bulk_create([_gap(sweep, one, run) for one in found], batch_size=500)
    data = {"connector": sweep.connector, "count": len(found), "external_ids": ids}
    when = {"first_at": begun.isoformat(), "last_at": ended.isoformat()}
    record.write_event(run, "gaps_found", actor, reason=words, data=data | when)
    endings.escalate_run(run, "unadmitted_effect", actor)


def _gap(sweep: OutsideSweep, one: Listed, run: Run) -> Gap:
    return Gap(
        tenant_id=sweep.tenant_id, connector=sweep.connector, external_id=one.external_id, run=run,
        reference=redact.clean_text(one.reference, 200), happened_at=one.at,
        raw=_shown(one, run, sweep.connector),
    )  # fmt: skip


def _sentence(sweep: OutsideSweep, external_id: str, at: datetime) -> str:
    return f"{sweep.connector} lists {external_id}, made at {at:%Y-%m-%d %H:%M:%S} UTC, and no call admits it."


def _outside_run(workflow: Workflow, ref: str, intent: str) -> Run:
    """A run that holds a question about what happened outside; its client signs in nowhere."""
    client = _nobody(workflow.tenant_id)
    manifest = definitions.of_workflow(workflow, workflow.tenant).manifest
    request = OpenRun(workflow=workflow.name, client_ref=foreign.name(ref), intent=redact.clean_text(intent, 2000))
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
