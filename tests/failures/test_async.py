"""Jobs that are accepted and end later: polled until the run's end, never started again (DECISIONS 2)."""

from typing import Any

import pytest
from steadyhand.contract import Cancel

from recovery import intake, settle
from recovery.work.decisions import Refused
from runs import record, wall
from runs.models import Person
from runs.querysets import read_clock
from runs.record import RULE
from tests.factories import Agent, Case, advance_clock, finish, open_run, propose, register, reply, report, timed_out
from tests.failures.outside import LOST, Sends, script_sends
from tests.recovery.stories import effects, evidence, look, open_tasks, press, standing, tasks, tick, tries

RUNNING, DONE, FAILED = (reply({"state": state}) for state in ("running", "succeeded", "failed"))
PENDING = ("verifying", "retryable", "async_pending")


def manifest(*, poll: dict[str, Any] | None = None, export: dict[str, Any] | None = None) -> dict[str, Any]:
    """An export that is accepted with 202 and asked for every 30 seconds, in a run of two minutes."""
    return {
        "tools": [
            {
                "name": "start_export",
                "effect": "write",
                "output_schema": {"type": "object", "required": ["operation"]},
                "identity_fields": ["operation"],
                "async_statuses": [202],
                "poll": {
                    "tool": "get_operation",
                    "arguments": {"id": "operation"},
                    "state": "state",
                    "succeeded": ["succeeded"],
                    "failed": ["failed"],
                    **(poll or {}),
                },
                **(export or {}),
            },
            {
                "name": "get_operation",
                "effect": "read",
                "output_schema": {"type": "object", "required": ["state"]},
                "send": {"connector": "jobs", "method": "GET", "path": "/operations/{arguments.id}"},
            },
        ],
        "connectors": {"jobs": {"kind": "http", "base_url": "http://127.0.0.1:9"}},
        "budgets": {"max_elapsed_seconds": 120},
    }


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> Sends:
    return script_sends(monkeypatch)


def accept(agent: Agent, **more: Any) -> Case:
    register(agent, manifest(**more))
    case = open_run(agent, scope={})
    permit = propose(case, "start_export", {"report": "r_3"})
    report(case, permit, reply({"operation": "op_2"}, status=202), tool="start_export")
    return case


def after(case: Case, seconds: float) -> None:
    advance_clock(seconds=seconds)
    look(case)


def export(case: Case) -> Any:
    return case.action("start_export")


def test_an_accepted_job_is_no_task_and_keeps_what_the_provider_said(agent: Agent, sends: Sends) -> None:
    case = accept(agent)
    assert standing(case) == PENDING
    assert open_tasks(case) == []
    assert (export(case).state, export(case).external_id) == ("processing", "op_2")
    assert propose(case, "start_export", {"report": "r_3"}).answer == "wait"


def test_the_poll_asks_with_what_the_accepted_reply_said(agent: Agent, sends: Sends) -> None:
    case = accept(agent)
    sends.say(RUNNING)
    after(case, 29)
    assert sends.sent == []
    after(case, 1)
    assert [(one.tool, one.arguments) for one in sends.sent] == [("get_operation", {"id": "op_2"})]
    assert standing(case) == PENDING


def test_a_job_that_ends_well_completes_like_any_other_call(agent: Agent, sends: Sends) -> None:
    case = accept(agent)
    sends.say(RUNNING, DONE)
    after(case, 30)
    after(case, 30)
    assert effects(case) == ["start_export"]
    assert (export(case).reason_code, export(case).external_id) == ("completed", "op_2")
    assert finish(case).reason_code == "completed"
    assert propose(case, "start_export", {"report": "r_3"}).result == {"operation": "op_2"}


def test_a_poll_whose_answer_is_the_result_becomes_the_result(agent: Agent, sends: Sends) -> None:
    case = accept(agent, poll={"external_id": "file"})
    whole = {"state": "succeeded", "operation": "op_2", "file": "f_9"}
    sends.say(reply(whole))
    after(case, 30)
    assert propose(case, "start_export", {"report": "r_3"}).result == whole
    assert export(case).external_id == "f_9"


def test_a_job_that_failed_is_refused_and_nothing_stands(agent: Agent, sends: Sends) -> None:
    case = accept(agent)
    sends.say(FAILED)
    after(case, 30)
    assert (export(case).state, export(case).reason_code) == ("refused_permanent", "remote_operation_failed")
    assert effects(case) == []
    assert finish(case).reason_code == "remote_operation_failed"
    assert standing(case)[:2] == ("failed", "fatal")


def test_F103_at_the_runs_end_it_becomes_a_persons_and_is_never_started_again(agent: Agent, sends: Sends) -> None:
    case = accept(agent)
    sends.say(RUNNING)
    for _ in range(4):
        after(case, 30)
    assert sends.tools == ["get_operation"] * 3
    assert standing(case) == ("verifying", "needs_human", "external_outcome_unknown")
    assert open_tasks(case) == [("reconcile_write", "external_outcome_unknown")]
    assert case.task().paged_at is not None
    after(case, 600)
    assert len(sends.sent) == 3
    assert len(tries(case, "start_export")) == 1


