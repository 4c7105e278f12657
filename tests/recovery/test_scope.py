"""What a run may touch, and that a call cannot pass it by saying it elsewhere or not at all."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from steadyhand.manifest import Tool

from recovery.rules import scope

NOW = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
OBJECT: dict[str, Any] = {"type": "object"}
KNOWN = {
    "type": "object",
    "properties": {
        "account": {"type": "string"},
        "customer": {"type": "object", "properties": {"id": {"type": "string"}}},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"account": {}}}},
        "amount": {"type": "integer"},
        "currency": {"type": "string"},
    },
}


def tool(effect: str = "write", **changes: Any) -> Tool:
    return Tool.model_validate({"name": "t", "effect": effect, "input_schema": KNOWN} | changes)


def refused(limits: dict[str, Any], arguments: dict[str, Any], of: Tool | None = None) -> str | None:
    found = scope.breach(limits, of or tool(), arguments, lambda: NOW)
    return found[0] if found else None


IDS = {"ids": {"account": ["A1", "7"]}}
BY_PATH = {"ids": {"customer.id": ["C1"]}}
IN_LINES = {"ids": {"lines.account": ["A1"]}}


@pytest.mark.parametrize(
    ("limits", "arguments"),
    [
        (IDS, {"account": "A1"}),
        (IDS, {"account": 7}),
        (IDS, {"account": ["A1", "7"]}),
        (BY_PATH, {"customer": {"id": "C1"}}),
        (BY_PATH, {"customer.id": "C1"}),
        (BY_PATH, {"customer": [{"id": "C1"}, {"id": "C1"}]}),
        (IN_LINES, {"lines": [{"account": "A1"}]}),
    ],
)
def test_what_the_scope_names_may_be_touched(limits: dict[str, Any], arguments: dict[str, Any]) -> None:
    assert refused(limits, arguments) is None


@pytest.mark.parametrize(
    ("limits", "arguments"),
    [
        (IDS, {"account": "A2"}),
        (IDS, {"account": ["A1", "A2"]}),
        (IDS, {"account": {"id": "A1"}}),
        (IDS, {"account": True}),
        ({"ids": {"account": ["None", "True"]}}, {"account": None}),
        ({"ids": {"account": ["None", "True"]}}, {"account": True}),
        (BY_PATH, {"customer": {"id": "C2"}}),
        (BY_PATH, {"customer": [{"id": "C1"}, {"id": "C2"}]}),
        (BY_PATH, {"customer.id": "C1", "customer": {"id": "C2"}}),
        (IN_LINES, {"lines": [{"account": "A1"}, {"account": "A2"}]}),
        (IDS, {}),
        (IDS, {"account": []}),
        (BY_PATH, {}),
        (BY_PATH, {"customer": {}}),
        (BY_PATH, {"customer": "C1"}),
        (IN_LINES, {"lines": []}),
    ],
)
def test_what_it_does_not_name_and_what_a_write_leaves_out_is_refused(
    limits: dict[str, Any], arguments: dict[str, Any]
) -> None:
    assert refused(limits, arguments) == next(iter(limits["ids"]))


def test_a_read_may_leave_a_field_out_and_a_tool_that_does_not_know_it_is_not_concerned() -> None:
    assert refused(IDS, {}, tool("read")) is None
    assert refused(IDS, {}, tool(input_schema=OBJECT)) is None
    assert refused({"ids": {"order": ["O1"]}}, {"account": "A1"}) is None
    assert refused(IDS, {"account": "A2"}, tool("read")) == "account"
    assert refused(IDS, {"account": "A2"}, tool(input_schema=OBJECT)) == "account"


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [OBJECT, KNOWN]},
        {"allOf": [{"if": KNOWN}]},
        {"required": ["account"]},
        {"dependencies": {"x": {"properties": {"account": True}}}},
    ],
)
def test_a_field_is_known_wherever_the_schema_declares_it(schema: dict[str, Any]) -> None:
    assert refused(IDS, {}, tool(input_schema=schema)) == "account"


PAYS = {"value_field": "amount", "currency_field": "currency"}
FIXED = {"value_field": "amount", "currency": "EUR"}


@pytest.mark.parametrize(
    ("limits", "arguments", "promises", "field"),
    [
        ({"currency": "EUR"}, {"amount": 1, "currency": "USD"}, PAYS, "currency"),
        ({"currency": "EUR"}, {"amount": 1}, PAYS, "currency"),
        ({"currency": "EUR"}, {"amount": 1, "currency": "eur"}, PAYS, "currency"),
        ({"currency": "USD"}, {"amount": 1}, FIXED, "amount"),
        ({"currency": "EUR"}, {"currency": "USD"}, {"currency_field": "currency"}, "currency"),
        ({"currency": "EUR"}, {"amount": 1, "currency": "EUR"}, PAYS, None),
        ({"currency": "EUR"}, {"amount": 1}, FIXED, None),
        ({"currency": "EUR"}, {}, {}, None),
        ({"max_amount_minor": 10}, {"amount": 11}, FIXED, "amount"),
        ({"max_amount_minor": 10}, {}, FIXED, "amount"),
        ({"max_amount_minor": 10}, {"amount": True}, FIXED, "amount"),
        ({"max_amount_minor": 10}, {"amount": "5"}, FIXED, "amount"),
        ({"max_amount_minor": 10}, {"amount": 10}, FIXED, None),
        ({"max_amount_minor": 10}, {"anything": 99}, {}, None),
        ({"expires_at": "2026-03-14T09:00:00Z"}, {}, {}, "scope"),
    ],
)
def test_money_stays_within_amount_and_currency(
    limits: dict[str, Any], arguments: dict[str, Any], promises: dict[str, Any], field: str | None
) -> None:
    assert refused(limits, arguments, tool(**promises)) == field
