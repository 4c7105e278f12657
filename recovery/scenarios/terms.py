"""What a run of a scenario is allowed: its own rules, its scope, its limits, sorted by where the product keeps them.

Pure. Every name that is looked for is a usual one; nothing here knows a single file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from recovery.scenarios import hints
from recovery.scenarios.format import Scenario


@dataclass
class Rules:
    """A file's own policy, sorted by where the product keeps it."""

    ceilings: dict[str, int] = field(default_factory=dict)
    needs_approval: set[str] = field(default_factory=set)
    budgets: dict[str, Any] = field(default_factory=dict)
    allowed_tools: list[str] | None = None
    threshold: int | None = None
    approval_seconds: int | None = None
    unread: list[str] = field(default_factory=list)


def required_tools(scenario: Scenario) -> list[str]:
    """Required effects are named by step or by tool."""
    tools = [tool["name"] for tool in scenario.tools]
    named = [name if name in tools else hints.tool_of(scenario, name) for name in scenario.required_effects]
    return [name for name in dict.fromkeys(named) if name in tools]


def limits(scenario: Scenario, rules: Rules) -> dict[str, Any]:
    found = {"value_threshold_minor": rules.threshold, "approval_seconds": rules.approval_seconds}
    return {name: value for name, value in found.items() if value is not None}


def scope_of(scenario: Scenario, rules: Rules) -> dict[str, Any]:
    """The run's authorization: the contract's own fields, and lists of ids under an argument's name."""
    plain: dict[str, Any] = {"ids": {}}
    for name, value in _flat(scenario, scenario.scope):
        if name in ("currency", "expires_at"):
            plain[name] = value
        elif isinstance(value, int) and not isinstance(value, bool):
            plain["max_amount_minor"] = value
        elif name in ("tools", "allowed_tools"):
            plain["tools"] = value
        else:
            plain["ids"][field_of(scenario, name)] = [str(one) for one in hints.listed(value)]
    if rules.allowed_tools is not None:
        plain["tools"] = rules.allowed_tools
    return plain


def _flat(scenario: Scenario, scope: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Its entries, also those that stand under a tool's name or a word for ids."""
    for name, value in scope.items():
        if isinstance(value, dict):
            yield from _flat(scenario, value)
        else:
            yield name, value


def field_of(scenario: Scenario, name: str) -> str:
    """The argument that a scope speaks of: its own name, or that name in the plural."""
    known = {argument for tool in scenario.tools for argument in hints.properties(tool.get("input_schema"))}
    spelled = (name, name.removesuffix("s"), f"{name}_id", f"{name.removesuffix('s')}_id")
    return next((argument for argument in spelled if argument in known), name)


def rules_of(scenario: Scenario) -> Rules:
    rules = Rules()
    for name, value in scenario.policy.items():
        for one in value if name in ("rules", "limits") and isinstance(value, list) else [(name, value)]:
            _read_rule(scenario, rules, *(one if isinstance(one, tuple) else ("rule", one)))
    _deadlines(scenario, rules)
    return rules


def _read_rule(scenario: Scenario, rules: Rules, name: str, value: Any) -> None:
    text = name.lower()
    if isinstance(value, dict):
        tool = str(value.get("tool", name if scenario.tool(name) else ""))
        for key, inner in value.items():
            if key != "tool":
                _read_limit(scenario, rules, key.lower(), inner, tool)
    else:
        _read_limit(scenario, rules, text, value, "")


def _read_limit(scenario: Scenario, rules: Rules, text: str, value: Any, tool: str) -> None:
    number = value if isinstance(value, int) and not isinstance(value, bool) else None
    if "approv" in text and number is not None:
        if "second" in text:
            rules.approval_seconds = max(60, number)
        else:
            rules.threshold = number
    elif "approv" in text:
        rules.needs_approval |= {str(one) for one in hints.listed(value) if scenario.tool(str(one))}
    elif any(word in text for word in ("threshold", "above", "over_minor")) and number is not None:
        rules.threshold = number
    elif any(word in text for word in ("max", "limit")) and number is not None:
        rules.ceilings[tool] = number
    elif any(word in text for word in ("forbid", "den", "block")):
        shut = {str(one) for one in hints.listed(value)}
        rules.allowed_tools = [one["name"] for one in scenario.tools if one["name"] not in shut]
    elif "allow" in text and all(scenario.tool(str(one)) for one in hints.listed(value)):
        rules.allowed_tools = [str(one) for one in hints.listed(value)]
    elif any(word in text for word in ("unmeasured", "usage_missing", "missing_usage", "usage_unknown")):
        rules.budgets["unmeasured"] = "stop" if "stop" in str(value) else "estimate"
    else:
        rules.unread.append(text)


def _deadlines(scenario: Scenario, rules: Rules) -> None:
    """A deadline of a question or an approval counts from the call that asks."""
    asked = [event.t for event in scenario.of_type("tool_call", "question")]
    for event in scenario.of_type("deadline"):
        about = str(event.get("what", "run"))
        before = [t for t in asked if t <= event.t]
        if before and any(word in about for word in ("approval", "question", "input", "answer", "task")):
            rules.approval_seconds = max(60, int(event.t - before[-1]))


def deadline_of(scenario: Scenario) -> datetime | None:
    """A business deadline of the run, where it is another than its time budget."""
    ends = [event.t for event in scenario.of_type("deadline") if "business" in str(event.get("what", "run"))
            or str(event.get("what", "run")) in ("run", "deadline", "customer", "sla")]  # fmt: skip
    seconds = scenario.budget.get("deadline_seconds") or next(iter(ends), None)
    if seconds is None or seconds == scenario.budget.get("max_elapsed_seconds"):
        return None
    return scenario.started_at + timedelta(seconds=float(seconds))
