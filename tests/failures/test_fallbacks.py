"""Another read may stand in for one that cannot be had: declared, fit for it, and said aloud; never for a write."""

from typing import Any

import pytest
from pydantic import ValidationError
from steadyhand.contract import Reported
from steadyhand.manifest import Manifest

from tests.factories import (
    Agent,
    Case,
    advance_clock,
    billing_manifest,
    finish,
    open_run,
    propose,
    register,
    reply,
    report,
    succeed,
)
from tests.recovery.stories import open_tasks, standing

STALE = "The invoice shown may be up to a day old."
CACHED = {"invoice_id": "INV-20931", "as_of": "2026-03-14", "amount_minor": 12_000}


def manifest(**more: Any) -> dict[str, Any]:
    made = billing_manifest(budgets={"max_attempts_per_step": 2, "max_elapsed_seconds": 3600}, **more)
    load, cached = made["tools"][0], dict(made["tools"][0], name="cached_invoice")
    load["fallback"] = {
        "tool": "cached_invoice",
        "suitability": "The same invoice as of last night.",
        "requires": [{"path": "as_of", "present": True}],
        "staleness": STALE,
    }
    made["tools"].append(cached)
    made["required_effects"] = ["draft_reply"]
    return made


@pytest.fixture
def case(agent: Agent) -> Case:
    register(agent, manifest())
    return open_run(agent)


def exhaust(case: Case, tool: str = "load_invoice") -> Reported:
    """Every try of the read comes back with a 503."""
    for _ in range(2):
        said = report(case, propose(case, tool, {"invoice": "INV-20931"}), reply({}, status=503))
        advance_clock(minutes=2)
    return said


def stand_in(case: Case, answer: dict[str, Any]) -> Reported:
    return report(case, propose(case, "cached_invoice", {"invoice": "INV-20931"}), reply(answer))


def test_an_exhausted_read_names_what_may_be_called_instead(case: Case) -> None:
    said = exhaust(case)
    assert said.answer == "error"
    assert said.error is not None
    assert (said.error.code, said.error.fallback) == ("retry_exhausted", "cached_invoice")
    assert standing(case)[0] == "executing"
    assert open_tasks(case) == []


def test_the_same_proposal_again_names_it_again(case: Case) -> None:
    exhaust(case)
    permit = propose(case, "load_invoice", {"invoice": "INV-20931"})
    assert (permit.answer, permit.error and permit.error.fallback) == ("deny", "cached_invoice")


def test_a_run_on_old_data_is_ok_and_says_so_to_the_customer(case: Case) -> None:
    exhaust(case)
    assert stand_in(case, CACHED).answer == "result"
    succeed(case, "draft_reply")
    said = finish(case)
    assert (said.outcome, said.reason_code) == ("ok", "completed")
    assert (said.customer_message or "").endswith(STALE)


def test_an_answer_that_is_not_fit_does_not_stand_in(case: Case) -> None:
    exhaust(case)
    said = stand_in(case, {"invoice_id": "INV-20931"})
    assert (said.answer, said.reason_code) == ("error", "invalid_tool_result")
    succeed(case, "draft_reply")
    assert (finish(case).outcome, standing(case)[2]) == ("needs_human", "retry_exhausted")
    assert open_tasks(case) == [("decide_next", "retry_exhausted")]


def test_where_nothing_failed_the_same_tool_is_an_ordinary_read(case: Case) -> None:
    assert stand_in(case, {"invoice_id": "INV-20931"}).answer == "result"
    succeed(case, "draft_reply")
    said = finish(case)
    assert said.outcome == "ok"
    assert STALE not in (said.customer_message or "")


def test_a_read_that_came_back_after_all_needs_no_warning(case: Case) -> None:
    exhaust(case)
    stand_in(case, CACHED)
    permit = propose(case, "load_invoice", {"invoice": "INV-20931"}, step="again")
    report(case, permit, reply({"invoice_id": "INV-20931"}), tool="load_invoice")
    succeed(case, "draft_reply")
    assert STALE not in (finish(case).customer_message or "")


@pytest.mark.parametrize("status", [403, 404])
def test_a_read_that_was_refused_is_not_helped_by_older_data(case: Case, status: int) -> None:
    permit = propose(case, "load_invoice", {"invoice": "INV-20931"})
    said = report(case, permit, reply({}, status=status))
    assert said.error is not None
    assert said.error.fallback is None


def test_a_pause_past_the_runs_end_gives_way_to_the_fallback(case: Case) -> None:
    permit = propose(case, "load_invoice", {"invoice": "INV-20931"})
    busy = reply({}, status=429, headers={"retry-after": "86400"})
    said = report(case, permit, busy)
    assert said.error is not None
    assert said.error.fallback == "cached_invoice"
    assert stand_in(case, CACHED).answer == "result"


def test_a_write_takes_no_fallback() -> None:
    made = billing_manifest()
    made["tools"][1]["fallback"] = {"tool": "draft_reply", "staleness": "Another one."}
    with pytest.raises(ValidationError, match="a write takes no fallback"):
        Manifest.model_validate(made)
