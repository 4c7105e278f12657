"""Calls that carry many items: each item ends by itself, and only what is missing goes again (F049)."""

from typing import Any

import pytest
from steadyhand.contract import Cancel, Rollback

from recovery import intake
from runs import wall
from runs.models import Action, Person
from tests.factories import Agent, Case, finish, open_run, propose, register, reply, report
from tests.failures.outside import script_sends
from tests.recovery.invariants import broken
from tests.recovery.stories import effects, evidence, look, open_tasks, press, standing, tasks

ITEMS = [{"sku": f"S{number}", "price": 100 * number} for number in range(1, 6)]
DONE: dict[str, Any] = {"state": "done"}
CLOSED = {"state": "failed", "error": {"code": "closed"}}


def manifest(**tool: Any) -> dict[str, Any]:
    return {
        "tools": [
            {
                "name": "set_prices",
                "effect": "write",
                "success_statuses": [200, 207],
                "batch": {
                    "items": "items",
                    "key": "sku",
                    "results": "results",
                    "result_key": "sku",
                    "ok": {"path": "state", "equals": "done"},
                    "external_id": "id",
                },
                **tool,
            }
        ]
    }


@pytest.fixture
def case(agent: Agent) -> Case:
    register(agent, manifest())
    return open_run(agent, scope={})


def send(case: Case, items: list[dict[str, Any]] | None = None) -> Any:
    return propose(case, "set_prices", {"items": items or ITEMS}, step="prices")


def answered(*ends: dict[str, Any]) -> Any:
    results = [{"sku": f"S{number}", "id": f"p{number}", **end} for number, end in enumerate(ends, 1)]
    return reply({"results": results}, status=207)


def parts(case: Case) -> dict[str, str]:
    with wall.within(case.tenant.pk):
        items = Action.objects.filter(run_id=case.run_id, role="item").order_by("id")
        return {item.step: item.state for item in items}


def whole(case: Case) -> Action:
    with wall.within(case.tenant.pk):
        return Action.objects.filter(run_id=case.run_id, role="call", tool="set_prices").latest("id")


def test_F049_all_items_done_are_effects_of_their_own(case: Case) -> None:
    report(case, send(case), answered(*[DONE] * 5), tool="set_prices")
    assert effects(case) == [f"prices:S{number}" for number in range(1, 6)]
    assert whole(case).state == "succeeded"
    assert finish(case).completed_effects == effects(case)
    assert standing(case) == ("completed", "ok", "completed")


def test_F049_three_of_five_done_is_a_persons_and_says_which(case: Case) -> None:
    report(case, send(case), answered(DONE, CLOSED, DONE, CLOSED, DONE), tool="set_prices")
    assert standing(case) == ("escalated", "needs_human", "partial_effect")
    assert open_tasks(case) == [("reconcile_write", "partial_effect")]
    assert effects(case) == ["prices:S1", "prices:S3", "prices:S5"]
    assert parts(case)["prices:S2"] == "refused_permanent"
    assert evidence(case) == ["partial_final"]


def test_F049_an_item_that_nobody_names_is_unknown_and_the_rest_is_not_final(case: Case) -> None:
    report(case, send(case), answered(DONE, DONE, CLOSED), tool="set_prices")
    assert evidence(case) == ["partial"]
    assert parts(case)["prices:S4"] == "unknown"
    assert standing(case)[2] == "partial_effect"


def test_F049_a_known_part_pages_nobody_and_an_unknown_one_does(agent: Agent, case: Case) -> None:
    report(case, send(case), answered(DONE, CLOSED, DONE, CLOSED, DONE), tool="set_prices")
    assert [task.paged_at for task in tasks(case)] == [None]
    other = open_run(agent, scope={})
    report(other, send(other), answered(DONE, DONE), tool="set_prices")
    assert [task.paged_at is not None for task in tasks(other)] == [True]


def test_F049_nothing_done_is_an_ordinary_refusal(case: Case) -> None:
    report(case, send(case), answered(*[CLOSED] * 5), tool="set_prices")
    assert (whole(case).state, effects(case)) == ("refused_permanent", [])
    assert set(parts(case).values()) == {"refused_permanent"}
    assert standing(case)[0] == "executing"


def test_F049_the_same_item_is_the_same_in_any_batch_of_its_run(agent: Agent, case: Case) -> None:
    report(case, send(case, ITEMS[:2]), answered(DONE, DONE), tool="set_prices")
    permit = propose(case, "set_prices", {"items": ITEMS[:3]}, step="more")
    assert permit.arguments == {"items": ITEMS[2:3]}
    report(case, permit, reply({"results": [{"sku": "S3", "id": "p3", **DONE}]}), tool="set_prices")
    assert effects(case) == ["prices:S1", "prices:S2", "more:S3"]
    assert broken(agent.tenant.pk) == {}


def test_F049_an_unknown_item_does_not_speak_for_the_run_beside_its_batch(agent: Agent, case: Case) -> None:
    report(case, send(case), answered(DONE, DONE, CLOSED), tool="set_prices")
    assert len(tasks(case)) == 1
    assert broken(agent.tenant.pk) == {}


def cancel_in_flight(case: Case) -> None:
    """The run is cancelled while the batch is out; then its reply says that three of five items are done."""
    permit = send(case)
    intake.cancel(case.agent.who, case.run_id, Cancel(reason="Enough."), request_id="t")
    report(case, permit, answered(DONE, CLOSED, DONE, CLOSED, DONE), tool="set_prices")
    assert standing(case) == ("cancelled", "cancelled", "cancelled_with_effects")


def test_F049_F135_a_part_that_could_be_taken_back_is_asked_about_after_the_cancel(
    agent: Agent, omar: Person
) -> None:
    register(agent, undoable())
    case = open_run(agent, scope={})
    cancel_in_flight(case)
    assert open_tasks(case) == [("effect_after_cancel", "cancelled_with_effects")]
    press("waive", case, omar, reason="They are to stay.")
    assert open_tasks(case) == []
    assert whole(case).state == "partial_final"


def test_F049_F135_a_part_that_nobody_can_take_back_is_no_question_after_the_cancel(case: Case) -> None:
    cancel_in_flight(case)
    assert (open_tasks(case), whole(case).state) == ([], "partial_final")
    assert parts(case)["prices:S2"] == "refused_permanent"


def undoable() -> dict[str, Any]:
    """The same, with an undo for each item that the worker can send."""
    undo = {"name": "restore_price", "effect": "write", "send": {"connector": "shop", "path": "/restore"}}
    made = manifest(compensate={"tool": "restore_price", "arguments": {"sku": "sku"}})
    made["tools"].append(undo)
    return made | {"connectors": {"shop": {"kind": "http", "base_url": "http://127.0.0.1:9"}}}


def test_F049_a_rollback_takes_each_item_back_and_then_the_batch_is_over(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    sends = script_sends(monkeypatch)
    register(agent, undoable())
    case = open_run(agent, scope={})
    report(case, send(case), answered(DONE, CLOSED, DONE, CLOSED, CLOSED), tool="set_prices")
    sends.say(reply({"restored": True}))
    intake.rollback(case.agent.who, case.run_id, Rollback(reason="Wrong prices."), request_id="t")
    for _ in range(3):
        look(case)
    assert [one.arguments for one in sends.sent] == [{"sku": "S3"}, {"sku": "S1"}]
    assert (whole(case).state, standing(case)[0]) == ("compensated", "failed")
    assert open_tasks(case) == []
