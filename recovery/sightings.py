"""What came back from a tool as it may be kept: without secrets, with a word on how it was read (SEC-34, F099)."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from steadyhand.contract import MAX_KEPT_BYTES, Observation
from steadyhand.manifest import Tool

from recovery.rules import error_names
from recovery.rules.classify import Classified
from runs import redact
from runs.models import Action

_HEADERS_KEPT = ("content-type", "retry-after", "date", "location", "x-request-id", "idempotent-replayed")
# An exception's text was written for a log: whose mail address it holds helps nobody to decide.
_ADDRESS = re.compile(r"[\w.+\-]{1,64}@[\w\-]{1,63}(?:\.[\w\-]{1,63}){1,8}")


def kept(observation: Observation, tool: Tool) -> dict[str, Any]:
    """What came back, fit to be stored: the body as JSON if it is, redacted by field, else as cut text."""
    plain = observation.model_dump(mode="json", exclude_none=True, exclude={"body"})
    plain["headers"] = {name: value for name, value in observation.headers.items() if name.lower() in _HEADERS_KEPT}
    plain = redact.redact(plain)
    if "message" in plain:
        plain["message"] = _ADDRESS.sub("[redacted address]", plain["message"])
    if observation.body is not None:
        plain["body"] = _body(observation.body, tool)
    return dict(plain)


def noted(observation: Observation, tool: Tool, found: Classified) -> dict[str, Any]:
    """What came back, and how it was read: the provider's own code, a delay that was ignored, a clock that is off."""
    return kept(observation, tool) | ({"note": found.detail} if found.detail else {})


def said_of(action: Action) -> str:
    """A sentence with the code of the rule that refused this call; only there does the model need one."""
    code = code_of(action) if action.reason_code == "business_rule_violation" else ""
    return f"The provider's code for it is {code}." if code else ""


def code_of(action: Action) -> str:
    """The provider's own code of its last refusal, empty where it gave none that looks like one."""
    seen = action.tries.order_by("-number").values_list("observation", flat=True).first() or {}
    declared = seen.get("code") if seen.get("declared") == "business_rule" else None
    return error_names.shown(declared, *error_names.codes(seen.get("body")))


def _body(text: str, tool: Tool) -> Any:
    """The answer for people to read: no more of it than they can, with its length and hash where some is left out."""
    try:
        value = redact.redact(json.loads(text), sensitive=tool.sensitive_fields)
    except (ValueError, RecursionError):
        return redact.clean_text(text)
    if len(text) <= MAX_KEPT_BYTES:
        return value
    whole = {"characters": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    parts = (_less(value, items, characters) for items, characters in _ROOM)
    return {"cut": whole, "begins": next((part for part in parts if len(json.dumps(part)) <= MAX_KEPT_BYTES), None)}


_ROOM = ((200, 1000), (50, 500), (20, 200), (5, 100), (2, 40))


def _less(value: Any, items: int, characters: int) -> Any:
    if isinstance(value, str):
        return redact.clean_text(value, characters)
    if isinstance(value, list):
        return [_less(item, items, characters) for item in value[:items]]
    if isinstance(value, dict):
        return {name: _less(item, items, characters) for name, item in list(value.items())[:items]}
    return value
