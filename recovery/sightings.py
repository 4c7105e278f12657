"""What came back from a tool as it may be kept: without secrets, with a word on how it was read (SEC-34, F099)."""

from __future__ import annotations

import json
import re
from typing import Any

from steadyhand.contract import Observation
from steadyhand.manifest import Tool

from recovery.rules.classify import Classified
from runs import redact

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


def _body(text: str, tool: Tool) -> Any:
    try:
        return redact.redact(json.loads(text), sensitive=tool.sensitive_fields)
    except (ValueError, RecursionError):
        return redact.clean_text(text)
