"""An agent that stored nothing but its own reference finds its run again, open or over."""

from __future__ import annotations

from steadyhand.contract import OpenRun

from recovery import intake
from recovery.rules import messages
from tests.factories import WORKFLOW, finish, propose, succeed
from tests.failures.conftest import Opener


def test_a_run_is_found_by_its_reference_and_what_is_proven_is_returned(opened: Opener) -> None:
    case = opened()
    succeed(case, "load_invoice")
    succeed(case)
    finish(case)
    again = OpenRun(workflow=WORKFLOW, client_ref=case.run.client_ref, intent=case.run.intent)
    found = intake.open_run(case.agent.who, again, request_id="test")
    assert (found.run_id, found.resumed) == (str(case.run_id), True)
    assert propose(case).answer == "replay"
    assert finish(case).outcome == finish(case).outcome


def test_a_closed_call_comes_with_advice() -> None:
    error = messages.error_for_model("not_applied")
    assert error.message == "This call is closed and is not made again as it stands."
    assert error.suggested_actions == ["ask the requester whether it is still wanted"]
