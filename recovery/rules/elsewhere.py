"""What happened elsewhere and is only told: in which order it counts, and what its contract still promises. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from steadyhand.contract import Record
from steadyhand.manifest import Idempotency, Look, Tool

KINDS = ("run", "turn", "call", "dispatch", "observation", "cancel", "finish")

Numbered = tuple[int, Record]


def by_run(records: Iterable[Numbered]) -> dict[str, list[Numbered]]:
    """Each run's records by the time at which they happened; at one moment a call comes before what it led to."""
    runs: dict[str, list[Numbered]] = {}
    for number, one in records:
        runs.setdefault(one.run, []).append((number, one))
    for kept in runs.values():
        kept.sort(key=lambda numbered: (numbered[1].at, KINDS.index(numbered[1].kind), numbered[0]))
    return runs


def contract_of(tool: Tool, *, keyed: bool) -> Tool:
    """The tool's contract for a call that did not go through the boundary: its provider never saw our id or our key.

    So no key is live, and a look-up that would search for them finds nothing whatever happened: it proves nothing.
    `keyed`: the sender told under which key the provider got the call, so that much may be searched for.
    """
    changes: dict[str, Any] = {}
    if tool.idempotency.kind == "key":
        changes["idempotency"] = Idempotency()
    never_seen = ("{action_id}", "{run_id}") if keyed else ("{action_id}", "{run_id}", "{key}")
    if tool.reconcile is not None and (tool.reconcile.look is None or _asks_for(tool.reconcile.look, never_seen)):
        changes |= {"reconcile": None, "proof": "reply"}
    return tool.model_copy(update=changes) if changes else tool


def _asks_for(look: Look, names: tuple[str, ...]) -> bool:
    templates = (look.path, *look.query.values(), *look.ours.values(), *look.match.values())
    return any(name in text for text in templates if isinstance(text, str) for name in names)
