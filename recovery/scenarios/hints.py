"""What a scenario file says about its tools, in whatever usual word it says it.

Pure. Every name that is looked for is a usual one; nothing here knows a single file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from recovery.scenarios.format import ANSWERS, Scenario

DONE = ("succeeded", "success", "completed", "complete", "done", "finished", "ready", "ok", "paid", "captured")
BROKEN = ("failed", "failure", "error", "errored", "rejected", "cancelled", "canceled", "expired", "declined")
ITEM_DONE = [200, 201, 202, 204, "200", "201", "202", "204", "ok", "sent", "created", "applied", "accepted", *DONE]


def properties(schema: Any) -> dict[str, Any]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def condition(said: Any) -> dict[str, Any]:
    """A statement about a result in the contract's words: a path that must be there, or what stands there."""
    if not isinstance(said, dict):
        return {"path": str(said), "present": True}
    plain = {_CONDITION_WORDS.get(name, name): value for name, value in said.items()}
    if isinstance(plain.get("nonempty"), str):
        plain = {"path": plain["nonempty"], "nonempty": True}
    made: dict[str, Any] = {
        name: plain[name] for name in ("path", "equals", "one_of", "present", "nonempty") if name in plain
    }
    return made if len(made) > 1 else {**made, "present": True}


_CONDITION_WORDS = {"field": "path", "value": "equals", "eq": "equals", "in": "one_of", "exists": "present"}


def steps_of(scenario: Scenario, tool: str) -> set[str]:
    named = scenario.of_type("tool_call", "dispatch", "reconcile")
    return {event.step for event in named if event.get("tool") == tool and event.step}


def tool_of(scenario: Scenario, step: str) -> str:
    named = scenario.of_type("tool_call", "dispatch", "reconcile")
    return next((str(event.get("tool")) for event in named if event.step == step and event.get("tool")), "")


def latencies(scenario: Scenario, tool: str) -> Iterator[float]:
    """Seconds from each scripted send of a tool to the first thing that comes back on it."""
    for step in steps_of(scenario, tool):
        sent: float | None = None
        for event in scenario.events:
            if event.step != step:
                continue
            if event.type == "dispatch":
                sent = event.t
            elif event.type in ANSWERS and sent is not None:
                yield event.t - sent
                sent = None


# --- tools ----------------------------------------------------------------------------------------------------


def result_identity(tool: dict[str, Any]) -> list[str]:
    """The field by which the provider names what was made: a required id of the result that no argument gave."""
    schema, given = tool.get("output_schema"), properties(tool.get("input_schema"))
    required = schema.get("required", []) if isinstance(schema, dict) else []
    fresh = [name for name in required if name not in given]
    named = [name for name in listed(tool.get("identity_fields")) if name not in given and name in properties(schema)]
    ids = [name for name in fresh if name == "id" or name.endswith("_id")]
    return (named or ids or [name for name in fresh if name in ("operation", "reference")])[:1]


def key_argument(tool: dict[str, Any]) -> str | None:
    """The argument that a model fills with a key of its own: it says nothing about what the call means."""
    given = properties(tool.get("input_schema"))
    named = listed(tool.get("identity_fields"))
    beside = [name for name in given if name not in named] if named and set(named) <= set(given) else []
    keys = [name for name in given if "idempotency" in name or name in ("request_id", "client_token")]
    found = next((name for name in keys if name in beside or not named), None)
    return found or (beside[0] if len(beside) == 1 else None)


def is_looked_up(scenario: Scenario, tool: dict[str, Any]) -> bool:
    return tool["effect"] == "write" and bool(tool.get("reconcilable"))


def is_authoritative(scenario: Scenario, tool: dict[str, Any]) -> bool:
    """Ruling 10: said of the tool, or by one of its look-ups."""
    if tool.get("reconcile_authoritative"):
        return True
    steps = steps_of(scenario, tool["name"])
    looks = [event for event in scenario.of_type("reconcile") if event.step in steps]
    return any(said_authoritative(event.data) is True for event in looks)


def said_authoritative(look: dict[str, Any]) -> bool | None:
    """What a look-up says about itself, beside its body or in it; None if nothing."""
    if isinstance(look.get("authoritative"), bool):
        return bool(look["authoritative"])
    body = as_json(look.get("body"))
    said = body.get("authoritative") if isinstance(body, dict) else None
    return said if isinstance(said, bool) else None


