"""Undos as rows: which call takes an effect back, how far that has come, and which effect is next (DECISIONS 1).

An undo is an action of its own, drawn up from the manifest and the recorded result alone: no model and no argument of
the first call has a say in it. Its parent is the action whose effect it takes back; there is one for each effect.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q
from steadyhand.identity import canonical
from steadyhand.manifest import Compensate, Tool
from steadyhand.paths import MISSING, dig

from recovery import escalation
from recovery.rules import plans
from recovery.rules.evidence import Undo as Progress
from recovery.rules.scope import currency_of, over
from runs import definitions, record, redact, vault
from runs.definitions import Definition
from runs.ids import new_id
from runs.models import NEVER_HAPPENED, Action, Effect, Run
from runs.querysets import TenantQuerySet, read_clock
from runs.record import Actor

TAKEN_BACK = "The effect has been taken back."
TAKEN_BACK_OUTSIDE = "The effect has been taken back outside."
ENDED_BADLY = ("held", "rejected", "refused_permanent", "void", "conflict")
EFFECT_STANDS = ("succeeded", "compensating", "compensation_held")
"""States of a call whose effect is there, as long as nobody took it back or signed for it."""


@dataclass(frozen=True)
class Undo:
    """An undo that could be sent: its tool and arguments, what it moves, and whether a person must agree first."""

    tool: Tool
    arguments: dict[str, Any]
    value_minor: int | None
    currency: str
    needs_approval: bool


class Impossible(Exception):
    """Nobody can send this undo; the message says why in a sentence."""


def of(action: Action) -> Action | None:
    """The latest undo of this action's effect; those before it are proven to have done nothing."""
    return Action.objects.filter(parent=action, role="undo").order_by("id").last()


def latest(run: Run) -> dict[uuid.UUID, Action]:
    """The latest undo of each effect of a run, by the action whose effect it takes back; as `of`, for all at once."""
    made = run.actions.filter(role="undo").order_by("id")
    return {undo.parent_id: undo for undo in made if undo.parent_id is not None}


def state_of(action: Action) -> Progress:
    """How far the undo of this action's effect has come."""
    undo = of(action)
    if undo is None:
        return "none"
    if undo.state == "succeeded":
        return "done"
    return "held" if undo.state in ENDED_BADLY else "pending"


def in_time(action: Action, tool: Tool, now: datetime) -> bool:
    """Whether the window in which the provider takes the effect back is still open."""
    until = window_end(Effect.objects.filter(action=action).first(), tool)
    return until is None or now <= until


def window_end(effect: Effect | None, tool: Tool) -> datetime | None:
    """Until when the provider takes this effect back; None where no window is declared."""
    if effect is None or tool.compensate is None or tool.compensate.window_seconds is None:
        return None
    ends_at: datetime = effect.proven_at + timedelta(seconds=tool.compensate.window_seconds)
    return ends_at


def promise_of(definition: Definition, undo: Action) -> Compensate | None:
    """The contract under which an undo is made: that of the call whose effect it takes back."""
    return definition.tools[undo.parent.tool].compensate if undo.parent is not None else None


def max_attempts(definition: Definition, undo: Action) -> int:
    """The undo's own ceiling; the tries of its run say nothing of it."""
    promise = promise_of(definition, undo)
    return promise.max_attempts if promise is not None else 1


def over_threshold(definition: Definition, value_minor: int | None) -> bool:
    return over(definition.manifest.value_threshold_minor, value_minor)


def draw_up(definition: Definition, original: Action) -> Undo:
    """The undo of an action's effect. Raises Impossible."""
    promise = definition.tools[original.tool].compensate
    if promise is None:
        raise Impossible(f"No undo is declared for {original.tool}.")
    tool = definition.tools[promise.tool]
    if tool.send is None:
        raise Impossible(f"The manifest does not say how to send {tool.name}: undo it by hand.")
    result = vault.unseal(definition.keys, original.sealed_result) if original.sealed_result else None
    arguments = {field: dig(result, path) for field, path in promise.arguments.items()}
    lacking = next((promise.arguments[field] for field, value in arguments.items() if value is MISSING), None)
    if lacking is not None:
        raise Impossible(f"The recorded result of {original.step} lacks {lacking}, which {tool.name} needs.")
    breach = definition.check_arguments(tool, arguments)
    if breach is not None:
        raise Impossible(f"What {tool.name} would be sent breaks its schema at {breach[0] or 'its top'}.")
    undo = _undo(definition, tool, arguments, original)
    if _moves_more(undo, original):
        raise Impossible(
            f"{tool.name} would move {undo.value_minor} {undo.currency}, and {original.step} moved "
            f"{original.value_minor} {original.currency}: undo it by hand."
        )
    return undo


def _moves_more(undo: Undo, original: Action) -> bool:
    """A result names what its undo is sent, and whoever reports it may be wrong or lie: more than was moved never
    comes back, and nothing in another currency."""
    if undo.value_minor is None or original.value_minor is None:
        return False
    elsewhere = bool(undo.currency and original.currency) and undo.currency != original.currency
    return elsewhere or undo.value_minor > original.value_minor


