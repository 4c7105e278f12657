"""What each line of a script makes somebody do, by its type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from steadyhand.contract import Cancel, Resume, Rollback, Usage
from steadyhand.identity import BadInput

from recovery import intake
from recovery.scenarios import letters, usages
from recovery.scenarios.calls import Call
from recovery.scenarios.format import Event
from recovery.scenarios.manifest import manifest_of
from recovery.scenarios.players import Agent
from runs import wall
from runs.models import Action
from runs.states import ACTION_SETTLED

if TYPE_CHECKING:
    from recovery.scenarios.runner import Play

GOING_NOWHERE = (*ACTION_SETTLED, "held", "awaiting_approval", "conflict", "partial_final")


def act(play: Play, event: Event) -> None:
    """Let the one whose line it is do what it says."""
    _DOES[event.type](play, event)


def is_blocked(play: Play, event: Event) -> bool:
    """Whether the agent is still busy with something that came before this line in the script.

    It works on one call at a time, unless the script itself has the next one sent before the last one's answer.
    """
    agent = play.agent_of(event)
    if not agent.alive:
        return any(other.type in ("recovery", "resume") for other in play.script)
    return any(_holds_up(play, agent, call, event) for call in agent.calls)


def _holds_up(play: Play, agent: Agent, call: Call, event: Event) -> bool:
    if call.stage == "in_flight":
        awaited = call.awaits.index if call.awaits is not None else -1
        if event.index > awaited:
            return True
        return event.type == "tool_call" and not _sent_before(play, event, awaited)
    if call.stage != "waiting":
        return False
    upcoming = play.world.upcoming(call.step)
    return upcoming is not None and upcoming.index < event.index and _goes_on(agent, call)


def _sent_before(play: Play, event: Event, index: int) -> bool:
    sends = [one for one in play.scenario.of_type("dispatch") if one.step == event.step]
    return any(event.index < one.index < index for one in sends)


def _goes_on(agent: Agent, call: Call) -> bool:
    """Whether the product still has something planned for this call."""
    with wall.within(agent.who.tenant_id):
        action = Action.objects.filter(run_id=agent.run_id, step=call.step).order_by("-id").first()
    return action is not None and action.state not in GOING_NOWHERE


# --- the model ------------------------------------------------------------------------------------------------


def _model_turn(play: Play, event: Event) -> None:
    """Its usage comes with it or with the `tokens` line that follows; without either it is not known."""
    agent = play.agent_of(event)
    known = usages.of(event)
    follows = next((line for line in play.lines if line.type in ("tokens", "model_turn")), None)
    later = known is None and follows is not None and follows.type == "tokens"
    unknown = Usage() if usages.are_told(play.scenario) else usages.LITTLE
    agent.begin_turn(_text(event), None if later else (known or unknown))


def _tokens(play: Play, event: Event) -> None:
    play.agent_of(event).end_turn(None, usages.of(event) or Usage())


def _tool_call(play: Play, event: Event) -> None:
    agent = play.agent_of(event)
    arguments = event.get("arguments")
    if arguments is None and event.get("raw_arguments") is not None:
        return agent.call_raw(event, str(event.get("tool") or ""), str(event.get("raw_arguments")))
    return agent.call(event, str(event.get("tool") or ""), arguments if isinstance(arguments, dict) else {})


def _question(play: Play, event: Event) -> None:
    """The agent asks the requester something: a call of the tool that asks, which needs their input."""
    play.agent_of(event).ask(event)


def _run_finished(play: Play, event: Event) -> None:
    status = str(event.get("status", "")).lower()
    limited = any(word in status for word in ("max_turns", "turn_limit", "limit"))
    play.agent_of(event).finish(_text(event), ended_by="turn_limit" if limited else "agent")


def _compensation(play: Play, event: Event) -> None:
    agent, told = play.agent_of(event), Rollback(reason="The workflow undoes what it did.")
    intake.rollback(agent.who, agent.run_id, told, request_id="scenario")


def _subagent(play: Play, event: Event) -> None:
    try:
        child = play.open_child(play.main)
        play.agents |= dict.fromkeys(names_of(event) or [f"subagent-{len(play.agents)}"], child)
    except (BadInput, intake.Conflict, intake.NotFound) as refused:
        play.main.told.append(str(refused))


def names_of(event: Event) -> list[str]:
    """What a line may call somebody by: any word of it that is not one of the script's own."""
    own = ("type", "step", "tool", "text", "intent", "note", "signature", "action_key")
    return [value for name, value in event.data.items() if name not in own and isinstance(value, str) and value]


