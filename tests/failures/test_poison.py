"""Answers that cannot be kept as they are: the run gets its result, and whoever asks again gets the same one (I6)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from steadyhand.manifest import Connector, Look

from recovery.connectors.base import Question
from recovery.connectors.http import json_of, judge
from runs import wall
from runs.budgets import MAX_COUNTED
from runs.models import Run
from tests.factories import advance_clock, lose_the_reply, propose, reply, report, succeed, turn
from tests.failures.conftest import Opener
from tests.recovery.stories import Looks, effects, look, standing

LOOK = Look(path="/credits", items="items", ours={"ref": "{action_id}"}, external_id="id")
ESCAPED = "a\\u0000b\\ud800"
DEEP = '{"credit_id": "cr_1", "d": ' + "[" * 90 + "]" * 90 + "}"
KEPT: list[tuple[str, Any]] = [
    ('{"credit_id": "cr_1", "n": "a\\u0000b\\ud800"}', {"credit_id": "cr_1", "n": ESCAPED}),
    ('{"credit_id": "a\\u0000b\\ud800"}', {"credit_id": ESCAPED}),
    ('{"credit_id": "cr_1", "a\\u0000b\\ud800": 1}', {"credit_id": "cr_1", ESCAPED: 1}),
    ('{"credit_id": "cr_1", "n": 1e999}', {"credit_id": "cr_1", "n": "1e999"}),
    ('{"credit_id": "cr_1", "n": ' + "9" * 400 + "}", {"credit_id": "cr_1", "n": "9" * 200}),
    ('{"credit_id": ' + "9" * 300 + "}", {"credit_id": int("9" * 300)}),
    (DEEP, json.loads(DEEP)),
]


@pytest.mark.parametrize(("text", "result"), KEPT, ids=range(len(KEPT)))
def test_I6_an_answer_with_what_cannot_be_stored_is_a_result_and_replays(
    opened: Opener, text: str, result: Any
) -> None:
    case = opened()
    told = report(case, propose(case), reply({}).model_copy(update={"body": text}))
    assert (told.answer, told.result) == ("result", result)
    told.model_dump_json()
    for _ in range(2):
        again = propose(case)
        assert (again.answer, again.result) == ("replay", result)
        again.model_dump_json()
    assert effects(case) == ["apply_credit"]


@pytest.mark.parametrize("levels", [300, 900, 9000])
def test_I6_an_answer_that_nests_too_deep_leaves_the_write_unknown(opened: Opener, levels: int) -> None:
    case = opened()
    text = '{"credit_id": "cr_1", "d": ' + "[" * levels + "]" * levels + "}"
    assert report(case, propose(case), reply({}).model_copy(update={"body": text})).answer == "suspend"
    assert standing(case) == ("verifying", "needs_human", "external_outcome_unknown")
    assert propose(case).answer == "wait"


@pytest.mark.parametrize("field", ["a\x00b", "a\ud800b", "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "x" * 3000])
def test_I6_a_field_at_fault_is_stored_as_it_may_be(opened: Opener, field: str) -> None:
    case = opened()
    told = report(case, propose(case), reply({"error": {"field": field}}, status=422))
    assert told.answer == "error"
    assert propose(case).error.code == "business_rule_violation"
    kept = case.action().error_field
    assert kept.isprintable()
    assert "4eC39" not in kept


def test_I6_a_look_up_may_find_what_cannot_be_stored(opened: Opener, looks: Looks) -> None:
    case = opened()
    turn(case)
    lose_the_reply(case)

    asked = Question(case.action().action_id, str(case.run_id), "", {}, Connector(kind="python"), LOOK)
    answer = json.dumps({"items": [{"ref": asked.action_id, "id": "cr\x00\ud800", "n": float("1e308")}]})
    looks.say(judge(json_of(answer.replace("1e+308", "1e999").encode()), asked, LOOK))
    advance_clock(seconds=10)
    look(case)
    assert case.action().external_id == "cr\\u0000\\ud800"
    assert propose(case).answer == "replay"


@pytest.mark.parametrize("status", [409, 423, 425, 499, 303])
def test_T3_an_answer_that_is_no_refusal_leaves_the_write_unknown_and_unsent(opened: Opener, status: int) -> None:
    case = opened()
    assert report(case, propose(case), reply({}, status=status)).answer == "suspend"
    assert standing(case) == ("verifying", "needs_human", "external_outcome_unknown")
    assert propose(case).answer == "wait"


def test_a_redirect_without_a_look_up_is_a_refusal(opened: Opener) -> None:
    case = opened(reconcile=False)
    assert report(case, propose(case), reply({}, status=302)).reason_code == "unexpected_redirect"


def test_F031_a_write_is_not_sent_again_for_a_403_with_a_delay(opened: Opener) -> None:
    case = opened()
    told = report(case, propose(case), reply({}, status=403, headers={"retry-after": "1"}))
    assert (told.answer, told.reason_code) == ("error", "permission_denied")


def test_F100_usage_without_end_is_counted_as_far_as_it_goes(opened: Opener) -> None:
    case = opened()
    with wall.within(case.tenant.pk):
        Run.objects.filter(pk=case.run_id).update(input_tokens=MAX_COUNTED - 5, output_tokens=MAX_COUNTED)
    turn(case, input_tokens=2**53 - 1, output_tokens=2**53 - 1)
    assert (case.run.input_tokens, case.run.output_tokens) == (MAX_COUNTED, MAX_COUNTED)
    assert succeed(case, "load_invoice").answer == "result"


def test_F100_usage_that_reaches_the_end_is_over_any_ceiling(opened: Opener) -> None:
    case = opened(budgets={"max_input_tokens": 2**53 - 1})
    turn(case, input_tokens=2**53 - 1)
    assert case.run.reason_code == "token_budget_exhausted"