def planned(definition: Definition, original: Action) -> Undo | None:
    try:
        return draw_up(definition, original)
    except Impossible:
        return None


def write(run: Run, original: Action, undo: Undo, definition: Definition, actor: Actor) -> Action:
    """The undo's action, ready to be sent by the worker; the original says from now on that it is being undone."""
    plain, step = canonical(undo.arguments), _step_of(original)
    hashed = vault.hash_arguments(definition.keys, plain)
    identity = vault.action_id(
        definition.keys,
        run_id=run.pk,
        step=step,
        tool=undo.tool.name,
        tool_version=undo.tool.version,
        arguments_hash=hashed,
    )
    action = Action.objects.create(
        pk=new_id(),
        tenant_id=run.tenant_id,
        run=run,
        parent=original,
        role="undo",
        action_id=identity,
        step=step,
        tool=undo.tool.name,
        tool_version=undo.tool.version,
        effect=undo.tool.effect,
        turn=run.turns,
        arguments_hash=hashed,
        arguments=redact.redact(undo.arguments, sensitive=_sensitive(undo.tool, definition.tools[original.tool])),
        sealed_arguments=vault.seal(definition.keys, json.loads(plain)),
        value_minor=undo.value_minor,
        currency=undo.currency,
        idempotency_key=vault.remote_key(definition.keys, identity, 1),
        state="proposed",
        due_at=read_clock(),
    )
    data = {"step": step, "tool": action.tool, "undoes": original.step}
    record.write_event(run, "undo_planned", actor, action=action, to_state="proposed", data=data)
    record.move_action(original, "compensating", actor, run=run, kind="compensating")
    return action


def _sensitive(tool: Tool, of: Tool) -> list[str]:
    """What the undo declares, and its fields that are filled with what the call itself declares."""
    filled = of.compensate.arguments.items() if of.compensate else ()
    return tool.sensitive_fields + [name for name, path in filled if redact.is_hidden(path, of.sensitive_fields)]


def _step_of(original: Action) -> str:
    """The name of the next undo: one that is ordered anew, after one that did nothing, has an identity of its own."""
    made = Action.objects.filter(parent=original, role="undo").count()
    ending = f":undo{made + 1}" if made else ":undo"
    return f"{original.step[: 120 - len(ending)]}{ending}"


def sent_until(definition: Definition, undo: Action) -> datetime | None:
    """The end of an undo's time: after it the provider does not take the effect back any more."""
    if undo.parent is None:
        return None
    return window_end(Effect.objects.filter(action=undo.parent).first(), definition.tools[undo.parent.tool])


def take_agents_own(run: Run, actor: Actor) -> None:
    """An undo that the agent called by itself, and that is proven, stands for ours: one effect, one undo (I15)."""
    definition = definitions.of_run(run)
    for original in remaining(run):
        undo = planned(definition, original) if original.state == "succeeded" else None
        own = _made_by_agent(run, undo, definition) if undo else None
        if own is not None:
            close(run, original, own, actor)


def open_twin(run: Run, undo: Undo, definition: Definition) -> Action | None:
    """The same undo called by the agent, whose outcome is open: it has to be found out first."""
    return _same_calls(run, undo, definition).filter(settled_at__isnull=True).first()


def _made_by_agent(run: Run, undo: Undo, definition: Definition) -> Action | None:
    return _same_calls(run, undo, definition).filter(state="succeeded").order_by("id").first()


def _same_calls(run: Run, undo: Undo, definition: Definition) -> TenantQuerySet[Action]:
    hashed = vault.hash_arguments(definition.keys, canonical(undo.arguments))
    calls: TenantQuerySet[Action] = run.actions.filter(role="call", tool=undo.tool.name, arguments_hash=hashed)
    return calls


def close(run: Run, original: Action, undo: Action, actor: Actor) -> None:
    """The undo is verified: the effect stays in the record, and says what took it back and what is left of it."""
    if original.state != "compensating":
        record.move_action(original, "compensating", actor, run=run, kind="compensating")
    record.move_action(original, "compensated", actor, run=run, kind="compensated")
    Effect.objects.filter(action=original).update(compensated_by=undo)
    _keep_residual(run, original, undo, actor)
    escalation.resolve_tasks(run, action=original, actor=actor, resolution=TAKEN_BACK)


def close_outside(run: Run, original: Action, actor: Actor) -> None:
    """Somebody took the effect back where it stands: ours is not sent, and the record says so (F141).

    The effect then names its own call in `compensated_by`: no undo of this run took it back.
    """
    close(run, original, original, actor)
    data = {"step": original.step, "undoes": original.step}
    record.write_event(run, "undone_outside", actor, action=original, reason=TAKEN_BACK_OUTSIDE, data=data)


