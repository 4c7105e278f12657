"""What people do with a dead letter: one more try under the same identity, or an end with a reason."""

from __future__ import annotations

from recovery import case as cases
from recovery import clients, escalation, letters, settle
from recovery.models import DeadLetter
from recovery.rules import policy, scope
from recovery.rules.decide import Action as Answer
from recovery.rules.decide import NextAction
from recovery.work import stops
from runs import definitions, record, vault
from runs.models import Action, Person
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import advance


class NotNow(Exception):
    """The letter cannot be replayed or discarded now; the message says why in a sentence."""


def replay(letter: DeadLetter, *, by: Person, actor: Actor) -> DeadLetter:
    """Grant exactly one more try; the run is locked. A second click finds the first and changes nothing (C067).

    The task stays with its person: how the try ends is told there. Raises NotNow.
    """
    letter = DeadLetter.objects.select_related("run", "action").get(pk=letter.pk)
    if letter.state in letters.REPLAYED:
        return letter
    _check(letter)
    answer = after_replay(letter)
    if letter.state in letters.ENDED or answer.action is not Answer.RETRY:
        raise NotNow(f"It cannot be sent again now: {answer.reason.replace('_', ' ')}.")
    before = letter.state
    advance(letter, machine="dead_letter", to="replay_requested", owner=by)
    _note(letter, "dead_letter_replayed", before, actor)
    Action.objects.filter(pk=letter.action_id).update(gate_open=True)
    letter.action.refresh_from_db()
    settle.settle(letter.run, letter.action, actor)
    letter.refresh_from_db()
    return letter


def _check(letter: DeadLetter) -> None:
    """What is replayed is the recorded call, authorized as of today; a bare payload is none (F158). Raises NotNow."""
    run, action = letter.run, letter.action
    kept = (letter.identity, letter.request.get("tool"), letter.request.get("arguments_hash"))
    if kept != (action.action_id, action.tool, action.arguments_hash):
        raise NotNow("The letter does not hold the call that it is about; it can only be discarded.")
    definition = definitions.of_run(run)
    tool = definition.tools[action.tool]
    arguments = vault.unseal(definition.keys, bytes(action.sealed_arguments))
    exceeded = scope.breach(run.scope, tool, arguments, read_clock)
    if exceeded is not None:
        raise NotNow(f"The run may not do this any more: {exceeded[1]}.")
    if gone := clients.gone(run.client):
        raise NotNow(f"Nobody would send it: {gone}.")
    if stops.for_call(run, tool) is not None:
        raise NotNow("A stop switch stands before this call; it is lifted first.")


def discard(letter: DeadLetter, *, by: Person, actor: Actor, reason: str, agreed: bool = False) -> DeadLetter:
    """Give the call up: it is not sent again. The run is locked. Raises NotNow.

    `agreed`: a second person agrees. Only then may its effect be unknown; the question what happened stays open.
    """
    letter = DeadLetter.objects.select_related("run", "action").get(pk=letter.pk)
    if letter.state == "discarded":
        return letter
    if letter.state not in ("recorded", "in_review"):
        raise NotNow("A replay of it is under way." if letter.state in letters.REPLAYED else "It has recovered.")
    case = cases.read(letter.run, letter.action)
    settled = letter.action.settled_at is not None
    nothing = settled or letter.action.effect == "read" or policy.surely_nothing(case.evidence)
    if not nothing and not agreed:
        raise NotNow("It is not known whether it took effect; giving it up takes a second person.")
    before = letter.state
    advance(letter, machine="dead_letter", to="discarded", owner=by, ended_at=read_clock())
    _note(letter, "dead_letter_discarded", before, actor, reason)
    if not nothing:
        _ask_what_happened(letter, actor)
        return letter
    if letter.action.settled_at is None:
        record.move_action(letter.action, "void", actor, run=letter.run, kind="void", reason_code="not_applied")
    escalation.resolve_tasks(letter.run, action=letter.action, actor=actor, resolution=f"{by} discarded it: {reason}")
    settle.refresh_run(letter.run, actor)
    return letter


def _ask_what_happened(letter: DeadLetter, actor: Actor) -> None:
    """An unknown write is never closed (I5): its letter ends, and its task asks for its outcome from now on."""
    run, action, unknown = letter.run, letter.action, "external_outcome_unknown"
    record.move_action(action, action.state, actor, run=run, kind="letter_given_up", reason_code=unknown)
    escalation.open_task(run, unknown, action=action, actor=actor)
    settle.refresh_run(run, actor)


def after_replay(letter: DeadLetter) -> NextAction:
    """What the table would say if one more try were granted by a person."""
    return cases.read(letter.run, letter.action).suppose(attempts_left=True, gate="open")


def _note(letter: DeadLetter, kind: str, before: str, actor: Actor, reason: str = "") -> None:
    data = {"letter": str(letter.pk), "generation": letter.generation}
    record.write_event(
        letter.run, kind, actor, action=letter.action, from_state=before, to_state=letter.state, reason=reason,
        data=data,
    )  # fmt: skip
