"""Answers that say 200 and are not what the contract promised (T3, T10)."""

from typing import Any

import pytest
from steadyhand.contract import MAX_REPLY_BYTES

from tests.factories import finish, propose, reply, report
from tests.failures.conftest import Opener
from tests.recovery.stories import effects, open_tasks, standing

UNKNOWN = ("verifying", "needs_human", "external_outcome_unknown")


def test_F085_T3_an_error_object_in_a_200_is_a_failure(opened: Opener) -> None:
    case = opened(error_when=[{"path": "error", "present": True}])
    told = report(case, propose(case), reply({"credit_id": "cr_1", "error": {"code": "closed", "field": "account"}}))
    assert (told.answer, told.reason_code, told.error.field) == ("error", "business_rule_violation", "account")
    assert effects(case) == []
    assert finish(case).outcome == "fatal"


@pytest.mark.parametrize("body", [{}, {"credit_id": ""}, {"credit_id": None}, {"credit_id": True}, [], "ok", None, 7])
def test_F086_T10_a_write_without_its_identity_is_unknown(opened: Opener, body: Any) -> None:
    case = opened()
    assert report(case, propose(case), reply(body)).answer == "suspend"
    assert standing(case) == UNKNOWN
    assert effects(case) == []


def test_F086_a_read_without_its_identity_is_a_contract_error(opened: Opener) -> None:
    case = opened()
    told = report(case, propose(case, "load_invoice"), reply({"total": 3}))
    assert (told.answer, told.reason_code) == ("error", "invalid_tool_result")
    assert finish(case).outcome == "fatal"


@pytest.mark.parametrize("text", ["", "<html>ok</html>", '{"credit_id": "cr_1"', '{"credit_id": NaN}', "null"])
def test_F030_a_cut_or_foreign_body_is_no_success(opened: Opener, text: str) -> None:
    case = opened()
    seen = reply({}).model_copy(update={"body": text})
    report(case, propose(case), seen)
    assert standing(case) == UNKNOWN


def test_F030_a_body_that_was_cut_is_no_success(opened: Opener) -> None:
    case = opened()
    cut = {"altered": True, "body_bytes": MAX_REPLY_BYTES + 1, "body": '{"credit_id": "cr_1", "rows": [1, 2'}
    report(case, propose(case), reply({}).model_copy(update=cut))
    assert standing(case) == UNKNOWN


def test_a_2xx_that_the_contract_does_not_list_leaves_the_write_unknown(opened: Opener) -> None:
    case = opened(success_statuses=[201])
    report(case, propose(case), reply({"credit_id": "cr_1"}, status=200))
    assert standing(case) == UNKNOWN
    assert open_tasks(case) == [("reconcile_write", "external_outcome_unknown")]


def test_F036_already_done_closes_well_with_the_existing_identity(opened: Opener) -> None:
    case = opened(conflict_codes={"exists": "already_done"})
    told = report(case, propose(case), reply({"code": "exists", "credit_id": "cr_old"}, status=409))
    assert (told.answer, told.reason_code) == ("result", "already_in_desired_state")
    assert effects(case) == ["apply_credit"]
    assert case.action().external_id == "cr_old"
