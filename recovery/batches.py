"""A call that carried many items, taken apart: each item is an action of its own, with its own end (F049).

The batch as a whole is what is asked about, retried and held; its items say which parts of it stand in the world.
"""

from __future__ import annotations

from typing import Any

from steadyhand.manifest import Batch, Tool
from steadyhand.paths import dig

from recovery.proposal import item_hash
from recovery.rules.classify import NO_RESULT, Classified, ItemResult
from runs import definitions, record, redact, vault
from runs.definitions import Definition
from runs.ids import new_id
from runs.models import Action, Run
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import ACTION_SETTLED, may_move

STATE_OF = {"ok_valid": "succeeded", "permanent_reject": "refused_permanent", "transient_reject": "refused_transient"}
SURE = ("ok_valid", "permanent_reject")
STRENGTH_OWN_REPLY = 4


def take_apart(run: Run, action: Action, found: Classified, actor: Actor) -> None:
    """Write one action for each item that the answer names, and what the whole proves if only a part went well."""
    definition = definitions.of_run(run)
    promise = definition.tools[action.tool].batch
    if promise is None or not found.items:
        return
    sent = _sent(definition, action, promise)
    for item in found.items:
        if item.key in sent:
            _write_item(run, action, item, sent[item.key], definition, actor)
    if found.partial:
        _write_part(run, action, found)


def _sent(definition: Definition, action: Action, promise: Batch) -> dict[str, Any]:
    """What was sent, by the text of each item's key."""
    arguments = vault.unseal(definition.keys, bytes(action.sealed_arguments))
    items = dig(arguments, promise.items)
    return {str(dig(item, promise.key)): item for item in items} if isinstance(items, list) else {}


def _write_item(run: Run, batch: Action, item: ItemResult, sent: Any, definition: Definition, actor: Actor) -> None:
    """One item's end. What an earlier batch settled stays; what it left open goes on as part of this one."""
    state = STATE_OF.get(item.observed, "unknown")
    action = _unsettled(run, batch, item_hash(definition, sent)) or _new(run, batch, item, sent, definition, state)
    if action.settled_at is None and not may_move("action", action.state, state) and action.state != state:
        record.move_action(action, "unknown", actor, run=run, kind="item")
    record.move_action(
        action, state, actor, run=run, kind="item", parent=batch, reason_code=item.reason,
        external_id=item.external_id,
        sealed_result=None if item.result is NO_RESULT else vault.seal(definition.keys, item.result),
    )  # fmt: skip
    if state == "succeeded":
        record.prove_effect(action, run=run, by="response", external_id=item.external_id)


def _unsettled(run: Run, batch: Action, hashed: str) -> Action | None:
    """The same item of an earlier batch of this run, if that left it open."""
    same = run.actions.filter(role="item", tool=batch.tool, arguments_hash=hashed, settled_at__isnull=True)
    return same.order_by("-id").first()


def _new(run: Run, batch: Action, item: ItemResult, sent: Any, definition: Definition, state: str) -> Action:
    hashed, tool = item_hash(definition, sent), definition.tools[batch.tool]
    return Action.objects.create(
        pk=new_id(),
        tenant_id=run.tenant_id,
        run=run,
        parent=batch,
        role="item",
        action_id=vault.action_id(
            definition.keys,
            run_id=run.pk,
            step=f"{batch.action_id}:{item.key}",
            tool=tool.name,
            tool_version=tool.version,
            arguments_hash=hashed,
        ),
        step=f"{batch.step}:{item.key}"[:120],
        tool=tool.name,
        tool_version=tool.version,
        effect=batch.effect,
        turn=batch.turn,
        arguments_hash=hashed,
        arguments=redact.redact(sent, sensitive=_sensitive(tool)),
        sealed_arguments=vault.seal(definition.keys, sent),
        currency=batch.currency,
        state=state,
        settled_at=read_clock() if state in ACTION_SETTLED else None,
    )


def _sensitive(tool: Tool) -> list[str]:
    """The declared paths as they stand inside of one item."""
    above = f"{tool.batch.items}." if tool.batch else ""
    return [path.removeprefix(above) for path in tool.sensitive_fields]


def _write_part(run: Run, action: Action, found: Classified) -> None:
    """Only part of it happened: for certain if each other item was refused for good, else the rest may still come."""
    done = [item.key for item in found.items if item.observed == "ok_valid"]
    sure = all(item.observed in SURE for item in found.items)
    if not done:
        return
    record.add_evidence(
        action,
        run=run,
        kind="reply",
        verdict="partial_final" if sure else "partial",
        count=len(done),
        source="provider",
        strength=STRENGTH_OWN_REPLY,
        fact=f"{len(done)} of {len(found.items)} items are done: {redact.clean_text(', '.join(done), 300)}.",
        started_at=read_clock(),
    )