def _text(event: Event) -> str | None:
    text = event.get("text")
    return text if isinstance(text, str) and text else None


# --- the runtime's life ---------------------------------------------------------------------------------------


def _crash(play: Play, event: Event) -> None:
    """The process is gone: what it had sent and heard nothing of, nobody will report."""
    for agent in play.everybody():
        agent.lose()


def _resume(play: Play, event: Event) -> None:
    """A runner comes back; one that was written for another version says so."""
    agent = play.main
    agent.alive = True
    version = _other_version(play, event)
    intake.resume(agent.who, agent.run_id, Resume(workflow_id=version), request_id="scenario")
    if version is not None:
        agent.workflow_id = version
    agent.again()


def _other_version(play: Play, event: Event) -> str | None:
    changed = [name for name in event.data if "version" in name or "definition" in name or "changed" in name]
    if not changed:
        return None
    manifest = manifest_of(play.scenario, title=f"changed: {event.get(changed[0])}"[:200])
    workflow, _ = intake.register_workflow(play.main.who, play.scenario.workflow, manifest, request_id="scenario")
    return str(workflow.pk)


def _redelivery(play: Play, event: Event) -> None:
    """The same work handed out once more: the latest call, whatever became of it."""
    calls = [call for call in play.main.calls if not event.step or call.step == event.step]
    if calls:
        play.main.propose(calls[-1])


def _foreign(play: Play, event: Event) -> None:
    """A library below the agent wants to try again by itself: it has to ask like everybody."""
    calls = [call for call in play.main.calls if not event.step or call.step == event.step]
    named = str(event.get("layer") or event.get("library") or "http_client").lower()
    layer = "".join(letter if letter.isalnum() else "_" for letter in named)[:80]
    if calls:
        play.main.propose(calls[-1], layer=layer if layer[:1].isalpha() else f"layer_{layer}"[:80])


def _heartbeat(play: Play, event: Event) -> None:
    for call in play.main.in_flight():
        if call.permit is not None:
            play.main.beat(call.permit)


def _cancel(play: Play, event: Event) -> None:
    agent, told = play.main, Cancel(reason=f"{event.get('actor', 'The requester')} cancelled it.")
    intake.cancel(agent.who, agent.run_id, told, request_id="scenario")


def _callback(play: Play, event: Event) -> None:
    letters.deliver(play, event)


def _operator(play: Play, event: Event) -> None:
    """A button on a task; a run without a task is cancelled from its own page."""
    if str(event.get("action")) == "cancel" and not play.people.has_task():
        return _cancel(play, event)
    return play.people.act(event)


def _nothing(play: Play, event: Event) -> None:
    """Leases, deadlines and remarks: the manifest and the clock carry them."""


_DOES: dict[str, Callable[[Any, Event], None]] = {
    "model_turn": _model_turn,
    "tokens": _tokens,
    "tool_call": _tool_call,
    "question": _question,
    "run_finished": _run_finished,
    "compensation_started": _compensation,
    "subagent_started": _subagent,
    "batch": _nothing,
    "crash": _crash,
    "recovery": _resume,
    "resume": _resume,
    "redelivery": _redelivery,
    "foreign_attempt": _foreign,
    "heartbeat": _heartbeat,
    "cancel": _cancel,
    "callback": _callback,
    "approval": lambda play, event: play.people.decide_approval(event),
    "operator_action": _operator,
    "lease": _nothing,
    "deadline": _nothing,
    "run_context": _nothing,
}
