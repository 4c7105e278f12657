"""What a tool declares as sensitive looks like anything else; no table keeps it in clear, whichever way it came."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from steadyhand.connector import Listed
from steadyhand.contract import Rollback

from recovery import intake
from recovery.connectors.base import Finding
from recovery.models import Gap
from runs import wall
from runs.models import Evidence
from tests.console.conftest import House, make_house
from tests.factories import (
    RESULTS,
    Case,
    advance_clock,
    lose_the_reply,
    open_run,
    propose,
    register,
    reply,
    report,
    timed_out,
)
from tests.failures import books
from tests.failures.conftest import manifest
from tests.failures.outside import DOWN, script_sends, stand_manifest
from tests.failures.test_batches import DONE
from tests.failures.test_batches import manifest as batch_manifest
from tests.failures.test_outside import Ledger, listed, now
from tests.failures.test_outside import manifest as listing_manifest
from tests.recovery.installed import installed
from tests.recovery.stories import look, open_tasks, press, script, work

pytestmark = [pytest.mark.security, pytest.mark.django_db]
PLAIN = "harbour lane seven"
"""Nothing about it tells that it is a secret, but for the contract that says so."""
CREDIT = {"account": PLAIN, "invoice": "INV-1", "amount_minor": 500, "currency": "EUR"}
KEYED: Any = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"}


@pytest.fixture
def house(db: None) -> House:
    return make_house()


def kept_in_clear(house: House) -> list[str]:
    """The tables in which it stands, among all that the application may read."""
    with wall.within(house.nordlicht.pk), connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
            " AND has_table_privilege(oid, 'SELECT')"
        )
        tables = [row[0] for row in cursor.fetchall()]
        assert {"runs_action", "recovery_decision", "recovery_deadletter", "recovery_gap"} <= set(tables)
        return [table for table in tables if _stands_in(cursor, table)]


def _stands_in(cursor: Any, table: str) -> bool:
    cursor.execute(f"SELECT 1 FROM {table} t WHERE row_to_json(t)::text LIKE %s LIMIT 1", [f"%{PLAIN}%"])
    return cursor.fetchone() is not None


def opened(house: House, made: dict[str, Any]) -> Case:
    register(house.agent, made)
    return open_run(house.agent, scope={})


def test_the_search_finds_what_is_not_declared(house: House) -> None:
    propose(opened(house, manifest()), arguments=CREDIT)
    assert kept_in_clear(house) == ["runs_action"]


def test_SEC_34_in_arguments_answers_dead_letters_and_decisions(house: House) -> None:
    case = opened(house, manifest(sensitive_fields=["account"], idempotency=KEYED, reconcile=None))
    for _ in range(3):
        report(case, propose(case, arguments=CREDIT), reply({"error": {"account": PLAIN}}, status=503))
        advance_clock(seconds=90)
    assert open_tasks(case) == [("dead_letter", "retry_exhausted")]
    press("replay", case, house.people["omar"])
    report(case, propose(case, arguments=CREDIT), reply({**RESULTS["apply_credit"], "account": PLAIN}))
    assert kept_in_clear(house) == []


@pytest.mark.parametrize("declared", ["account", "customer.account"])
def test_SEC_34_in_what_a_look_up_brings_however_it_is_wrapped(
    house: House, monkeypatch: pytest.MonkeyPatch, declared: str
) -> None:
    looks, found = script(monkeypatch), {"customer": {"account": PLAIN}}
    case = opened(house, manifest(sensitive_fields=[declared]))
    lose_the_reply(case)
    for raw in ({"error": "busy", "data": [found]}, [found], found):
        looks.say(Finding("probe_failed", "The look-up answered 500.", raw=raw))
        advance_clock(seconds=600)
        look(case)
    with wall.within(case.tenant.pk):
        assert Evidence.objects.filter(kind="probe").count() == 3
    assert kept_in_clear(house) == []


def outside(house: House, tmp_path: Path, tell: Callable[[Ledger], None]) -> None:
    made, ledger = listing_manifest(), Ledger()
    next(tool for tool in made["tools"] if tool["name"] == "apply_credit")["sensitive_fields"] = ["account"]
    with installed(tmp_path, books.NAME, ledger):
        register(house.agent, made)
        tell(ledger)
        listed(house.nordlicht)


def test_SEC_34_in_an_effect_that_nobody_admits(house: House, tmp_path: Path) -> None:
    outside(house, tmp_path, lambda there: there.effects.append(Listed("cr_9", now(), record={"account": PLAIN})))
    with wall.within(house.nordlicht.pk):
        assert Gap.objects.count() == 1
    assert kept_in_clear(house) == []


def test_SEC_34_in_a_listed_effect_of_a_call(house: House, tmp_path: Path) -> None:
    def tell(there: Ledger) -> None:
        case = open_run(house.agent, scope={})
        report(case, propose(case), timed_out())
        there.effects.append(Listed("cr_9", now(), case.action().action_id, record={"account": PLAIN}))

    outside(house, tmp_path, tell)
    with wall.within(house.nordlicht.pk):
        assert Evidence.objects.filter(kind="listing").count() == 1
    assert kept_in_clear(house) == []


def test_SEC_34_in_the_items_of_a_batch(house: House) -> None:
    made = batch_manifest(sensitive_fields=["items.note"])
    case = opened(house, made)
    items = [{"sku": "S1", "price_minor": 1, "note": PLAIN}]
    permit = propose(case, "set_prices", {"items": items}, step="prices")
    report(case, permit, reply({"results": [{"sku": "S1", "id": "p1", **DONE}]}), tool="set_prices")
    assert len([one for one in actions_of(case) if one.role == "item"]) == 1
    assert kept_in_clear(house) == []


def actions_of(case: Case) -> list[Any]:
    with wall.within(case.tenant.pk):
        return list(case.run.actions.all())


def test_SEC_34_in_an_undo_that_hands_it_back(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    sends = script_sends(monkeypatch)
    sends.say(DOWN, reply({"undo_id": "un_1"}))
    undo = {"tool": "refund", "arguments": {"payment": "payment_id", "holder": "account.holder"}}
    made = stand_manifest(pay={"sensitive_fields": ["account.holder"], "compensate": undo})
    case = opened(house, made)
    answer = reply({"payment_id": "p_1", "account": {"holder": PLAIN}}, status=201)
    report(case, propose(case, "pay", {"amount_minor": 500}), answer, tool="pay")
    intake.rollback(case.agent.who, case.run_id, Rollback(reason="Wrong."), request_id="t")
    work(case.tenant.pk)
    assert [one.arguments for one in sends.sent] == [{"payment": "p_1", "holder": PLAIN}]
    assert kept_in_clear(house) == []
