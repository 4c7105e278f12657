"""Calls that are refused before they are made, or for good by the provider (FAULTS E, ruling 18)."""

from typing import Any

import pytest
from django.db import connection

from tests.factories import (
    ARGUMENTS,
    advance_clock,
    finish,
    open_run,
    propose,
    refuse,
    register,
    reply,
    report,
    succeed,
)
from tests.failures.conftest import Opener
from tests.recovery.stories import actions, effects, kinds, open_tasks, standing, tries

CREDIT = ARGUMENTS["apply_credit"]


def test_F081_T1_a_validation_error_ends_the_call_is_not_tried_again_and_fails_the_run(opened: Opener) -> None:
    case = opened()
    denied = propose(case, "load_invoice", {"invoice": ""})
    assert (denied.answer, denied.error.code, denied.error.field) == ("deny", "invalid_arguments", "invoice")
    assert propose(case, "load_invoice", {"invoice": ""}).answer == "deny"
    assert tries(case, "load_invoice") == []
    assert kinds(case).count("rejected") == 1
    assert finish(case).outcome == "fatal"
    assert standing(case) == ("failed", "fatal", "invalid_arguments")


def test_F081_the_agent_may_correct_a_validation_error(opened: Opener) -> None:
    case = opened()
    propose(case, "load_invoice", {"invoice": ""})
    for tool in ("load_invoice", "apply_credit", "draft_reply"):
        succeed(case, tool)
    assert finish(case).outcome == "ok"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"amount_minor": None}, "amount_minor"),
        ({"amount_minor": -1}, "amount_minor"),
        ({"amount_minor": 120.5}, "amount_minor"),
        ({"amount_minor": True}, "amount_minor"),
        ({"amount_minor": "12000"}, "amount_minor"),
        ({"surprise": 1}, "surprise"),
        ({"account": ""}, "account"),
    ],
)
def test_F083_arguments_that_break_the_schema_are_refused_by_field(opened: Opener, changes: Any, field: str) -> None:
    denied = propose(opened(), arguments=CREDIT | changes)
    assert (denied.answer, denied.error.code, denied.error.field) == ("deny", "invalid_arguments", field)


def test_F083_a_missing_field_is_named(opened: Opener) -> None:
    denied = propose(opened(), arguments={name: CREDIT[name] for name in CREDIT if name != "invoice"})
    assert (denied.answer, denied.error.field) == ("deny", "invoice")


def test_F082_a_tool_that_was_not_offered_does_not_exist(opened: Opener) -> None:
    case = opened()
    denied = propose(case, "drop_tables", {"all": True}, step="tidy")
    assert (denied.answer, denied.error.code) == ("deny", "unsupported_operation")
    assert [(one.tool, one.step, one.state) for one in actions(case)] == [("drop_tables", "tidy", "rejected")]
    assert finish(case).reason_code == "unsupported_operation"


@pytest.mark.parametrize(
    ("scope", "changes"),
    [
        ({"ids": {"account": ["acct_1"]}}, {}),
        ({"max_amount_minor": 11_999, "currency": "EUR"}, {}),
        ({"max_amount_minor": 20_000, "currency": "USD"}, {}),
        ({"expires_at": "2001-01-01T00:00:00Z"}, {}),
    ],
)
def test_a_call_outside_the_scope_is_a_policy_denial(opened: Opener, scope: Any, changes: Any) -> None:
    case = opened(run={"scope": scope})
    assert propose(case, arguments=CREDIT | changes).error.code == "policy_denied"
    assert tries(case) == []


def test_F088_a_smaller_amount_never_corrects_a_policy_denial(opened: Opener) -> None:
    case = opened(run={"scope": {"max_amount_minor": 10_000, "currency": "EUR"}})
    assert propose(case).error.code == "policy_denied"
    for amount, step in ((9_000, "apply_credit"), (8_000, "another step"), (100, "a third")):
        smaller = propose(case, arguments=CREDIT | {"amount_minor": amount}, step=step)
        assert (smaller.answer, smaller.error.code) == ("deny", "policy_denied")
    succeed(case, "draft_reply")
    assert finish(case).outcome == "fatal"
    assert standing(case) == ("failed", "fatal", "policy_denied")
    assert effects(case) == ["draft_reply"]


