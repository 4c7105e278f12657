"""What differs between two versions of a workflow, and which of it makes it less safe: a table of every rule."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from steadyhand.manifest import Manifest

from recovery.rules import weaker
from recovery.rules.revisions import Difference, differences
from tests.factories import billing_manifest

Edit = Callable[[dict[str, Any]], None]

LISTING = {"path": "/effects", "items": "items"}


def written() -> dict[str, Any]:
    """A manifest that promises all that can be lost."""
    manifest = billing_manifest(
        base_url="https://payments.example",
        idempotency={"kind": "key", "header": "Idempotency-Key", "retention_seconds": 86400},
        proof="look_final",
        requires_approval=True,
        value_threshold=5000,
        deadline_seconds=600,
    )
    manifest["budgets"] |= {"unmeasured": "stop", "max_input_tokens": 1000}
    credit = tool(manifest)
    credit["reconcile"]["look"]["complete"] = {"path": "done", "equals": True}
    credit |= {
        "max_value_minor": 10_000,
        "once_per": ["invoice"],
        "success_requires": [{"path": "ok", "equals": True}],
        "success_statuses": [200],
        "error_when": [{"path": "error", "present": True}],
        "sensitive_fields": ["account"],
        "rate_limit": {"calls": 5, "per_seconds": 60},
        "preconditions": [{"tool": "load_invoice", "path": "open", "equals": True}],
        "after": ["draft_reply", "void_credit"],
        "callback": {"source": "bank", "succeeded": ["done"]},
        "completes_by": "callback",
        "send": {"connector": "payments", "path": "/credits"},
        "dispatch": "host",
    }
    manifest["connectors"]["payments"] |= {
        "allow_hosts": ["payments.example"],
        "secret_header": "Authorization",
        "secret_name": "payments",
        "lists": dict(LISTING),
    }
    return manifest


def tool(manifest: dict[str, Any], name: str = "apply_credit") -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in manifest["tools"] if one["name"] == name)
    return found


def changed(edit: Edit, before: dict[str, Any] | None = None) -> list[Difference]:
    old = before or written()
    new = deepcopy(old)
    edit(new)
    return differences(Manifest.model_validate(old), Manifest.model_validate(new))


def of_tool(**changes: Any) -> Edit:
    return lambda manifest: tool(manifest).update(changes)


def of_look(**changes: Any) -> Edit:
    return lambda manifest: tool(manifest)["reconcile"].update(changes)


def without(*path: str) -> Edit:
    """A part of the credit is no longer declared."""

    def edit(manifest: dict[str, Any]) -> None:
        part = tool(manifest)
        for name in path[:-1]:
            part = part[name]
        del part[path[-1]]

    return edit


def of_connector(**changes: Any) -> Edit:
    return lambda manifest: manifest["connectors"]["payments"].update(changes)


def of_budgets(**changes: Any) -> Edit:
    return lambda manifest: manifest["budgets"].update(changes)


def both(*edits: Edit) -> Edit:
    def edit(manifest: dict[str, Any]) -> None:
        for one in edits:
            one(manifest)

    return edit


WEAKER: dict[str, tuple[Edit, tuple[str, ...], str]] = {
    "the key is dropped": (
        of_tool(idempotency={"kind": "none"}), ("idempotency", "kind"), "under the same key",
    ),
    "the key is kept for less time": (
        of_tool(idempotency={"kind": "key", "header": "Idempotency-Key", "retention_seconds": 60}),
        ("idempotency", "retention_seconds"), "less time, or not at all",
    ),
    "nobody says how long the key is kept": (
        without("idempotency", "retention_seconds"), ("idempotency", "retention_seconds"), "less time, or not at all",
    ),
    "the key does not compare": (
        lambda manifest: tool(manifest)["idempotency"].update(compares_arguments=False),
        ("idempotency", "compares_arguments"), "protects nothing",
    ),
    "the look-up is dropped": (
        both(without("reconcile"), without("proof")), ("reconcile",), "Nobody can look up",
    ),
    "a bound is shortened": (
        of_look(max_in_flight_seconds=5), ("reconcile", "max_in_flight_seconds"), "final sooner",
    ),
    "a lag is shortened": (
        of_look(max_visibility_lag_seconds=5), ("reconcile", "max_visibility_lag_seconds"), "final sooner",
    ),
    "a bound is dropped": (
        both(without("reconcile", "max_in_flight_seconds"), of_tool(proof="look")),
        ("reconcile", "max_in_flight_seconds"), "No look-up is final",
    ),
    "less proof is asked for": (of_tool(proof="reply"), ("proof",), "Less proof"),
    "it no longer counts": (of_look(counts=False), ("reconcile", "counts"), "made twice"),
    "a list may go on": (
        without("reconcile", "look", "complete"), ("reconcile", "look", "complete"), "goes on",
    ),
    "a field is no longer compared": (
        without("reconcile", "look", "match", "amount_minor"), ("reconcile", "look", "match", "amount_minor"),
        "counts as ours",
    ),
    "the undo is dropped": (without("compensate"), ("compensate",), "no longer be undone"),
    "the undo has less time": (
        lambda manifest: tool(manifest)["compensate"].update(window_seconds=60),
        ("compensate", "window_seconds"), "undone for less time",
    ),
    "it is irreversible": (
        both(without("compensate"), of_tool(irreversible=True)), ("irreversible",), "cannot be taken back",
    ),
    "no approval": (of_tool(requires_approval=False), ("requires_approval",), "anybody's approval"),
    "a higher ceiling": (of_tool(max_value_minor=20_000), ("max_value_minor",), "move more"),
    "no ceiling": (without("max_value_minor"), ("max_value_minor",), "move more"),
    "no amount": (without("value_field"), ("value_field",), "not known any more"),
    "one business may be done twice": (without("once_per"), ("once_per",), "more than once"),
    "a business is told by more": (of_tool(once_per=["invoice", "amount_minor"]), ("once_per",), "more than once"),
    "the agent sends it": (of_tool(dispatch="agent"), ("dispatch",), "holds the credential"),
    "a status proves that nothing was done": (
        of_tool(not_executed_statuses=[500]), ("not_executed_statuses",), "nothing was done",
    ),
    "success asks for less": (without("success_requires"), ("success_requires",), "count as a success"),
    "more statuses are a success": (
        of_tool(success_statuses=[200, 409]), ("success_statuses",), "count as a success",
    ),
    "any status may be a success": (without("success_statuses"), ("success_statuses",), "count as a success"),
    "fewer answers are errors": (without("error_when"), ("error_when",), "count as a success"),
    "no schema": (without("output_schema"), ("output_schema",), "valid result"),
    "no identity": (without("identity_fields"), ("identity_fields",), "say less"),
    "something is shown": (without("sensitive_fields"), ("sensitive_fields",), "hidden"),
    "no limit": (without("rate_limit"), ("rate_limit",), "more often"),
    "a higher limit": (of_tool(rate_limit={"calls": 9, "per_seconds": 60}), ("rate_limit", "calls"), "more often"),
    "a shorter window": (
        of_tool(rate_limit={"calls": 5, "per_seconds": 6}), ("rate_limit", "per_seconds"), "more often",
    ),
    "nothing is checked again": (without("preconditions"), ("preconditions",), "checked again"),
    "it waits for fewer": (of_tool(after=["draft_reply"]), ("after",), "waits for fewer"),
    "gone is done": (of_tool(absent_is_success=True), ("absent_is_success",), "counts as work"),
    "a reply is enough": (of_tool(completes_by="reply"), ("completes_by",), "A reply alone"),
    "a higher threshold": (
        lambda manifest: manifest.update(value_threshold_minor=9000), ("value_threshold_minor",), "Larger writes",
    ),
    "no threshold": (
        lambda manifest: manifest.pop("value_threshold_minor"), ("value_threshold_minor",), "Larger writes",
    ),
    "an effect is not required": (
        lambda manifest: manifest.update(required_effects=["draft_reply"]), ("required_effects",), "end well",
    ),
    "more time": (lambda manifest: manifest.update(deadline_seconds=900), ("deadline_seconds",), "take longer"),
    "tasks wait": (lambda manifest: manifest.update(sla_seconds=7200), ("sla_seconds",), "wait longer"),
    "a larger budget": (of_budgets(max_turns=99), ("budgets", "max_turns"), "use more"),
    "no ceiling of tokens": (of_budgets(max_input_tokens=None), ("budgets", "max_input_tokens"), "use more"),
    "usage is guessed": (of_budgets(unmeasured="estimate"), ("budgets", "unmeasured"), "no longer stops"),
    "another host": (of_connector(allow_hosts=["payments.example", "x.example"]), ("allow_hosts",), "another host"),
    "no encryption": (of_connector(base_url="http://payments.example"), ("base_url",), "without encryption"),
    "another system": (of_connector(base_url="https://x.example"), ("base_url",), "Another system"),
    "no credential": (of_connector(secret_name=None), ("secret_name",), "without its credential"),
    "no header": (of_connector(secret_header=None), ("secret_header",), "without its credential"),
    "nothing is listed": (of_connector(lists=None), ("lists",), "no longer looked for"),
    "listed later": (of_connector(lists=LISTING | {"every_seconds": 7200}), ("lists", "every_seconds"), "later"),
    "a slower circuit": (of_connector(circuit={"fault_ratio": 0.9}), ("circuit", "fault_ratio"), "in trouble"),
    "a circuit that needs more": (of_connector(circuit={"min_calls": 50}), ("circuit", "min_calls"), "in trouble"),
}  # fmt: skip


@pytest.mark.parametrize("case", WEAKER)
def test_a_change_that_takes_safety_away_says_what_it_takes(case: str) -> None:
    edit, path, words = WEAKER[case]
    [found] = [one for one in changed(edit) if one.weaker and one.path == path]
    assert words in found.weaker


@pytest.mark.parametrize("case", WEAKER)
def test_the_way_back_is_not_called_weaker(case: str) -> None:
    edit, path, _ = WEAKER[case]
    before = written()
    edit(before)
    found = differences(Manifest.model_validate(before), Manifest.model_validate(written()))
    told = {one.path: one.weaker for one in found}
    assert path in told
    if case not in NO_BETTER_EITHER_WAY:
        assert told[path] == "", told[path]


NO_BETTER_EITHER_WAY = {"another system"}
"""Whichever host comes, it is another one that answers."""


@pytest.mark.parametrize("name", ["tool", "connector", "workflow"])
def test_each_rule_has_a_case(name: str) -> None:
    kinds = {"tool": weaker._TOOL, "connector": weaker._CONNECTOR, "workflow": weaker._WORKFLOW}
    tried = {path for _, path, _ in WEAKER.values()}
    alike = {(*path[:-1], "*") for path in tried}
    rare = {
        "tool": {(), ("effect",), ("reconcile", "match", "*"), ("fallback",),
                 ("reconcile", "look", "ours", "*")},
        "connector": {("kind",)},
    }  # fmt: skip
    budgets = {path for path in kinds[name] if path[0:1] == ("budgets",)}
    assert set(kinds[name]) - tried - alike - budgets - rare.get(name, set()) == set()


@pytest.mark.parametrize(
    ("of", "path", "old", "new", "words"),
    [
        ("tool", (), None, {"effect": "write", "reconcile": None}, "nobody can look up"),
        ("tool", ("effect",), "write", "read", "counts as a read"),
        ("tool", ("reconcile", "match", "amount"), "x", None, "counts as ours"),
        ("tool", ("reconcile", "look", "ours", "id"), "x", None, "counts as ours"),
        ("tool", ("fallback",), None, {"tool": "other"}, "another read"),
        ("tool", ("idempotency", "retention_seconds"), "unlimited", 60, "less time"),
        ("tool", ("after",), None, [], "waits for fewer"),
        ("tool", ("success_statuses",), None, [409], "count as a success"),
        ("tool", ("compensate", "window_seconds"), None, 60, "undone for less time"),
        ("connector", ("kind",), "http", "manual", "Nobody can be asked"),
    ],
)
def test_rules_of_rarer_fields(of: str, path: tuple[str, ...], old: Any, new: Any, words: str) -> None:
    assert words in weaker.sentence(of, path, old, new)


@pytest.mark.parametrize(
    ("of", "path", "old", "new"),
    [
        ("tool", (), None, {"effect": "read", "reconcile": None}),
        ("tool", (), None, {"effect": "write", "reconcile": {"connector": "x"}}),
        ("tool", ("after",), [], None),
        ("tool", ("success_statuses",), None, [200, 201]),
        ("tool", ("title",), "a", "b"),
        ("tool", ("idempotency", "retention_seconds"), 60, "unlimited"),
        ("workflow", ("budgets", "max_input_tokens"), None, 5),
    ],
)
def test_what_is_no_loss_is_not_called_one(of: str, path: tuple[str, ...], old: Any, new: Any) -> None:
    assert weaker.sentence(of, path, old, new) == ""


def test_a_manifest_that_is_only_written_in_another_way_does_not_differ() -> None:
    def reordered(manifest: dict[str, Any]) -> None:
        manifest["tools"].reverse()
        manifest["budgets"]["max_same_answers"] = 4
        tool(manifest)["timeout_seconds"] = 30

    assert changed(reordered) == []


def test_a_renamed_tool_is_one_that_went_and_one_that_came() -> None:
    def renamed(manifest: dict[str, Any]) -> None:
        tool(manifest, "draft_reply")["name"] = "write_reply"
        manifest["required_effects"] = ["apply_credit", "write_reply"]
        tool(manifest)["after"] = ["write_reply", "void_credit"]

    whole = [(one.of, one.name, one.change) for one in changed(renamed) if not one.path]
    assert whole == [("tool", "write_reply", "added"), ("tool", "draft_reply", "removed")]


def test_differences_follow_the_new_version_and_hold_both_values() -> None:
    edit = both(of_budgets(max_turns=5), of_tool(timeout_seconds=9), of_connector(timeout_seconds=5))
    assert [(one.of, one.name, one.path, one.change, one.old, one.new) for one in changed(edit)] == [
        ("workflow", "", ("budgets", "max_turns"), "changed", 12, 5),
        ("tool", "apply_credit", ("timeout_seconds",), "changed", 30, 9),
        ("connector", "payments", ("timeout_seconds",), "changed", 10, 5),
    ]


def test_a_part_that_came_is_one_place_and_says_only_what_was_declared() -> None:
    before = written()
    del tool(before)["compensate"]
    new = Manifest.model_validate(written())
    [found] = differences(Manifest.model_validate(before), new)
    assert (found.path, found.change, found.old) == (("compensate",), "added", None)
    assert found.new == {
        "tool": "void_credit", "arguments": {"credit": "credit_id"}, "window_seconds": 2592000, "cost_minor": 0,
        "max_attempts": 5,
    }  # fmt: skip


def test_true_and_one_are_two_values() -> None:
    before = written()
    [found] = changed(of_tool(error_when=[{"path": "error", "equals": 1}]), {**before, "tools": [
        one | {"error_when": [{"path": "error", "equals": 2}]} if one["name"] == "apply_credit" else one
        for one in before["tools"]
    ]})  # fmt: skip
    assert found.path == ("error_when",)
