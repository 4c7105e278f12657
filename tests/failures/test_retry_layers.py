"""An agent, a wrapper and an HTTP client that each want three tries: one owner of retries, and the others by name.

Everything is real but the network to Steadyhand: the SDK, the API, intake and PostgreSQL, and a provider that counts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from steadyhand import Boundary, Call, Run, SteadyhandError, Unrecorded, http_call

from runs import wall
from runs.models import Event
from tests.factories import ACCOUNT, AMOUNT, INVOICE, SCOPE, WORKFLOW, Agent, Case, advance_clock
from tests.failures.conftest import Opener
from tests.failures.in_process import InProcess, boundary_of
from tests.recovery.stories import Looks, effects, tick, tries
from tests.sdk.counting_server import Answer, counting, plainly

KEY = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"}
ARGUMENTS = {"account": ACCOUNT, "invoice": INVOICE, "amount_minor": AMOUNT, "currency": "EUR"}
Tool = Callable[[dict[str, Any], Call], Any]
TOO_MANY = plainly(429, {"retry-after": "5"}, b'{"error": "slow down"}')


def impatient_tool(url: str) -> Tool:
    """Layer three: an HTTP client that sends up to three times by itself."""

    def apply_credit(arguments: dict[str, Any], call: Call) -> Any:
        with httpx.Client() as client:
            for last in (False, False, True):
                try:
                    return http_call(call, client, "POST", url, json=arguments).raise_for_status().json()
                except Exception:
                    if last:
                        raise
        return None

    return apply_credit


def impatient_wrapper(run: Run, tool: Tool, layer: str) -> Any:
    """Layer two: tries what raises up to three times; its own tries go by its own name."""
    for number in range(3):
        try:
            return run.call(tool, ARGUMENTS, layer="wrapper" if number else layer)
        except SteadyhandError:
            continue
    return None


def impatient_agent(run: Run, tool: Tool, *, pause: Callable[[], object] = lambda: None) -> Any:
    """Layer one: an agent that begins three times anew."""
    for _ in range(3):
        if (result := impatient_wrapper(run, tool, "agent")) is not None:
            return result
        pause()
    return None


def opened_run(agent: Agent, **ways: Any) -> Run:
    return boundary_of(agent, **ways).run(workflow=WORKFLOW, intent="Credit the customer.", scope=SCOPE)


def case_of(agent: Agent, run: Run) -> Case:
    return Case(agent, run.run_id, run.workflow_id)  # type: ignore[arg-type]


def refused_layers(case: Case) -> list[str]:
    with wall.within(case.tenant.pk):
        refused = Event.objects.filter(run_id=case.run_id, kind="retry_refused").order_by(*Event.IN_ORDER)
        return [event.data["layer"] for event in refused]


def test_F106_twenty_seven_wishes_are_one_arrival_while_the_call_is_not_free(opened: Opener, agent: Agent) -> None:
    opened(idempotency=KEY)
    run = opened_run(agent, max_wait=0)
    with counting(answer=TOO_MANY) as provider:
        impatient_agent(run, impatient_tool(provider.url))
    case = case_of(agent, run)
    assert provider.arrivals == 1
    (attempt,) = tries(case)
    assert attempt.layer == "agent"
    assert refused_layers(case) == ["wrapper", "agent"], "each layer that tried to retry is named, once"
    assert "stopped: 2" in attempt.observation["message"], "and so is the client inside the tool"


@pytest.mark.parametrize("answer", [TOO_MANY, plainly(503, body=b"{}")], ids=["rate limited", "unavailable"])
def test_F106_three_times_three_times_three_is_at_most_three_arrivals(
    opened: Opener, agent: Agent, looks: Looks, answer: Answer
) -> None:
    opened(idempotency=KEY)
    run = opened_run(agent, max_wait=30)

    def a_minute_passes() -> None:
        advance_clock(minutes=1)
        tick()

    with counting(answer=answer) as provider:
        impatient_agent(run, impatient_tool(provider.url), pause=a_minute_passes)
    case = case_of(agent, run)
    attempts = tries(case)
    assert 1 <= provider.arrivals <= 3
    assert len(attempts) == provider.arrivals, "one arrival for each attempt on record (F107)"
    assert {attempt.action_id for attempt in attempts} == {case.action().pk}
    assert case.run.state != "completed"
    assert effects(case) == []


def test_F106_the_layer_that_was_permitted_is_on_the_attempt(opened: Opener, agent: Agent) -> None:
    opened(idempotency=KEY)
    run = opened_run(agent, layer="planner", max_wait=0)
    with counting(answer=TOO_MANY) as provider:
        impatient_wrapper(run, impatient_tool(provider.url), "planner")
        advance_clock(minutes=1)
        impatient_wrapper(run, impatient_tool(provider.url), "wrapper")
    case = case_of(agent, run)
    assert [attempt.layer for attempt in tries(case)] == ["planner", "wrapper"]
    assert refused_layers(case) == ["wrapper", "wrapper"], "once for each layer and try"


def test_F106_a_wait_that_the_record_asked_for_is_no_retry_of_a_layer(opened: Opener, agent: Agent) -> None:
    opened(idempotency=KEY)
    answers = iter([TOO_MANY, plainly(200, body=b'{"credit_id": "cr_1"}')])
    run = opened_run(agent, max_wait=60)
    with counting(answer=lambda handler: next(answers)(handler)) as provider:
        assert run.call(impatient_tool(provider.url), ARGUMENTS) == {"credit_id": "cr_1"}
    case = case_of(agent, run)
    assert (provider.arrivals, len(tries(case)), refused_layers(case)) == (2, 2, [])


class Deaf(InProcess):
    """Steadyhand hears the report, and its answer is lost on the way back."""

    lost = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answered = super().handle_request(request)
        if request.url.path.endswith("/reports") and self.lost == 0:
            self.lost += 1
            raise httpx.ReadTimeout("lost", request=request)
        return answered


@pytest.mark.parametrize("spooled", [True, False], ids=["by the next process", "by this one"])
def test_F062_a_report_that_arrives_twice_is_one_effect(
    opened: Opener, agent: Agent, tmp_path: Path, spooled: bool
) -> None:
    opened()
    wire, spool = Deaf(), tmp_path / "spool" if spooled else None
    boundary: Boundary = boundary_of(agent, transport=wire, spool=spool)
    run = boundary.run(workflow=WORKFLOW, intent="Credit the customer.", scope=SCOPE)

    def apply_credit(_arguments: dict[str, Any], _call: Call) -> dict[str, str]:
        return {"credit_id": "cr_1"}

    with pytest.raises(Unrecorded):
        run.call(apply_credit, ARGUMENTS)
    if spooled:
        assert boundary_of(agent, transport=wire, spool=spool).deliver_spooled() == 1
    assert run.call(apply_credit, ARGUMENTS) == {"credit_id": "cr_1"}
    case = case_of(agent, run)
    assert [path.rpartition("/")[2] for path in wire.arrived] == ["runs", "proposals", *["reports"] * 2, "proposals"]
    assert len(tries(case)) == len(effects(case)) == 1
