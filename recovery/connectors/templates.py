"""What stands between the braces of a manifest's requests: identity, key and arguments, filled in so that they stay
what they are (SEC-20)."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import quote

from steadyhand.manifest import Connector
from steadyhand.paths import MISSING, dig

from recovery.connectors.base import Slots
from recovery.connectors.guard import Forbidden

_SLOT = re.compile(r"\{(action_id|key|run_id|arguments\.[\w.\-]+)\}")


def path_of(template: str, slots: Slots, *, whole: bool = False) -> str:
    """The path with its slots filled, each value percent-encoded whole, so that none can climb out (SEC-20).

    `whole`: an empty value is refused, for what is left of the path may name something else. Raises Forbidden.
    """

    def put(slot: re.Match[str]) -> str:
        value = str(_value(slot[1], slots))
        if value in (".", "..") or (whole and value == ""):
            raise Forbidden(f"What stands for {slot[1]} cannot be part of a path.")
        return quote(value, safe="")

    return _SLOT.sub(put, template)


def fill(value: Any, slots: Slots) -> Any:
    """A template's value: a lone slot keeps its type, a slot inside text becomes text, a constant stays."""
    if not isinstance(value, str):
        return value
    alone = _SLOT.fullmatch(value)
    if alone:
        return _value(alone[1], slots)
    return _SLOT.sub(lambda slot: str(_value(slot[1], slots)), value)


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


def filled(template: Any, slots: Slots) -> Any:
    """A body template with every slot filled, at any depth."""
    if isinstance(template, dict):
        return {name: filled(value, slots) for name, value in template.items()}
    if isinstance(template, list):
        return [filled(value, slots) for value in template]
    return fill(template, slots)


def secret_of(connector: Connector) -> dict[str, str]:
    """The connector's credential, from the environment of the worker: STEADYHAND_SECRET_<NAME>."""
    header, name = connector.secret_header, connector.secret_name
    value = os.environ.get(f"STEADYHAND_SECRET_{name.upper()}") if name else None
    return {header: value} if header and value else {}
