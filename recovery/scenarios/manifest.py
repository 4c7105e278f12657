"""From a scenario's tools to a manifest: what the file promises about each tool, in the words of the contract.

Pure. Where a file says less than a manifest must, the cautious reading is taken: a bound that is not stated is
unbounded, a write without a stated key has none (rulings 9 and 10).
"""

from __future__ import annotations

from typing import Any

from steadyhand.manifest import Manifest

from recovery.scenarios import hints, terms
from recovery.scenarios.format import ANSWERS, Scenario

ASKED, SENT = "records", "provider"
SOURCE = "provider"
ASK = "ask_requester"
LEASE_GRACE_SECONDS = 15.0
USUAL_TIMEOUT_SECONDS = 30.0
BUDGETS = {
    "max_turns": "max_turns",
    "max_tool_calls": "max_tool_calls",
    "max_attempts_per_step": "max_attempts_per_step",
    "max_elapsed_seconds": "max_elapsed_seconds",
    "max_input_tokens": "max_input_tokens",
    "max_output_tokens": "max_output_tokens",
    "max_tokens": "max_input_tokens",
    "max_total_tokens": "max_input_tokens",
    "max_estimated_cost_minor_units": "max_estimated_cost_minor_units",
    "max_cost_minor_units": "max_estimated_cost_minor_units",
    "max_cost_minor": "max_estimated_cost_minor_units",
}


def manifest_of(scenario: Scenario, *, title: str = "") -> Manifest:
    """The manifest that a run of this scenario is opened under; another `title` makes it another version."""
    rules = terms.rules_of(scenario)
    tools = [_tool(scenario, tool, rules) for tool in scenario.tools]
    plain: dict[str, Any] = {
        "title": title or scenario.title[:200],
        "tools": [*tools, *_missing_undos(scenario), *_asking(scenario)],
        "connectors": {
            ASKED: {"kind": "python"},
            SENT: {"kind": "http", "base_url": "https://provider.example"},
        },
        "budgets": _budgets(scenario, rules),
        "required_effects": terms.required_tools(scenario),
        **terms.limits(scenario, rules),
    }
    return Manifest.model_validate(plain)


def _budgets(scenario: Scenario, rules: terms.Rules) -> dict[str, Any]:
    named = {BUDGETS[name]: value for name, value in scenario.budget.items() if name in BUDGETS and value is not None}
    return {"max_same_answers": 4, **named, **rules.budgets}


def _tool(scenario: Scenario, tool: dict[str, Any], rules: terms.Rules) -> dict[str, Any]:
    name, write = tool["name"], tool["effect"] == "write"
    plain: dict[str, Any] = {
        "name": name,
        "effect": tool["effect"],
        "input_schema": tool.get("input_schema") or {"type": "object"},
        "output_schema": tool.get("output_schema"),
        "identity_fields": hints.result_identity(tool) if write else [],
        "idempotency": _idempotency(tool),
        "timeout_seconds": _timeout(scenario, name),
        "credential": "refreshable" if "refresh" in str(tool.get("auth", "")) else "static",
        "absent_is_success": bool(tool.get("absent_is_success")),
        "requires_approval": bool(tool.get("requires_approval")) or name in rules.needs_approval,
        "transport": tool.get("transport", "http"),
        **_conditions(tool),
        **_passed_on(scenario, tool),
    }
    if write:
        plain |= _money(tool, rules) | _undo(scenario, tool)
    if hints.is_looked_up(scenario, tool):
        plain["reconcile"] = _reconcile(scenario, tool)
    if hints.is_sent_by_worker(scenario, name):
        plain["send"] = {"connector": SENT, "path": f"/{name}"}
    return plain | _accepted(scenario, tool) | hints.batch(scenario, tool) | hints.fallback(tool)


def _passed_on(scenario: Scenario, tool: dict[str, Any]) -> dict[str, Any]:
    """What the file calls by the contract's own name."""
    names = (
        "success_statuses", "async_statuses", "rate_limit_statuses", "not_executed_statuses", "precondition_read",
        "irreversible", "max_value_minor", "rate_limit", "preconditions", "sensitive_fields", "proof",
    )  # fmt: skip
    found = {name: tool[name] for name in names if tool.get(name) is not None}
    return (
        found
        if scenario.tool(str(found.get("precondition_read")))
        else {name: value for name, value in found.items() if name != "precondition_read"}
    )


def _conditions(tool: dict[str, Any]) -> dict[str, Any]:
    errors = [hints.condition(one) for one in hints.listed(tool.get("error_when"))]
    errors += [{"path": str(path), "nonempty": True} for path in hints.listed(tool.get("error_when_nonempty"))]
    required = [hints.condition(one) for one in hints.listed(tool.get("success_requires"))]
    return {
        "error_when": errors,
        "success_requires": required,
        "conflict_codes": hints.conflict_codes(tool.get("conflict_codes")),
    }


def _idempotency(tool: dict[str, Any]) -> dict[str, Any]:
    """A stated header is a key; a write for which absence is success is natural; else there is none (ruling 9)."""
    if tool.get("idempotency_header"):
        kept = tool.get("idempotency_ttl_seconds")
        return {"kind": "key", "header": tool["idempotency_header"], "retention_seconds": kept or "unlimited"}
    if tool.get("absent_is_success"):
        return {"kind": "natural"}
    left_out = hints.key_argument(tool)
    return {"kind": "none", **({"field": left_out} if left_out else {})}


def _timeout(scenario: Scenario, tool: str) -> float:
    """A lease that the file states fixes it; else it is as long as the longest answer that the file lets arrive."""
    leases = [float(event.get("ttl_seconds", 0)) for event in scenario.of_type("lease")]
    if leases:
        return max(1.0, max(leases) - LEASE_GRACE_SECONDS)
    return max([USUAL_TIMEOUT_SECONDS, *(took for took in hints.latencies(scenario, tool))])


