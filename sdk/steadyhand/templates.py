"""What stands between the braces of a manifest's requests: identity, key and arguments, filled in so that they stay
what they are (SEC-20). Pure."""

from __future__ import annotations

import re
from typing import Any, Protocol

from steadyhand.paths import MISSING, dig

_SLOT = re.compile(r"\{(action_id|key|run_id|arguments\.[\w.\-]+)\}")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-~")


class Slots(Protocol):
    """What the templates of a request may name."""

    @property
    def action_id(self) -> str: ...
    @property
    def run_id(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def arguments(self) -> dict[str, Any]: ...


class Unfillable(ValueError):
    """A value that cannot be a part of a path; the message names it."""


def path_of(template: str, slots: Slots, *, whole: bool = False) -> str:
    """The path with its slots filled, each value percent-encoded whole, so that none can climb out (SEC-20).

    `whole`: an empty value is refused, for what is left of the path may name something else. Raises Unfillable.
    """

    def put(slot: re.Match[str]) -> str:
        value = str(_value(slot[1], slots))
        if value in (".", "..") or (whole and value == ""):
            raise Unfillable(f"What stands for {slot[1]} cannot be part of a path.")
        return _encoded(value)

    return _SLOT.sub(put, template)


def fill(value: Any, slots: Slots) -> Any:
    """A template's value: a lone slot keeps its type, a slot inside text becomes text, a constant stays."""
    if not isinstance(value, str):
        return value
    alone = _SLOT.fullmatch(value)
    if alone:
        return _value(alone[1], slots)
    return _SLOT.sub(lambda slot: str(_value(slot[1], slots)), value)


def filled(template: Any, slots: Slots) -> Any:
    """A body template with every slot filled, at any depth."""
    if isinstance(template, dict):
        return {name: filled(value, slots) for name, value in template.items()}
    if isinstance(template, list):
        return [filled(value, slots) for value in template]
    return fill(template, slots)


def _value(slot: str, slots: Slots) -> Any:
    match slot:
        case "action_id":
            return slots.action_id
        case "key":
            return slots.key
        case "run_id":
            return slots.run_id
    found = dig(slots.arguments, slot.removeprefix("arguments."))
    return "" if found is MISSING else found


def _encoded(value: str) -> str:
    """Percent-encoded but for what an address may hold anywhere."""
    return "".join(one if one in _PLAIN else "".join(f"%{byte:02X}" for byte in one.encode()) for one in value)