def as_json(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return None


def is_sent_by_worker(scenario: Scenario, tool: str) -> bool:
    return any(tool in (other.get("compensated_by"), other.get("poll_tool")) for other in scenario.tools)


def conflict_codes(said: Any) -> dict[str, str]:
    """Provider's codes to the contract's four classes, by what their names say."""
    pairs = said.items() if isinstance(said, dict) else [(code, code) for code in listed(said)]
    flat = [(code, kind) for kind, codes in pairs if isinstance(codes, list) for code in codes]
    flat += [(code, kind) for code, kind in pairs if not isinstance(kind, list)]
    return {str(code): _conflict_class(f"{kind}") for code, kind in flat}


def _conflict_class(said: str) -> str:
    text = said.lower()
    if any(word in text for word in ("already", "done", "exists", "success", "duplicate", "same_effect")):
        return "already_done"
    if any(word in text for word in ("version", "stale", "etag", "retry_after_read", "reread", "precondition")):
        return "version_conflict"
    return "key_conflict" if "key" in text or "idempot" in text or "mismatch" in text else "business_rule"


def says_failed(state: str) -> bool:
    return state.lower() in BROKEN


def end_states(schema: Any) -> tuple[str, list[str], list[str]]:
    """The field of a poll's answer that says how far it is, and which of its values are ends."""
    fields = properties(schema)
    name = next((usual for usual in ("state", "status") if usual in fields), "") or (list(fields) or ["state"])[0]
    words = [str(word) for word in fields.get(name, {}).get("enum", [])]
    succeeded = [word for word in words if word.lower() in DONE] or list(DONE)
    return name, succeeded, [word for word in words if says_failed(word)] or list(BROKEN)


def is_called_back(scenario: Scenario, tool: dict[str, Any]) -> bool:
    """Whether a message of the file names a call of this tool, by our key or by the provider's id."""
    if tool["effect"] != "write":
        return False
    keys = {call.get("action_key") for call in scenario.of_type("tool_call") if call.get("tool") == tool["name"]}
    payloads = [event.get("payload") or {} for event in scenario.of_type("callback")]
    return any(set(result_identity(tool)) & set(one) or keys & _words(one) for one in payloads)


def _words(payload: dict[str, Any]) -> set[str]:
    return {value for value in payload.values() if isinstance(value, str)}


def state_field(scenario: Scenario) -> str:
    """The field in which the file's messages say how far the provider is."""
    payloads = [event.get("payload") or {} for event in scenario.of_type("callback")]
    return next((name for name in ("state", "status", "result") if any(name in one for one in payloads)), "state")


def fallback(tool: dict[str, Any]) -> dict[str, Any]:
    said = tool.get("fallback") or tool.get("fallback_tool")
    if tool["effect"] != "read" or not said:
        return {}
    plain = dict(said) if isinstance(said, dict) else {"tool": str(said)}
    stale = plain.get("staleness") or plain.get("customer_note") or "This answer may not be up to date."
    requires = [condition(one) for one in listed(plain.get("requires"))]
    return {"fallback": {"tool": plain["tool"], "staleness": str(stale), "requires": requires}}


def batch(scenario: Scenario, tool: dict[str, Any]) -> dict[str, Any]:
    """A write whose only list of objects is answered by a list of objects, item by item."""
    if isinstance(tool.get("batch"), dict) and tool["effect"] == "write":
        return {"batch": tool["batch"]}
    asked, told = _object_list(tool.get("input_schema")), _object_list(tool.get("output_schema"))
    if tool["effect"] != "write" or asked is None or told is None:
        return {}
    key = _item_key(asked[1], told[1])
    ok = next((name for name in ("ok", "success", "status", "state", "result") if name in told[1]), None)
    if key is None or ok is None:
        return {}
    good: dict[str, Any] = {"one_of": ITEM_DONE} if ok not in ("ok", "success") else {"equals": True}
    external = next((n for n in told[1] if n.endswith("_id") and n not in key), None)
    made = {"items": asked[0], "key": key[0], "results": told[0], "result_key": key[1], "ok": {"path": ok, **good}}
    return {"batch": {**made, **({"external_id": external} if external else {})}}


def _object_list(schema: Any) -> tuple[str, dict[str, Any]] | None:
    lists = [(name, part) for name, part in properties(schema).items() if part.get("type") == "array"]
    fields = properties(lists[0][1].get("items")) if len(lists) == 1 else {}
    return (lists[0][0], fields) if fields else None


def _item_key(asked: dict[str, Any], told: dict[str, Any]) -> tuple[str, str] | None:
    shared = [name for name in asked if name in told]
    ids = [name for name in shared if name in ("id", "key", "ref") or name.endswith(("_id", "_ref"))]
    return next(((name, name) for name in (*ids, *shared)), None)
