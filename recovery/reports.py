"""Taking in what came back: one statement for a reply that proves itself, else evidence, table and record."""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from typing import Any

from steadyhand.contract import OUTCOME_OF, Observation, Report, Reported
from steadyhand.manifest import Tool

from recovery import callbacks, circuits, course, crashpoints, fallbacks, leases, recollection, settle, sightings
from recovery import case as cases
from recovery.answers import Conflict, NotFound, moment, seconds_between
from recovery.clients import Credentials, NotAuthenticated
from recovery.rules import bounds, messages
from recovery.rules.classify import NOTHING_KNOWN, Before, Classified, classify
from recovery.rules.decide import Action as Answer
from recovery.tasks import ring
from recovery.work import orders, sweep
from runs import definitions, hot, record, vault
from runs.definitions import Definition, RunFacts
from runs.ids import new_id
from runs.models import Action, Attempt, Evidence, Run
from runs.querysets import read_clock
from runs.record import Actor

STRENGTH_OWN_REPLY = 4


def quickly(
    who: Credentials, run_id: uuid.UUID, attempt_id: uuid.UUID, told: Report, facts: RunFacts, *, request_id: str
) -> Reported | None:
    """Record an ordinary valid reply in one statement; None where the case must be read. Raises NotAuthenticated."""
    tool = facts.definition.tools.get(told.tool or "")
    if tool is None or not _proves_itself(tool) or fallbacks.stands_in(facts.definition, tool):
        return None
    found = _classify(facts.definition, tool, told.observation)
    if found.observed != "ok_valid" or found.reason != "completed":
        return None
    crashpoints.point("C13")
    row = hot.settle(
        tenant=who.tenant_id,
        client=who.client_id,
        secret=who.secret_hash,
        run=run_id,
        workflow=facts.definition.id,
        tool=tool.name,
        attempt=attempt_id,
        fence=told.fence,
        latency=told.observation.latency_ms,
        observation=json.dumps(sightings.kept(told.observation, tool)),
        result=vault.seal(facts.definition.keys, found.result),
        external_id=found.external_id,
        effect=new_id(),
        event=new_id(),
        request=request_id,
        ceiling=_ceiling(facts.definition, tool),
        recount=_recount_after(facts.definition, tool),
        rule="2c" if tool.effect == "read" else "7a",
        echo=json.dumps(found.echo) if found.echo else None,
    )
    if row["client"] is None:
        raise NotAuthenticated
    if row["step"] is None:
        return None
    return Reported(
        answer="result",
        step=row["step"],
        outcome=OUTCOME_OF["completed"],
        reason_code="completed",
        result=found.result,
    )


def under_lock(run: Run, attempt_id: uuid.UUID, told: Report, actor: Actor) -> Reported:
    """Record any report: the attempt ends as what it was, and the table says what follows."""
    attempt = Attempt.objects.filter(pk=attempt_id, run=run).select_related("action").first()
    if attempt is None:
        raise NotFound
    definition, action = definitions.of_run(run), attempt.action
    tool = definition.tools[action.tool]
    if attempt.fence != told.fence:
        raise Conflict("The fence is not the one of this attempt's permit.")
    found = read_as(run, attempt, told.observation)
    if attempt.ended_at is None and attempt.lease_until > read_clock():
        end(run, attempt, told.observation, found)
        circuits.heard(attempt, tool, definition, told.observation, found)
        action.refresh_from_db()
        settle.settle(run, action, actor, classified=found)
        _look_at_once(run, action, tool)
    elif is_news(attempt, found):
        _late(run, attempt, told.observation, found, actor)
        run.refresh_from_db()
        action.refresh_from_db()
    callbacks.use_waiting(run, action)
    return answer(run, action, definition)


def read_as(run: Run, attempt: Attempt, observation: Observation) -> Classified:
    """What came back under an attempt, typed with everything in view that the record knows of its call."""
    definition = definitions.of_run(run)
    tool = definition.tools[attempt.action.tool]
    found = _classify(definition, tool, observation, recollection.before(run, attempt, definition))
    return fallbacks.checked(run, definition, tool, found)


def _look_at_once(run: Run, action: Action, tool: Tool) -> None:
    """A contract may ask for its first look without delay: then it does not wait for the next sweep."""
    at_once = tool.reconcile is not None and tool.reconcile.first_look_seconds == 0
    if at_once and action.due_at is not None and cases.read(run, action).answer.action is Answer.PROBE:
        sweep.act_on_due(run, action, ring)


def answer(run: Run, action: Action, definition: Definition) -> Reported:
    """What the record says about a call now, in the boundary's words."""
    reason = action.reason_code or "external_outcome_unknown"
    common: dict[str, Any] = {"step": action.step, "outcome": OUTCOME_OF[reason], "reason_code": reason}
    if action.state == "succeeded":
        result = vault.unseal(definition.keys, action.sealed_result) if action.sealed_result else None
        return Reported(answer="result", result=result, **common)
    if action.state in ("refused_permanent", "rejected"):
        error = messages.error_for_model(reason, field=action.error_field, detail=sightings.said_of(action))
        return Reported(
            answer="error", error=fallbacks.name_in(error, definition.tools.get(action.tool), reason), **common
        )
    if _may_go_again(action) and run.goal == "forward":
        now = read_clock()
        wait = seconds_between(now, action.due_at) if action.due_at else 0.0
        return Reported(answer="again", wait_seconds=wait, due_at=action.due_at, **common)
    if run.goal != "forward":
        return Reported(answer="stop", error=messages.error_for_model(reason), **common)
    since = orders.under_way_since(action)
    if since is not None:
        return Reported(answer="again", wait_seconds=moment(read_clock(), since), **common)
    return Reported(
        answer="suspend",
        due_at=action.due_at,
        error=messages.error_for_model(reason, field=action.error_field),
        **common,
    )


