"""The same story through every kind of connector: found out, sent once, undone once, or handed to a person."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pytest_django.fixtures import Settings
from steadyhand.contract import Rollback
from steadyhand.manifest import Manifest

from recovery import intake
from runs import wall
from runs.models import Action, Attempt, Person, Tenant
from tests.factories import Agent, Case, advance_clock, billing_manifest, lose_the_reply, open_run, propose, register
from tests.failures import books
from tests.failures.books import KINDS, Books
from tests.recovery.stories import effects, look, open_tasks, panel, standing

pytestmark = [pytest.mark.failures, pytest.mark.django_db]
Begin = Callable[..., tuple[Case, Books]]


@pytest.fixture(params=KINDS)
def begin(request: Any, tenant: Tenant, agent: Agent, tmp_path: Path, settings: Settings) -> Iterator[Begin]:
    with books.opened(request.param, tenant, tmp_path, settings) as (kept, connector):

        def begin(**changes: Any) -> tuple[Case, Books]:
            register(agent, books.manifest(connector, **changes))
            return open_run(agent), kept

        yield begin


def looks_of(case: Case) -> int:
    with wall.within(case.tenant.pk):
        return sum(Action.objects.filter(run_id=case.run_id).values_list("looks", flat=True))


def sent_by_worker(case: Case) -> int:
    with wall.within(case.tenant.pk):
        return Attempt.objects.filter(run_id=case.run_id, layer="worker").count()


def after(case: Case, seconds: float) -> None:
    advance_clock(seconds=seconds)
    look(case)


def test_F026_an_effect_behind_a_lost_reply_is_found(begin: Begin) -> None:
    case, kept = begin()
    lose_the_reply(case)
    sent = {name: case.action().arguments[name] for name in books.FIELDS}
    kept.credits.append({"credit_id": "cr_77", "action_id": case.action().action_id, **sent})
    after(case, 6)
    assert (case.action().state, case.action().external_id, effects(case)) == ("succeeded", "cr_77", ["apply_credit"])
    assert open_tasks(case) == []
    assert kept.looks() == looks_of(case) == 1


def test_F041_nothing_found_frees_the_call_only_after_the_bound(begin: Begin) -> None:
    case, _ = begin()
    lose_the_reply(case)
    after(case, 6)
    assert case.action().state == "absent"
    for _ in range(3):
        after(case, 20)
    assert case.action().state == "absent_final"
    assert propose(case).answer == "execute"


def test_F029_two_effects_under_our_reference_are_a_persons(begin: Begin) -> None:
    case, kept = begin()
    lose_the_reply(case)
    sent = {name: case.action().arguments[name] for name in books.FIELDS}
    for number in (1, 2):
        kept.credits.append({"credit_id": f"cr_{number}", "action_id": case.action().action_id, **sent})
    after(case, 6)
    assert open_tasks(case) == [("duplicate_effect", "duplicate_effect")]


@pytest.mark.parametrize("changes", [{"amount_minor": 11_999}, {"account": "acct_1"}])
def test_F044_our_reference_on_other_values_is_nobodys_proof(begin: Begin, changes: dict[str, Any]) -> None:
    case, kept = begin()
    lose_the_reply(case)
    sent = {name: case.action().arguments[name] for name in books.FIELDS}
    kept.credits.append({"credit_id": "cr_1", "action_id": case.action().action_id, **sent, **changes})
    after(case, 6)
    assert (case.action().state, effects(case)) == ("held", [])
    assert open_tasks(case) == [("decide_next", "conflicting_evidence")]


def test_F044_somebody_elses_credit_of_the_same_amount_is_not_ours(begin: Begin) -> None:
    case, kept = begin()
    lose_the_reply(case)
    sent = {name: case.action().arguments[name] for name in books.FIELDS}
    kept.credits.append({"credit_id": "cr_1", "action_id": "somebody-else", **sent})
    after(case, 6)
    assert case.action().state == "absent"


def test_F107_what_the_worker_sends_arrives_once_for_each_attempt(begin: Begin) -> None:
    case, kept = begin(host=True)
    kept.loses = 1
    assert propose(case).answer == "wait"
    look(case)
    assert (case.action().state, kept.sends()) == ("unknown", ["execute"]), "the lost answer is not asked for again"
    after(case, 6)
    assert (case.action().state, len(kept.credits)) == ("succeeded", 1)
    assert len(kept.sends()) == sent_by_worker(case) == 1
    assert kept.looks() == looks_of(case) == 1


def test_F107_an_undo_arrives_once_for_each_attempt(begin: Begin) -> None:
    case, kept = begin(host=True)
    propose(case)
    look(case)
    intake.rollback(case.agent.who, case.run_id, Rollback(reason="Not owed."), request_id="test")
    for _ in range(8):
        after(case, 20)
    assert kept.sends() == ["execute", "compensate"]
    assert len(kept.sends()) == sent_by_worker(case)
    assert (kept.credits, standing(case)[0]) == ([], "failed")


# --- what no request reaches --------------------------------------------------------------------------------


def by_hand(**promises: Any) -> dict[str, Any]:
    made = billing_manifest()
    made["connectors"]["payments"] = {"kind": "manual"}
    credit = next(tool for tool in made["tools"] if tool["name"] == "apply_credit")
    credit["reconcile"] = {"connector": "payments"}
    credit |= promises
    return made


def test_a_write_that_nobody_can_ask_about_is_a_persons_at_once(agent: Agent, alice: Person) -> None:
    register(agent, by_hand())
    case = open_run(agent)
    lose_the_reply(case)
    assert open_tasks(case) == [("reconcile_write", "external_outcome_unknown")]
    after(case, 3600)
    assert looks_of(case) == 0, "nobody is asked, ever"
    check = panel(case, alice).verb("reconcile")
    assert not check.allowed
    assert check.sentence == "Blocked: nobody can be asked about apply_credit: look there, and attest it."


@pytest.mark.parametrize(
    ("changes", "place", "sentence"),
    [
        ({"proof": "look"}, "tools.1.proof", "never asked"),
        ({"send": {"connector": "payments"}}, "tools.1.send.connector", "nothing can be sent"),
        (
            {"reconcile": {"connector": "payments", "max_in_flight_seconds": 5}},
            "tools.1.reconcile.max_in_flight_seconds",
            "never asked",
        ),
    ],
)
def test_a_promise_that_a_manual_connector_cannot_keep_is_refused(
    changes: dict[str, Any], place: str, sentence: str
) -> None:
    faults = refused(by_hand(**changes))
    assert sentence in faults[place]


HTTP = {"kind": "http", "base_url": "https://h.example"}
LOOKED: dict[str, Any] = {"path": "/x", "ours": {"a": "{action_id}"}, "external_id": "id"}


@pytest.mark.parametrize(
    ("connector", "reconcile", "place"),
    [
        ({"kind": "python"}, {"look": LOOKED}, "tools.1.reconcile.look"),
        ({"kind": "webhook", "base_url": "https://h.example"}, {"look": LOOKED}, "tools.1.reconcile.look"),
        (HTTP, {"look": LOOKED, "match": {"a": 1}}, "tools.1.reconcile.match"),
        ({"kind": "webhook"}, {}, "connectors.payments"),
        ({"kind": "python", "base_url": "https://h.example"}, {}, "connectors.payments"),
        ({"kind": "manual", "entry_point": "x"}, {}, "connectors.payments"),
    ],
)  # fmt: skip
def test_a_look_that_does_not_fit_its_kind_is_refused(
    connector: dict[str, Any], reconcile: dict[str, Any], place: str
) -> None:
    made = by_hand(reconcile={"connector": "payments", **reconcile})
    made["connectors"]["payments"] = connector
    assert place in refused(made)


def test_a_send_that_gets_the_whole_call_takes_no_path() -> None:
    made = by_hand(send={"connector": "payments", "path": "/credits"})
    made["connectors"]["payments"] = {"kind": "python"}
    assert "whole call" in refused(made)["tools.1.send.path"]


def refused(manifest: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ValidationError) as wrong:
        Manifest.model_validate(manifest)
    return {".".join(map(str, fault["loc"])): fault["msg"] for fault in wrong.value.errors()}