def test_an_authorization_that_ends_between_two_tries_ends_the_call(opened: Opener) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT app_now() + interval '1 minute'")
        ends = cursor.fetchone()[0].isoformat()
    case = opened(run={"scope": {"expires_at": ends}})
    report(case, propose(case), reply({}, status=429, headers={"retry-after": "120"}))
    advance_clock(minutes=3)
    assert propose(case).error.code == "policy_denied"
    assert len(tries(case)) == 1
    assert finish(case).reason_code == "policy_denied"


@pytest.mark.parametrize(
    ("status", "reason"),
    [(403, "permission_denied"), (404, "resource_not_found"), (422, "business_rule_violation")],
)
def test_F037_F038_a_refusal_for_good_is_never_tried_again(opened: Opener, status: int, reason: str) -> None:
    case = opened()
    refused = refuse(case, status=status)
    assert (refused.answer, refused.outcome, refused.reason_code) == ("error", "fatal", reason)
    assert propose(case).error.code == reason
    assert len(tries(case)) == 1
    assert finish(case).reason_code == reason
    assert effects(case) == []


def test_F037_a_rejected_credential_waits_for_a_person_and_is_not_tried_again(opened: Opener) -> None:
    case = opened()
    assert refuse(case, status=401).answer == "suspend"
    assert standing(case) == ("escalated", "needs_human", "credentials_invalid")
    assert propose(case).answer == "wait"
    assert len(tries(case)) == 1


def test_a_requester_who_must_change_something_gets_the_task(opened: Opener) -> None:
    case = opened()
    said = reply({}).model_copy(update={"kind": "exception", "declared": "needs_input", "declared_field": "account"})
    asked = report(case, propose(case), said)
    assert (asked.outcome, asked.error.field) == ("needs_input", "account")
    assert open_tasks(case) == [("input", "user_input_required")]


def test_F088_changed_arguments_wait_until_the_earlier_call_is_settled(opened: Opener) -> None:
    case = opened()
    first = propose(case)
    changed = propose(case, arguments=CREDIT | {"amount_minor": 9_000})
    assert changed.answer == "wait"
    report(case, first, reply({"credit_id": "cr_1"}))
    second = propose(case, arguments=CREDIT | {"amount_minor": 9_000})
    assert second.answer == "execute"
    assert second.action_id != first.action_id


def test_F094_the_same_write_under_another_step_is_the_same_call(opened: Opener) -> None:
    case = opened()
    first = propose(case)
    again = propose(case, step="credit-again")
    assert again.answer == "wait"
    report(case, first, reply({}, status=429))
    advance_clock(seconds=30)
    retried = propose(case, step="credit-again")
    assert (retried.answer, retried.attempt) == ("execute", 2)
    assert len(tries(case)) == 2


def test_F089_renamed_order_and_number_forms_are_the_same_call(opened: Opener) -> None:
    case = opened()
    first = propose(case)
    report(case, first, reply({"credit_id": "cr_1"}))
    same = dict(reversed(list(CREDIT.items()))) | {"amount_minor": 12_000.0}
    again = propose(case, arguments=same)
    assert (again.answer, again.action_id, again.result) == ("replay", first.action_id, {"credit_id": "cr_1"})


def test_a_step_name_of_invisible_characters_is_recorded_and_not_too_long(opened: Opener) -> None:
    case = opened()
    assert propose(case, step="\u200b" * 120).answer == "execute"
    assert propose(case, "nothing", {"a": 1}, step="\u202e" * 120).answer == "deny"


def test_two_workflows_do_not_share_a_run(opened: Opener, agent: Any) -> None:
    case = opened()
    register(agent, None, name="other-case")
    other = open_run(agent, workflow="other-case")
    assert propose(case).action_id != propose(other).action_id