def _may_go_again(action: Action) -> bool:
    return action.state == "refused_transient" or course.goes_again_unsettled(action)


def end(
    run: Run, attempt: Attempt, observation: Observation, found: Classified, *, ended_at: datetime | None = None
) -> None:
    """End an attempt with what came back, and keep what the answer says beside its outcome; the table comes later."""
    tool = definitions.of_run(run).tools[attempt.action.tool]
    record.end_attempt(
        attempt,
        run=run,
        fence=attempt.fence,
        ended_at=ended_at or read_clock(),
        observed=found.observed,
        reason_code=found.reason,
        latency_ms=observation.latency_ms,
        retry_after_seconds=found.retry_after_seconds,
        observation=sightings.noted(observation, tool, found),
    )
    run.refresh_from_db()
    _beside_its_outcome(run, attempt.action, found)


def _late(run: Run, attempt: Attempt, observation: Observation, found: Classified, actor: Actor) -> None:
    """A report after its lease: evidence that may settle the question, under no lease of its own (F058, I6)."""
    leases.expire_of_run(run)
    action = Action.objects.get(pk=attempt.action_id)
    keep_late(run, action, attempt, observation, found, actor)
    if found.observed == "ok_valid" and action.settled_at is None and action.state != "permitted":
        settle.settle(run, action, actor)
    else:
        settle.ask_if_contradicted(run, action, actor)


def keep_late(
    run: Run, action: Action, attempt: Attempt, observation: Observation, found: Classified, actor: Actor
) -> None:
    """Keep a report that came after its attempt had ended as evidence.

    Only a valid reply says something new; a late refusal or error leaves the outcome to the look-up. Where the
    contract asks for a look, a late reply proves as little as a timely one.
    """
    tool = definitions.of_run(run).tools[action.tool]
    if attempt.observation is None:
        Attempt.objects.filter(pk=attempt.pk).update(
            observation=sightings.noted(observation, tool, found), latency_ms=observation.latency_ms
        )
    valid = found.observed == "ok_valid"
    record.add_evidence(
        action,
        run=run,
        kind="late_report",
        verdict="present" if valid and _is_proof(run, action, tool) else "none",
        count=1 if valid else None,
        source=actor.name,
        strength=STRENGTH_OWN_REPLY if valid else 1,
        fact="A valid reply arrived after its lease had ended."
        if valid
        else f"A late report: {found.detail or found.reason}",
        raw=sightings.kept(observation, tool),
        sealed_record=vault.seal(definitions.of_run(run).keys, found.result) if valid else None,
        external_id=found.external_id,
        after_attempt=attempt.number,
        started_at=attempt.dispatched_at,
    )


def is_news(attempt: Attempt, found: Classified) -> bool:
    """The first word about this try, or, once, the valid reply that came after we had given it up (F058)."""
    if attempt.observation is None:
        return True
    given_up = attempt.observed == "unknown" and found.observed == "ok_valid"
    told = Evidence.objects.filter(action_id=attempt.action_id, kind="late_report", after_attempt=attempt.number)
    return given_up and not told.exists()


def _is_proof(run: Run, action: Action, tool: Tool) -> bool:
    ceiling = _ceiling(definitions.of_run(run), tool)
    small = ceiling is None or action.value_minor is None or action.value_minor <= ceiling
    return tool.effect == "write" and tool.proof == "reply" and small


def _beside_its_outcome(run: Run, action: Action, found: Classified) -> None:
    """What a reply says beside its outcome: a contradiction, for a person (F047), or that the work goes on."""
    if found.key_conflict or found.conflict or found.processing:
        record.add_evidence(
            action,
            run=run,
            kind="reply",
            verdict="processing" if found.processing else "conflict",
            source="provider",
            strength=STRENGTH_OWN_REPLY,
            fact=found.detail,
            started_at=read_clock(),
        )


def _classify(
    definition: Definition, tool: Tool, observation: Observation, before: Before = NOTHING_KNOWN
) -> Classified:
    return classify(
        observation,
        tool,
        clock=read_clock,
        breach=lambda result: definition.check_result(tool, result),
        before=before,
    )


def _proves_itself(tool: Tool) -> bool:
    """Not where a callback may have come first: what it said has to be read beside the reply (F073)."""
    return tool.callback is None and tool.batch is None and (tool.effect == "read" or tool.proof == "reply")


def _recount_after(definition: Definition, tool: Tool) -> float | None:
    connector = definition.connector(tool)
    return bounds.recount_after(tool, connector.kind if connector else None)


def _ceiling(definition: Definition, tool: Tool) -> int | None:
    """Above this amount a reply alone is no proof, where a look-up can be had (DECISIONS 2)."""
    return definition.manifest.value_threshold_minor if tool.effect == "write" and tool.reconcile else None
