"""Taking in what came back: one statement for a reply that proves itself, else evidence, table and record."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

from steadyhand.contract import OUTCOME_OF, Observation, Report, Reported
from steadyhand.manifest import Tool

from recovery import case as cases
from recovery import leases, settle
from recovery.answers import Conflict, NotFound, seconds_between
from recovery.clients import Credentials, NotAuthenticated
from recovery.proposal import LEASE_GRACE_SECONDS
from recovery.rules import assembly, messages
from recovery.rules.classify import Classified, classify
from recovery.rules.decide import Action as Answer
from recovery.tasks import ring
from recovery.work import sweep
from runs import definitions, hot, record, redact, vault
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
    if tool is None or not _proves_itself(tool):
        return None
    found = _classify(facts.definition, tool, told.observation)
    if found.observed != "ok_valid" or found.reason != "completed":
        return None
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
        observation=json.dumps(_redacted(told.observation, tool)),
        result=vault.seal(facts.definition.keys, found.result),
        external_id=found.external_id,
        effect=new_id(),
        event=new_id(),
        request=request_id,
        ceiling=_ceiling(facts.definition, tool),
        recount=_recount_after(facts.definition, tool),
        rule="2c" if tool.effect == "read" else "7a",
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
    found = _classify(definition, tool, told.observation)
    if attempt.fence != told.fence:
        raise Conflict("The fence is not the one of this attempt's permit.")
    if attempt.ended_at is None and attempt.lease_until > read_clock():
        _end(run, attempt, told.observation, tool, found)
        action.refresh_from_db()
        _key_conflict(run, action, found)
        settle.settle(run, action, actor, classified=found)
        _look_at_once(run, action, tool)
    elif _is_news(attempt, found):
        _late(run, attempt, told.observation, tool, found, actor)
        run.refresh_from_db()
        action.refresh_from_db()
    return answer(run, action, definition)


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
        return Reported(answer="error", error=messages.error_for_model(reason, field=action.error_field), **common)
    if _may_go_again(action) and run.goal == "forward":
        now = read_clock()
        wait = seconds_between(now, action.due_at) if action.due_at else 0.0
        return Reported(answer="again", wait_seconds=wait, due_at=action.due_at, **common)
    if run.goal != "forward":
        return Reported(answer="stop", error=messages.error_for_model(reason), **common)
    return Reported(
        answer="suspend",
        due_at=action.due_at,
        error=messages.error_for_model(reason, field=action.error_field),
        **common,
    )


def _may_go_again(action: Action) -> bool:
    return action.state == "refused_transient" or (
        action.state == "unknown" and action.reason_code in settle.SENT_AGAIN
    )


def lease_extension(run: Run, attempt: Attempt) -> timedelta:
    """How far one heartbeat carries a lease: as far as the permit did."""
    tool = definitions.of_run(run).tools[attempt.action.tool]
    return timedelta(seconds=tool.timeout_seconds + LEASE_GRACE_SECONDS)


def _end(run: Run, attempt: Attempt, observation: Observation, tool: Tool, found: Classified) -> None:
    record.end_attempt(
        attempt,
        fence=attempt.fence,
        observed=found.observed,
        reason_code=found.reason,
        latency_ms=observation.latency_ms,
        retry_after_seconds=found.retry_after_seconds,
        observation=_redacted(observation, tool),
    )
    run.refresh_from_db()


def _late(run: Run, attempt: Attempt, observation: Observation, tool: Tool, found: Classified, actor: Actor) -> None:
    """A report after its lease: evidence that may settle the question, under no lease of its own (F058, I6).

    Only a valid reply says something new; a late refusal or error leaves the outcome to the look-up. Where the
    contract asks for a look, a late reply proves as little as a timely one.
    """
    leases.expire_of_run(run)
    action = Action.objects.get(pk=attempt.action_id)
    if attempt.observation is None:
        Attempt.objects.filter(pk=attempt.pk).update(
            observation=_redacted(observation, tool), latency_ms=observation.latency_ms
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
        raw=_redacted(observation, tool),
        sealed_record=vault.seal(definitions.of_run(run).keys, found.result) if valid else None,
        external_id=found.external_id,
        after_attempt=attempt.number,
        started_at=attempt.dispatched_at,
    )
    if valid and action.settled_at is None and action.state != "permitted":
        settle.settle(run, action, actor)
    else:
        settle.ask_if_contradicted(run, action, actor)


def _is_news(attempt: Attempt, found: Classified) -> bool:
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


def _key_conflict(run: Run, action: Action, found: Classified) -> None:
    """The provider knows our key with other arguments: a contradiction that only a person resolves (F047)."""
    if found.key_conflict or found.processing:
        record.add_evidence(
            action,
            run=run,
            kind="reply",
            verdict="conflict" if found.key_conflict else "processing",
            source="provider",
            strength=STRENGTH_OWN_REPLY,
            fact=found.detail,
            started_at=read_clock(),
        )


def _classify(definition: Definition, tool: Tool, observation: Observation) -> Classified:
    return classify(observation, tool, clock=read_clock, breach=lambda result: definition.check_result(tool, result))


def _proves_itself(tool: Tool) -> bool:
    return tool.effect == "read" or tool.proof == "reply"


def _recount_after(definition: Definition, tool: Tool) -> float | None:
    connector = definition.connector(tool)
    return assembly.recount_after(tool, connector.kind if connector else None)


def _ceiling(definition: Definition, tool: Tool) -> int | None:
    """Above this amount a reply alone is no proof, where a look-up can be had (DECISIONS 2)."""
    return definition.manifest.value_threshold_minor if tool.effect == "write" and tool.reconcile else None


def _redacted(observation: Observation, tool: Tool) -> dict[str, Any]:
    """What came back, fit to be stored: the body as JSON if it is, redacted by field, else as cut text."""
    plain = observation.model_dump(mode="json", exclude_none=True, exclude={"body"})
    plain["headers"] = {name: value for name, value in observation.headers.items() if name.lower() in _HEADERS_KEPT}
    plain = redact.redact(plain)
    if observation.body is not None:
        plain["body"] = _body(observation.body, tool)
    return dict(plain)


def _body(text: str, tool: Tool) -> Any:
    try:
        return redact.redact(json.loads(text), sensitive=tool.sensitive_fields)
    except (ValueError, RecursionError):
        return redact.clean_text(text)


_HEADERS_KEPT = ("content-type", "retry-after", "date", "location", "x-request-id", "idempotent-replayed")
