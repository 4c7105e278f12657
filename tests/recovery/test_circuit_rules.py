"""The circuit's rules as tables: whose circuit, what counts, when it opens, who may try, when what waits goes on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from steadyhand import observe
from steadyhand.contract import Observation
from steadyhand.manifest import Circuit, Connector, Tool

from recovery.rules import circuit
from recovery.rules.circuit import Standing
from recovery.rules.classify import classify
from tests.factories import reply, timed_out

NOW = datetime(2026, 3, 14, 10, 30, tzinfo=UTC)
TERMS = Circuit()
LOOK = {"connector": "payments", "look": {"path": "/x", "ours": {"a": "{action_id}"}, "external_id": "id"}}
SEND = {"connector": "exports", "path": "/x"}


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def tool(effect: str = "write", **promises: Any) -> Tool:
    return Tool.model_validate({"name": "pay", "effect": effect, **promises})


# --- which circuit ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("promises", "call", "look"),
    [
        ({}, "tool:pay", None),
        ({"connection": "main"}, "tool:pay", None),
        ({"reconcile": LOOK}, "connector:payments", "connector:payments"),
        ({"reconcile": LOOK, "connection": "main"}, "connector:payments/main", "connector:payments/main"),
        ({"reconcile": LOOK, "send": SEND}, "connector:exports", "connector:payments"),
    ],
)
def test_a_call_and_its_look_go_through_the_circuit_of_their_connector_and_account(
    promises: dict[str, Any], call: str, look: str | None
) -> None:
    assert (circuit.of_call(tool(**promises)), circuit.of_look(tool(**promises))) == (call, look)


def test_the_manifest_tunes_the_circuit_of_its_connector_and_no_other() -> None:
    connectors = {"payments": Connector(base_url="http://x", circuit=Circuit(min_calls=3))}
    assert circuit.terms_of("connector:payments/main", connectors).min_calls == 3
    assert circuit.terms_of("connector:mail", connectors) == circuit.terms_of("tool:payments", connectors) == TERMS


KEY = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"}


@pytest.mark.parametrize(
    ("promises", "connector", "can"),
    [
        ({"send": SEND}, {}, False),
        ({"send": SEND}, {"health": "/up"}, True),
        ({"send": SEND, "idempotency": KEY}, {}, True),
        ({"send": SEND, "idempotency": {"kind": "natural"}}, {}, True),
        ({"send": SEND, "effect": "read"}, {}, True),
        ({"reconcile": {**LOOK, "connector": "exports"}}, {}, True),
        ({"reconcile": {"connector": "exports"}}, {"kind": "manual"}, False),
    ],
)
def test_F114_only_what_does_no_harm_can_try_it(
    promises: dict[str, Any], connector: dict[str, Any], can: bool
) -> None:
    address = {} if connector.get("kind") == "manual" else {"base_url": "http://x"}
    connectors = {"exports": Connector.model_validate(address | connector)}
    made = tool(promises.pop("effect", "write"), **promises)
    assert circuit.can_be_tried("connector:exports", [made], connectors) == can
    assert not circuit.can_be_tried("tool:other", [made], connectors)


# --- what counts --------------------------------------------------------------------------------------------

NOT_REACHED = observe.from_exception(ConnectionRefusedError("no"), left=False)


@pytest.mark.parametrize(
    ("observation", "counts"),
    [
        (timed_out(), True),
        (Observation(kind="connection_lost", bytes_sent=0), True),
        (Observation(kind="connection_lost", bytes_sent=12), True),
        (NOT_REACHED, True),
        (reply({}, status=500), True),
        (reply({}, status=503), True),
        (Observation(kind="reply", code="UNAVAILABLE"), True),
        (observe.not_sent("The permit was too old when its turn came."), False),
        (Observation(kind="exception", exc_type="KeyError"), False),
        (Observation(kind="reply", code="NOT_FOUND"), False),
        (reply({"error": {"code": "closed"}}, status=422), False),
        (reply({}, status=404), False),
        (reply({}, status=401), False),
        (reply({}, status=429), False),
        (reply({}, status=408), False),
        (reply("no JSON that was promised", status=200), False),
        (reply({"id": "x"}), False),
    ],
)
@pytest.mark.parametrize("effect", ["read", "write"])
def test_F113_only_the_dependencys_own_faults_count(observation: Observation, counts: bool, effect: str) -> None:
    found = classify(observation, tool(effect), clock=lambda: NOW, breach=lambda result: None)
    assert circuit.is_fault(observation, found) == counts


def test_F113_a_refusal_that_the_contract_knows_is_none_whatever_its_status() -> None:
    made = tool(conflict_codes={"invoice_closed": "business_rule"}, rate_limit_statuses=[429, 503])
    for answer in (reply({"error": {"code": "invoice_closed"}}, status=500), reply({}, status=503)):
        found = classify(answer, made, clock=lambda: NOW, breach=lambda result: None)
        assert not circuit.is_fault(answer, found)


# --- opening and closing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("faults", "calls", "opens"),
    [(9, 9, False), (10, 10, True), (5, 10, True), (4, 10, False), (5, 11, False), (50, 100, True), (12, 3, True)],
)
def test_it_opens_by_share_and_least_volume(faults: int, calls: int, opens: bool) -> None:
    assert circuit.opens(faults, calls, TERMS) == opens


@pytest.mark.parametrize("ratio", [0.01, 0.2, 0.5, 1.0])
def test_nobody_counts_calls_while_faults_alone_could_not_open_it_nor_more_than_matter(ratio: float) -> None:
    terms = Circuit(fault_ratio=ratio)
    for faults in range(1, 101):
        limit = circuit.enough_calls(faults, terms)
        assert circuit.opens(faults, limit, terms) == circuit.opens(faults, limit + 1000, terms)
        if not circuit.may_open(faults, terms):
            assert not any(circuit.opens(faults, calls, terms) for calls in range(faults, 200))


def test_of_many_faults_only_the_calls_since_the_oldest_kept_one_are_counted() -> None:
    few = [after(-20), after(-1)]
    many = [after(-2 + number / 100) for number in range(circuit.MOST_FAULTS)]
    assert circuit.counted_from(few, NOW, TERMS) == after(-30)
    assert circuit.counted_from(many, NOW, TERMS) == after(-2)


def test_F112_the_pause_doubles_up_to_a_cap_and_begins_anew_after_a_long_quiet() -> None:
    pauses, last = [], 0.0
    for _ in range(8):
        last = circuit.cooldown(last, None, TERMS)
        pauses.append(last)
    assert pauses == [15, 30, 60, 120, 240, 300, 300, 300]
    assert circuit.cooldown(60, 5, TERMS) == 120
    assert circuit.cooldown(60, 300, TERMS) == 15


@pytest.mark.parametrize(
    ("at", "evidence"),
    [
        (Standing("closed", None), "closed"),
        (Standing("open", after(1)), "shut"),
        (Standing("open", after(0)), "half_slot"),
        (Standing("open", after(0), live=1), "shut"),
        (Standing("half_open", None), "half_slot"),
        (Standing("half_open", None, live=1), "shut"),
        (Standing("half_open", None, good=1), "half_slot"),
        (Standing("held_open", None), "shut"),
    ],
)
def test_F110_the_table_sees_a_slot_only_where_one_is_free(at: Standing, evidence: str) -> None:
    assert circuit.as_evidence(at, NOW, TERMS) == evidence


def test_F110_no_more_trials_begin_than_are_still_needed() -> None:
    terms = Circuit(slots=5, successes=3)
    assert circuit.trials_free(Standing("half_open", None), NOW, terms) == 3
    assert circuit.trials_free(Standing("half_open", None, live=1, good=1), NOW, terms) == 1
    assert circuit.trials_free(Standing("half_open", None, live=2, good=1), NOW, terms) == 0
    assert [circuit.closes(good, terms) for good in (2, 3)] == [False, True]


# --- waiting and being let go -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "earliest", "latest"),
    [
        (Standing("open", after(15)), 15.5, 30),
        (Standing("open", after(-100)), 0.5, 15),
        (Standing("half_open", None), 0.5, 15),
        (Standing("held_open", None), 30, 60),
    ],
)
def test_F108_what_waits_asks_again_after_the_pause_and_not_all_at_once(
    at: Standing, earliest: float, latest: float
) -> None:
    ends = [circuit.ask_again_at(at, NOW, TERMS, spread) for spread in (0.0, 1.0)]
    assert ends == [after(earliest), after(latest)]


def test_F108_a_share_of_the_traffic_may_be_retries_with_a_floor() -> None:
    assert [circuit.retries_allowed(rate, TERMS) for rate in (0, 10, 1000)] == [10, 10, 200]


@pytest.mark.parametrize(
    ("state", "closed_at", "releasing"),
    [
        ("closed", after(-1), True),
        ("closed", after(-600), False),
        ("closed", None, False),
        ("open", after(-1), False),
    ],
)
def test_F108_the_budget_holds_for_a_while_after_it_closed(
    state: Any, closed_at: datetime | None, releasing: bool
) -> None:
    assert circuit.is_releasing(state, closed_at, NOW) == releasing


def test_a_pause_that_cannot_grow_is_refused() -> None:
    with pytest.raises(ValueError, match="max_cooldown_seconds is less than cooldown_seconds"):
        Circuit(cooldown_seconds=60, max_cooldown_seconds=30)
