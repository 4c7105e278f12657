"""One record of what happened elsewhere becomes the facts that it tells, at the time at which it happened.

Each function takes a story and a record and returns whether that was news. It writes nothing before it has checked
everything, and raises Bad with the field at fault and the remedy.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, cast

from django.db.models import F
from steadyhand.contract import (
    Finish,
    OpenRun,
    RecordedCall,
    RecordedCancel,
    RecordedDispatch,
    RecordedFinish,
    RecordedObservation,
    RecordedRun,
    RecordedTurn,
    Turn,
)

from recovery import callbacks, endings, lifecycle, proposal, reports, settle, turns
from recovery.answers import Conflict, NotFound
from recovery.proposal import LEASE_GRACE_SECONDS, Prepared
from recovery.rules.classify import Classified
from recovery.story import ORIGIN, Bad, Story, call_of, open_run_of, prepared, run_of
from runs import definitions, record
from runs.ids import parse_id
from runs.models import Action, Attempt, Run
from runs.states import RUN_OPEN, may_move


def tell_run(story: Story, told: RecordedRun) -> bool:
    """The run, opened as an agent would; its own time begins now, for nobody here could have stopped it earlier."""
    asked = OpenRun(client_ref=told.run, **told.model_dump(exclude={"id", "run", "at", "kind"}))
    try:
        opened = story.opener(asked)
    except NotFound:
        raise Bad("workflow", "register this workflow first") from None
    except Conflict as crossed:
        raise Bad("run", str(crossed)) from None
    run_id = cast(uuid.UUID, parse_id(opened.run_id))
    if not opened.resumed:
        Run.objects.filter(pk=run_id).update(origin=ORIGIN, opened_at=story.at(told.at))
    story.run = story.run or record.lock_family(run_id)[-1]
    definitions.learn(story.run)
    return not opened.resumed


def tell_turn(story: Story, told: RecordedTurn) -> bool:
    run = open_run_of(story)
    turns.count_turn(run, Turn(usage=told.usage), story.actor)
    run.refresh_from_db()
    return True


def tell_call(story: Story, told: RecordedCall) -> bool:
    """What the agent asked for: proposed, whatever our own policy would have said. Sent it is by a dispatch only."""
    run = open_run_of(story)
    ready = prepared(run, told)
    if run.actions.filter(action_id=ready.action_id).exists():
        return False
    twin = run.actions.filter(
        tool=told.tool, arguments_hash=ready.arguments_hash, effect="write", settled_at__isnull=True
    ).first()
    if twin is not None and ready.tool.effect == "write":
        raise Bad("step", f"this is the call of step {twin.step}: tell its dispatches as attempts of that step")
    _count_call(story, run)
    action = _write_action(run, ready, story.at(told.at), told.key or "")
    record.write_event(run, "told", story.actor, action=action, to_state="proposed", data=_named(action))
    return True


def tell_dispatch(story: Story, told: RecordedDispatch) -> bool:
    """One sending. A try that is sent again before its answer came is unknown from then on."""
    run = open_run_of(story)
    action = call_of(run, told.step)
    if told.attempt <= action.attempts:
        return False
    if told.attempt > action.attempts + 1:
        raise Bad("attempt", f"send the dispatch of attempt {action.attempts + 1} first")
    at = story.at(told.at)
    if action.settled_at is not None:
        return _sent_after_the_end(story, run, action, at)
    _give_up_open_try(run, action, at)
    _make_way(story, run, action)
    tool = definitions.of_run(run).tools[action.tool]
    lease = tool.timeout_seconds + LEASE_GRACE_SECONDS
    record.grant_attempt(
        action, run=run, layer=told.layer, lease_seconds=lease, key=action.idempotency_key, actor=story.actor,
        dispatched_at=at,
    )  # fmt: skip
    Run.objects.filter(pk=run.pk).update(in_flight=F("in_flight") + 1, version=F("version") + 1)
    settle.refresh_run(run, story.actor)
    story.asked.pop(action.pk, None)
    return True


def tell_observation(story: Story, told: RecordedObservation) -> bool:
    """What came back. A made-up record of no result is evidence of nothing but that: the outcome stays open."""
    run = run_of(story)
    action = call_of(run, told.step)
    attempt = Attempt.objects.filter(action=action, number=told.attempt).select_related("action").first()
    if attempt is None:
        raise Bad("attempt", "send the dispatch of this attempt first")
    found = _no_result(action) if told.synthetic else reports.read_as(run, attempt, told.observation)
    at = story.at(told.at)
    in_time = at <= attempt.lease_until
    if in_time and _was_only_untold(action, attempt):
        _take_back(story, run, action, attempt)
    if attempt.ended_at is None and in_time:
        reports.end(run, attempt, told.observation, found, ended_at=at)
    elif not reports.is_news(attempt, found):
        return False
    else:
        _end_lease(run, attempt)
        reports.keep_late(run, attempt.action, attempt, told.observation, found, story.actor)
    if told.synthetic:
        record.write_event(run, "told_no_result", story.actor, action=action, data=_named(action))
    story.asked[action.pk] = found if attempt.number == action.attempts else None
    return True


def tell_cancel(story: Story, told: RecordedCancel) -> bool:
    run = run_of(story)
    ask_the_table(story)
    if run.state not in RUN_OPEN:
        return False
    lifecycle.cancel(run, story.actor, reason=told.reason)
    return True


def tell_finish(story: Story, told: RecordedFinish) -> bool:
    """The agent was done. What it asked for and nobody sent did not happen; what was refused stays refused."""
    run = run_of(story)
    ask_the_table(story)
    if run.state not in RUN_OPEN:
        return False
    for action in run.actions.filter(state="proposed"):
        to = "rejected" if action.reason_code else "void"
        reason = action.reason_code or "not_applied"
        record.move_action(action, to, story.actor, run=run, kind=to, reason_code=reason)
    settle.refresh_run(run, story.actor)
    lifecycle.finish(run, Finish(claim=told.claim, ended_by=told.ended_by), story.actor)
    return True


def ask_the_table(story: Story) -> None:
    """Settle every call about which something was told and of which no try is under way."""
    run = run_of(story)
    for pk, found in story.asked.items():
        action = Action.objects.get(pk=pk)
        if action.settled_at is not None:
            settle.ask_if_contradicted(run, action, story.actor)
        elif not action.tries.filter(ended_at__isnull=True).exists():
            settle.settle(run, action, story.actor, classified=found)
        action.refresh_from_db()
        callbacks.use_waiting(run, action)
        run.refresh_from_db()
    story.asked.clear()


# --- the parts ------------------------------------------------------------------------------------------------


def _count_call(story: Story, run: Run) -> None:
    """The call was made: past its ceiling it counts no more, and the run is a person's."""
    if run.tool_calls < run.max_tool_calls:
        Run.objects.filter(pk=run.pk).update(tool_calls=F("tool_calls") + 1, version=F("version") + 1)
        run.refresh_from_db()
    else:
        endings.escalate_run(run, "tool_call_budget_exhausted", story.actor)