def _money(tool: dict[str, Any], rules: terms.Rules) -> dict[str, Any]:
    fields = hints.properties(tool.get("input_schema"))
    amount = next((name for name in fields if name.endswith("amount_minor") or name == "amount_minor"), None)
    if amount is None:
        return {}
    currency = {"currency_field": "currency"} if "currency" in fields else {"currency": "EUR"}
    ceiling = rules.ceilings.get(tool["name"], rules.ceilings.get(""))
    return {"value_field": amount, **currency, **({"max_value_minor": ceiling} if ceiling is not None else {})}


# --- looking, polling, being called back ----------------------------------------------------------------------


def _reconcile(scenario: Scenario, tool: dict[str, Any]) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    if hints.is_authoritative(scenario, tool):
        bounds = {"max_in_flight_seconds": 0, "max_visibility_lag_seconds": 0}
    elif tool.get("visibility_lag_seconds") is not None:
        bounds = {"max_in_flight_seconds": 0, "max_visibility_lag_seconds": tool["visibility_lag_seconds"]}
    elif tool.get("idempotency_ttl_seconds"):
        bounds = {"max_in_flight_seconds": 0}
    return {"connector": ASKED, "first_look_seconds": _first_look(scenario, tool["name"]), **bounds}


def _first_look(scenario: Scenario, tool: str) -> float:
    """As soon after the lost answer as the file looks for the first time."""
    steps = hints.steps_of(scenario, tool)
    look = next((e for e in scenario.of_type("reconcile") if e.step in steps or e.get("tool") == tool), None)
    if look is None:
        return 5.0
    lost = [e.t for e in scenario.of_type(*ANSWERS) if e.step in steps and e.t <= look.t]
    return max(0.0, round(look.t - max(lost), 3)) if lost else 5.0


def _accepted(scenario: Scenario, tool: dict[str, Any]) -> dict[str, Any]:
    """How an accepted call ends later: by a poll, by a callback, or by either."""
    found: dict[str, Any] = {}
    if tool.get("poll_tool"):
        found["poll"] = _poll(scenario, tool, scenario.tool(tool["poll_tool"]))
    if tool.get("completes_by") == "callback" or tool.get("state_order") or hints.is_called_back(scenario, tool):
        found["callback"] = _callback(scenario, tool)
    if tool.get("completes_by") == "callback":
        found["completes_by"] = "callback"
    return found


def _poll(scenario: Scenario, tool: dict[str, Any], poll: dict[str, Any]) -> dict[str, Any]:
    asked, answered = hints.properties(poll.get("input_schema")), hints.properties(tool.get("output_schema"))
    state, succeeded, failed = hints.end_states(poll.get("output_schema"))
    return {
        "tool": poll["name"],
        "arguments": {name: name for name in asked if name in answered} or {name: name for name in asked},
        "state": state,
        "succeeded": succeeded,
        "failed": failed,
        "every_seconds": _poll_gap(scenario, tool["name"], poll["name"]),
    }


def _poll_gap(scenario: Scenario, tool: str, poll: str) -> float:
    """The file's own rhythm: the mean time between its polls."""
    steps = hints.steps_of(scenario, tool)
    accepted = [event.t for event in scenario.of_type("response") if event.step in steps]
    polls = [event.t for event in scenario.of_type("dispatch") if event.get("tool") == poll]
    if not accepted or not polls:
        return 30.0
    return max(1.0, round((polls[-1] - accepted[0]) / len(polls), 3))


def _callback(scenario: Scenario, tool: dict[str, Any]) -> dict[str, Any]:
    order = [str(state) for state in tool.get("state_order") or []]
    ends = order[-1].split("|") if order else []
    failed = [state for state in ends if hints.says_failed(state)]
    identity = hints.result_identity(tool)
    return {
        "source": SOURCE,
        "reference": "action_key",
        "identity": identity[0] if identity else None,
        "state": hints.state_field(scenario),
        "succeeded": [state for state in ends if state not in failed] or list(hints.DONE),
        "failed": failed or list(hints.BROKEN),
        "order": order[:20],
    }


# --- undoing --------------------------------------------------------------------------------------------------


def _undo(scenario: Scenario, tool: dict[str, Any]) -> dict[str, Any]:
    if not tool.get("compensable") and not tool.get("compensated_by"):
        return {}
    undo = scenario.tool(str(tool.get("compensated_by"))) or _stand_in(tool)
    recorded = hints.properties(tool.get("output_schema"))
    wanted = [name for name in hints.properties(undo["input_schema"]) if name in recorded]
    return {"compensate": {"tool": undo["name"], "arguments": {name: name for name in wanted}}} if wanted else {}


def _stand_in(tool: dict[str, Any]) -> dict[str, Any]:
    """An undo that the file promises and does not name: known to exist, and nobody here can send it."""
    kept = hints.result_identity(tool) or list(hints.properties(tool.get("output_schema")))[:1]
    fields = {name: {"type": "string"} for name in kept}
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return {"name": f"undo_{tool['name']}"[:80], "effect": "write", "input_schema": schema}


def _missing_undos(scenario: Scenario) -> list[dict[str, Any]]:
    promised = [t for t in scenario.tools if t["effect"] == "write" and t.get("compensable")]
    named = [tool for tool in promised if not tool.get("compensated_by") and _undo(scenario, tool)]
    return [_stand_in(tool) for tool in named]


def _asking(scenario: Scenario) -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
    asked = scenario.of_type("question")
    return [{"name": ASK, "effect": "read", "input_schema": schema}] if asked else []