def test_a_person_may_ask_once_more_after_the_end(agent: Agent, sends: Sends, omar: Person) -> None:
    case = accept(agent)
    sends.say(RUNNING, RUNNING, RUNNING, DONE)
    for _ in range(5):
        after(case, 30)
    press("reconcile", case, omar)
    look(case)
    assert effects(case) == ["start_export"]
    tick()
    assert open_tasks(case) == [("decide_next", "time_budget_exhausted")]


def test_F042_a_poll_without_an_answer_is_asked_again_and_proves_nothing(agent: Agent, sends: Sends) -> None:
    case = accept(agent)
    sends.say(LOST, reply({"status": "?"}), DONE)
    after(case, 30)
    after(case, 30)
    assert set(evidence(case)) == {"processing", "probe_failed"}
    after(case, 30)
    assert effects(case) == ["start_export"]


def test_polls_have_a_ceiling(agent: Agent, sends: Sends) -> None:
    look_up = {"path": "/x", "items": "items", "ours": {"ref": "{key}"}, "external_id": "id"}
    case = accept(agent, export={"reconcile": {"connector": "jobs", "look": look_up, "max_looks": 2}})
    sends.say(RUNNING)
    for _ in range(3):
        after(case, 30)
    assert len(sends.sent) == 2
    assert standing(case) == ("escalated", "needs_human", "external_outcome_unknown")


@pytest.mark.parametrize("bounds", [{}, {"max_in_flight_seconds": 3600, "max_visibility_lag_seconds": 60}])
def test_after_the_last_poll_a_person_asks_once_more_each_time_they_check(
    agent: Agent, sends: Sends, omar: Person, bounds: dict[str, int]
) -> None:
    look_up = {"path": "/x", "items": "items", "ours": {"ref": "{key}"}, "external_id": "id"}
    case = accept(agent, export={"reconcile": {"connector": "jobs", "look": look_up, "max_looks": 2, **bounds}})
    sends.say(RUNNING, RUNNING, RUNNING, DONE)
    for _ in range(3):
        after(case, 30)
    press("reconcile", case, omar)
    look(case)
    assert standing(case) == ("escalated", "needs_human", "external_outcome_unknown")
    after(case, 600)
    assert len(sends.sent) == 3, "a check is one poll, and none follows by itself"
    press("reconcile", case, omar)
    look(case)
    assert effects(case) == ["start_export"]


def test_a_start_that_was_never_answered_is_not_polled(agent: Agent, sends: Sends) -> None:
    register(agent, manifest())
    case = open_run(agent, scope={})
    report(case, propose(case, "start_export", {"report": "r_3"}), timed_out(), tool="start_export")
    after(case, 60)
    assert sends.sent == []
    assert standing(case) == ("escalated", "needs_human", "external_outcome_unknown")


def test_F135_a_cancelled_run_still_learns_how_its_job_ended(agent: Agent, sends: Sends) -> None:
    case = accept(agent)
    intake.cancel(case.agent.who, case.run_id, Cancel(reason="No longer needed."), request_id="t")
    assert standing(case) == ("cancelled", "cancelled", "cancelled_effect_unknown")
    sends.say(DONE)
    after(case, 30)
    assert standing(case) == ("cancelled", "cancelled", "cancelled_with_effects")
    assert effects(case) == ["start_export"]


def test_F043_a_contradiction_between_poll_and_callback_is_a_persons(agent: Agent, sends: Sends) -> None:
    case = accept(agent)
    sends.say(DONE)
    after(case, 30)
    with wall.within(case.tenant.pk):
        run, action = case.run, export(case)
        record.add_evidence(
            action, run=run, kind="callback", verdict="job_failed", source="jobs", strength=4, fact="It failed.",
            started_at=read_clock(),
        )  # fmt: skip
        settle.ask_if_contradicted(run, action, RULE)
    assert [task.reason_code for task in tasks(case)] == ["conflicting_evidence"]
    assert effects(case) == ["start_export"]


# --- without a poll: the callback ends it, or the clock ----------------------------------------------------------


def awaited(agent: Agent, **more: Any) -> Case:
    callback = {"source": "jobs", "succeeded": ["succeeded"], "failed": ["failed"]}
    return accept(agent, export={"poll": None, "callback": callback, **more})


def test_nobody_looks_while_a_callback_is_awaited(agent: Agent, sends: Sends) -> None:
    case = awaited(agent)
    assert standing(case) == PENDING
    after(case, 100)
    assert standing(case) == PENDING
    assert (sends.sent, open_tasks(case)) == ([], [])


def test_nobody_can_be_asked_for_a_callback_that_never_came(agent: Agent, sends: Sends, omar: Person) -> None:
    case = awaited(agent)
    after(case, 121)
    with pytest.raises(Refused, match="no look-up is declared for start_export"):
        press("reconcile", case, omar)


def test_a_callback_that_never_comes_is_a_persons_at_the_runs_end(agent: Agent, sends: Sends) -> None:
    case = awaited(agent)
    after(case, 121)
    assert standing(case) == ("escalated", "needs_human", "external_outcome_unknown")
    assert open_tasks(case) == [("reconcile_write", "external_outcome_unknown")]
    assert case.task().paged_at is not None
