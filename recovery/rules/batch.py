"""The answer to a call that carries many items: each is judged by itself, the whole by all of them (F049). Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any

from steadyhand.conditions import holds
from steadyhand.manifest import Batch, Tool
from steadyhand.paths import MISSING, dig, word

from recovery.rules import error_names, foreign
from recovery.rules.classified import Before, Classified, ItemResult, invalid
from recovery.rules.http_refusals import NOT_PROCESSED

_STATUS_PATHS = ("status", "status_code", "error.status", "code")


def classify_items(body: Any, tool: Tool, batch: Batch, before: Before) -> Classified:
    """What each item came to. An answer about an item that nobody asked for is about another call (F048)."""
    asked, entries = _listed(before.arguments, batch.items), _listed(body, batch.results)
    if asked is None or entries is None:
        return invalid(tool, f"The answer lacks its list of results: {batch.results}.")
    keys = [_key(item, batch.key) for item in asked]
    told: dict[str, list[Any]] = {key: [] for key in keys}
    for entry in entries:
        key = _key(entry, batch.result_key)
        if key not in told:
            return invalid(tool, "The answer names an item that was not sent.")
        told[key].append(entry)
    items = tuple(_item(key, told[key], batch) for key in keys if key not in before.done)
    return _whole(_without_twins(items), body)


def _whole(items: tuple[ItemResult, ...], body: Any) -> Classified:
    ends = {item.observed for item in items}
    if ends <= {"ok_valid"}:
        return Classified("ok_valid", "completed", body, items=items)
    if len(ends) == 1 and ends <= {"permanent_reject", "transient_reject"}:
        said = items[0]
        return Classified(said.observed, said.reason, detail="Every item was refused.", items=items)
    count = Counter(item.observed for item in items)
    detail = f"{count['ok_valid']} of {len(items)} items are done."
    conflict = any(item.reason == "conflicting_evidence" for item in items)
    reason = "conflicting_evidence" if conflict else "partial_effect"
    return Classified("unknown", reason, detail=detail, items=items, partial=True, conflict=conflict)


def _without_twins(items: tuple[ItemResult, ...]) -> tuple[ItemResult, ...]:
    """Items that were sent under one key cannot be told apart, so what was said of one is known of neither."""
    sent = Counter(item.key for item in items)
    return tuple(item if sent[item.key] == 1 else _open(item.key) for item in items)


def _item(key: str, entries: list[Any], batch: Batch) -> ItemResult:
    if len(entries) > 1:
        return ItemResult(key, "unknown", "conflicting_evidence")
    if not entries:
        return _open(key)
    entry = entries[0]
    if not holds(batch.ok, entry):
        return _refused(key, entry, batch)
    named = word(dig(entry, batch.external_id)) if batch.external_id else ""
    return ItemResult(key, "ok_valid", "completed", foreign.name(named), entry)


def _refused(key: str, entry: Any, batch: Batch) -> ItemResult:
    """An item that did not go well: refused, unless what is said of it leaves open whether it was carried out."""
    status = next((v for path in _STATUS_PATHS if type(v := dig(entry, path)) is int), 0)
    code, known = error_names.family_of(entry)
    if status == 429 or (known == "limit" and not status):
        return ItemResult(key, "transient_reject", "provider_rate_limited")
    silent = dig(entry, batch.ok.path) is MISSING and not code and not status
    if silent or known == "open" or (status and status not in NOT_PROCESSED):
        return _open(key)
    absent = status in (404, 410) or known == "absent"
    return ItemResult(key, "permanent_reject", "resource_not_found" if absent else error_names.reason_of(known))


def _open(key: str) -> ItemResult:
    return ItemResult(key, "unknown", "external_outcome_unknown")


def _listed(document: Any, path: str) -> list[Any] | None:
    value = dig(document, path)
    return value if isinstance(value, list) and value else None


def _key(item: Any, path: str) -> str:
    value = dig(item, path)
    return "" if value is MISSING or value is None else str(value)
