"""What is left of a batch: items that are proven done leave a proposal, and an open one holds it back (F049)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steadyhand.paths import dig

from recovery.proposal import Prepared, item_hash
from runs import vault
from runs.models import Action, Run

_OPEN = ("permitted", "unknown", "probing", "absent", "probe_failed", "processing", "partial", "conflict", "held")


@dataclass(frozen=True)
class Batch:
    """The items of a proposal, each with the part of this run that sent it before, if there is one."""

    prepared: Prepared
    items: list[tuple[Any, Action | None]]

    @property
    def left(self) -> list[Any]:
        return [item for item, part in self.items if part is None or part.state != "succeeded"]

    @property
    def is_open(self) -> bool:
        return any(part is not None and part.state in _OPEN for _, part in self.items)

    @property
    def is_done(self) -> bool:
        return bool(self.items) and not self.left

    def arguments(self) -> dict[str, Any] | None:
        """The arguments with only what is left; None where all of it may be sent."""
        batch, left = self.prepared.tool.batch, self.left
        if batch is None or len(left) == len(self.items):
            return None
        put: dict[str, Any] = _put(self.prepared.arguments, batch.items.removeprefix("$.").split("."), left)
        return put

    def recorded(self) -> dict[str, Any]:
        """What the items came back with, in the place where the tool's own reply has it."""
        batch, keys = self.prepared.tool.batch, self.prepared.facts.definition.keys
        sealed = [part.sealed_result for _, part in self.items if part is not None and part.sealed_result]
        results: Any = [vault.unseal(keys, bytes(one)) for one in sealed]
        for name in reversed(batch.results.removeprefix("$.").split(".") if batch else []):
            results = {name: results}
        return dict(results)


def of_proposal(run: Run, prepared: Prepared) -> Batch | None:
    """The batch that a proposal carries; None where its tool declares none."""
    batch = prepared.tool.batch
    items = dig(prepared.arguments, batch.items) if batch is not None else None
    if not isinstance(items, list):
        return None
    parts = run.actions.filter(role="item", tool=prepared.tool.name).order_by("id")
    latest = {part.arguments_hash: part for part in parts}
    definition = prepared.facts.definition
    return Batch(prepared, [(item, latest.get(item_hash(definition, item))) for item in items])


def _put(document: Any, path: list[str], value: Any) -> Any:
    """A copy of the document with another value at the path, which exists."""
    head, *rest = path
    changed = document.copy()
    place = int(head) if isinstance(document, list) else head
    changed[place] = _put(document[place], rest, value) if rest else value
    return changed