def _keep_residual(run: Run, original: Action, undo: Action, actor: Actor) -> None:
    definition = definitions.of_run(run)
    promise = definition.tools[original.tool].compensate
    if promise is None or undo.pk == original.pk:  # nobody's undo: it was taken back where it stands (F141)
        return
    result = vault.unseal(definition.keys, bytes(undo.sealed_result)) if undo.sealed_result else None
    left = plans.residual_of(promise, original.value_minor, result)
    if left is None:
        return
    Effect.objects.filter(action=original).update(residual=left.kind, residual_minor=left.minor)
    data = {"step": original.step, "residual": left.kind, "residual_minor": left.minor}
    record.write_event(run, "residual_recorded", actor, action=original, data=data)


def unsigned(run: Run) -> Effect | None:
    """The first effect of which something stays that nobody has signed for yet."""
    open_ones: TenantQuerySet[Effect] = run.effects.exclude(residual="").filter(signed_off_at=None)
    return open_ones.select_related("action").order_by("id").first()


def left_over(run: Run) -> bool:
    """Whether something stays of what this run was to take back."""
    return run.effects.exclude(residual="").exists()


def sign_off(run: Run, effect: Effect, actor: Actor, reason: str) -> None:
    """Somebody accepts what stays of an effect that was taken back."""
    Effect.objects.filter(pk=effect.pk).update(signed_off_at=read_clock())
    data = {"step": effect.step, "residual": effect.residual, "residual_minor": effect.residual_minor}
    record.write_event(run, "residual_accepted", actor, action=effect.action, reason=reason, data=data)


def give_up(run: Run, original: Action, actor: Actor, reason: str) -> None:
    """Nobody takes this effect back any more: all of it stays, signed for, and the next one's turn comes."""
    undo = of(original)
    if undo is not None and undo.settled_at is None:
        record.move_action(undo, "void", actor, run=run, kind="void", reason_code="not_applied")
    if original.state == "succeeded":
        record.move_action(original, "compensating", actor, run=run, kind="compensating")
    if original.state == "compensating":
        record.move_action(original, "compensation_held", actor, run=run, kind="compensation_held")
    whole = {"residual": "whole", "residual_minor": original.value_minor}
    Effect.objects.filter(action=original).update(signed_off_at=read_clock(), **whole)
    record.write_event(
        run, "undo_waived", actor, action=original, reason=reason, data={"step": original.step, **whole}
    )  # fmt: skip


def did_nothing(undo: Action) -> bool:
    """Whether an undo ended and is proven to have changed nothing."""
    return undo.state in NEVER_HAPPENED


def hold(run: Run, original: Action, actor: Actor) -> None:
    """The undo did not work or nobody knows: it stops here, and the record says what is undone and what is left."""
    if original.state == "compensation_held":
        return
    record.move_action(
        original, "compensation_held", actor, run=run, kind="compensation_held", reason_code="compensation_failed"
    )
    left = [one.step for one in remaining(run)]
    data = {"undone": undone(run), "remaining": left}
    record.write_event(run, "compensation_stopped", actor, action=original, data=data)


def remaining(run: Run) -> list[Action]:
    """What is still to be taken back or found out, the next one first."""
    return [action for action in in_order(run) if _is_open(action)]


def _is_open(action: Action) -> bool:
    effect: Effect | None = getattr(action, "proven", None)
    if effect is None:
        return action.settled_at is None
    open_end = action.settled_at is None and action.role == "call"
    stands = effect.compensated_by_id is None and effect.signed_off_at is None
    return open_end or (action.state in EFFECT_STANDS and stands)


def in_order(run: Run) -> list[Action]:
    """Every effect of a run and every write that may be one, in the order in which a rollback takes them back.

    In the reverse order of their proofs, unless the manifest's `compensation_order` names tools: those come first, in
    the order given there. An unsettled write has its place among them, for it may turn out to be an effect.
    """
    order = definitions.of_run(run).manifest.compensation_order
    taken_back = run.effects.exclude(compensated_by=None)
    undoing = taken_back.exclude(compensated_by=F("action")).values("compensated_by")
    calls = run.actions.filter(effect="write").exclude(role="undo").exclude(pk__in=undoing)
    maybe = Q(settled_at__isnull=True, role="call")
    found = calls.filter(Q(proven__isnull=False) | maybe).select_related("proven")

    def place(action: Action) -> tuple[int, int]:
        rank = order.index(action.tool) if action.tool in order else len(order)
        effect = getattr(action, "proven", None)
        return rank, -(effect.pk if effect else action.pk).int

    return sorted(found, key=place)


def undone(run: Run) -> list[str]:
    return list(run.effects.exclude(compensated_by=None).order_by("id").values_list("step", flat=True))


def _undo(definition: Definition, tool: Tool, arguments: dict[str, Any], original: Action) -> Undo:
    own = dig(arguments, tool.value_field) if tool.value_field else MISSING
    value = own if isinstance(own, int) and not isinstance(own, bool) else original.value_minor
    return Undo(
        tool=tool,
        arguments=arguments,
        value_minor=value,
        currency=currency_of(tool, arguments) or original.currency,
        needs_approval=tool.requires_approval or over_threshold(definition, value),
    )