def _write_action(run: Run, prepared: Prepared, at: datetime, key: str) -> Action:
    """It was made elsewhere, whatever our policy says of it: so it takes no piece of business for itself."""
    refusal = prepared.refusal
    return proposal.write_action(
        run, prepared, "proposed", idempotency_key=key, business_key="", created_at=at,
        reason_code=refusal.reason if refusal else None, error_field=refusal.field[:300] if refusal else "",
    )  # fmt: skip


def _sent_after_the_end(story: Story, run: Run, action: Action, at: datetime) -> bool:
    """A write that was proven and then sent again may stand twice: a person looks. Nothing else has a place here."""
    if (action.effect, action.state) != ("write", "succeeded"):
        raise Bad("attempt", f"this call was over ({action.state}): tell what was sent later under a step of its own")
    record.add_evidence(
        action,
        run=run,
        kind="told",
        verdict="conflict",
        source=story.actor.name,
        strength=1,
        fact="It was sent again after its effect was proven.",
        started_at=at,
    )
    settle.ask_if_contradicted(run, action, story.actor)
    return True


def _give_up_open_try(run: Run, action: Action, at: datetime) -> None:
    for attempt in action.tries.filter(ended_at__isnull=True).select_related("action"):
        _end_lease(run, attempt, at)


def _end_lease(run: Run, attempt: Attempt, at: datetime | None = None) -> None:
    """Nothing is known of this try from its lease's end on, or from the moment at which it was sent again."""
    if attempt.ended_at is not None:
        return
    ended: datetime = min(at or attempt.lease_until, attempt.lease_until)
    reason = "external_outcome_unknown" if attempt.action.effect == "write" else "provider_unavailable"
    record.end_attempt(attempt, run=run, fence=attempt.fence, ended_at=ended, observed="unknown", reason_code=reason)
    run.refresh_from_db()


def _was_only_untold(action: Action, attempt: Attempt) -> bool:
    """Given up because no answer had been told, with nothing learned or done about it since."""
    given_up = (attempt.observed, attempt.observation) == ("unknown", None) and attempt.number == action.attempts
    return given_up and action.state in ("unknown", "held", "refused_transient")


def _take_back(story: Story, run: Run, action: Action, attempt: Attempt) -> None:
    """The answer came in time and is only told late: the try is open again, to be ended by it."""
    Attempt.objects.filter(pk=attempt.pk).update(ended_at=None, observed=None, reason_code=None)
    Run.objects.filter(pk=run.pk).update(in_flight=F("in_flight") + 1, version=F("version") + 1)
    attempt.refresh_from_db()
    run.refresh_from_db()
    if action.state == "refused_transient":
        record.move_action(action, "unknown", story.actor, run=run, kind="told", reason_code="provider_unavailable")


def _make_way(story: Story, run: Run, action: Action) -> None:
    """It was sent again although its outcome was open: from where it stands no move leads to another try."""
    action.refresh_from_db()
    if action.state != "permitted" and not may_move("action", action.state, "permitted"):
        record.move_action(action, "held", story.actor, run=run, kind="held", reason_code="external_outcome_unknown")


def _no_result(action: Action) -> Classified:
    reason = "external_outcome_unknown" if action.effect == "write" else "provider_unavailable"
    return Classified("unknown", reason, detail="Made up: somebody noted that no result is there.")


def _named(action: Action) -> dict[str, Any]:
    return {"step": action.step, "tool": action.tool}
