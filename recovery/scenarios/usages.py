"""What a model turn used, under any of the names that such numbers go by. Pure."""

from __future__ import annotations

from typing import Any

from steadyhand.contract import Usage

from recovery.scenarios.format import Event, Scenario

_NAMES = {
    "input_tokens": ("input_tokens", "input", "prompt_tokens", "prompt", "in", "total_tokens", "total"),
    "output_tokens": ("output_tokens", "output", "completion_tokens", "completion", "out"),
    "cost_minor": ("cost_minor", "cost_minor_units", "estimated_cost_minor_units", "cost", "cost_estimate_minor"),
}


LITTLE = Usage(input_tokens=1, output_tokens=1, cost_minor=0)
"""What a turn used in a file that is not about usage at all."""


def of(event: Event) -> Usage | None:
    """What is missing or null is not known, never zero (ruling 7); None where the event says no number at all."""
    told = event.get("usage")
    plain = told if isinstance(told, dict) else event.data
    found = {field: _number(plain, names) for field, names in _NAMES.items()}
    return Usage(**found) if any(value is not None for value in found.values()) else None


def are_told(scenario: Scenario) -> bool:
    """Whether the file is about usage: then a turn without numbers is one whose usage is not known."""
    turns = scenario.of_type("model_turn")
    return bool(scenario.of_type("tokens")) or any("usage" in turn.data or of(turn) is not None for turn in turns)


def _number(plain: dict[str, Any], names: tuple[str, ...]) -> int | None:
    values = (plain.get(name) for name in names)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and v >= 0), None)
