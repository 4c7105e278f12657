"""What the record knew of an action before an answer came, read only where the answer is no ordinary one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steadyhand.manifest import Tool
from steadyhand.paths import MISSING, dig

from recovery.proposal import item_hash
from recovery.rules.classify import Before
from runs import vault
from runs.definitions import Definition
from runs.models import Action, Attempt, Run

_NOTHING_LANDED = ("not_sent", "transient_reject", "permanent_reject")


def before(run: Run, attempt: Attempt, definition: Definition) -> Before:
    """What the rules may have to know about earlier tries, the target and the arguments of this call."""
    action = attempt.action
    tool = definition.tools[action.tool]
    arguments = vault.unseal(definition.keys, action.sealed_arguments)
    said = _earlier(action, attempt.number)
    return Before(
        refreshed=any(reason == "credential_refresh" for _, reason in said),
        tried=any(observed not in _NOTHING_LANDED for observed, _ in said),
        existed=_was_seen(run, tool, definition, arguments),
        arguments=arguments,
        done=_done(run, tool, definition, arguments),
    )


def _earlier(action: Action, number: int) -> list[tuple[str | None, str | None]]:
    """How the tries before this one ended; no row is read for a first one."""
    if number == 1:
        return []
    return list(action.tries.filter(number__lt=number).values_list("observed", "reason_code"))


def _was_seen(run: Run, tool: Tool, definition: Definition, arguments: Mapping[str, Any]) -> bool:
    """Whether the read that the contract names found this very target in this run."""
    if tool.precondition_read is None or not tool.absent_is_success:
        return False
    reads = run.actions.filter(tool=tool.precondition_read, effect="read", state="succeeded")
    sealed = reads.values_list("sealed_arguments", flat=True)
    return any(_same_target(vault.unseal(definition.keys, one), arguments) for one in sealed)


def _same_target(asked: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Two calls are about one thing where every field that both have is equal, and they share one."""
    shared = asked.keys() & arguments.keys()
    return bool(shared) and all(asked[name] == arguments[name] for name in shared)


def _done(run: Run, tool: Tool, definition: Definition, arguments: Mapping[str, Any]) -> frozenset[str]:
    """The keys of a batch's items that this run has done already: a later try leaves them out (F049)."""
    items = dig(arguments, tool.batch.items) if tool.batch is not None else MISSING
    if tool.batch is None or not isinstance(items, list):
        return frozenset()
    parts = run.actions.filter(role="item", tool=tool.name, state="succeeded")
    done = set(parts.values_list("arguments_hash", flat=True))
    found = (dig(item, tool.batch.key) for item in items if done and item_hash(definition, item) in done)
    return frozenset(str(key) for key in found if key is not MISSING)
