"""The requester is asked for one field, answers once, and the agent proposes anew (DESIGN: Action identity)."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import signing
from steadyhand import Call
from steadyhand.contract import Observation, Resume, ResumeAnswer

from recovery import intake, questions
from recovery.models import Decision, InputRequest
from recovery.rules.questions import Unfit
from recovery.work import inputs
from recovery.work.decisions import Refused, Unusable
from runs import wall
from runs.models import Action, Event, Person, Tenant
from tests.factories import (
    ARGUMENTS,
    RESULTS,
    Agent,
    Case,
    advance_clock,
    finish,
    make_client,
    make_person,
    make_tenant,
    propose,
    reply,
    report,
    succeed,
    turn,
)
from tests.failures.conftest import Opener
from tests.failures.in_process import boundary_of
from tests.recovery.stories import actions, effects, kinds, look, open_tasks, panel, press, standing, tries

ASKED = Observation(kind="exception", declared="needs_input", declared_field="account")
ANSWER = "acct_9907"
SCOPES = {"run": {"scope": {}, "requester": "jo@customers.example"}}
CORRECTED = ARGUMENTS["apply_credit"] | {"account": ANSWER}


@pytest.fixture
def case(opened: Opener) -> Case:
    """A credit whose account the provider does not know; the question has an hour."""
    return asked(opened(**SCOPES))


def asked(case: Case, observation: Observation = ASKED) -> Case:
    turn(case)
    report(case, propose(case), observation)
    assert standing(case) == ("escalated", "needs_input", "user_input_required")
    return case


def link(case: Case, person: Person) -> str:
    """A colleague makes the link and is shown it."""
    decision: Decision = press("request_input", case, person)
    found = questions.hand_out(case.tenant.pk, question_of(decision))
    assert found is not None
    return found


def question_of(decision: Decision) -> Any:
    return decision.snapshot["question"]


def resumed(case: Case) -> ResumeAnswer:
    return intake.resume(case.agent.who, case.run_id, Resume(), request_id="test")


def told(case: Case) -> list[dict[str, Any]]:
    with wall.within(case.tenant.pk):
        return list(Event.objects.filter(run_id=case.run_id, kind="input_provided").values_list("data", flat=True))


def answer(found: str, text: str = ANSWER) -> None:
    inputs.answer(found, text, request_id="test")


# --- the thread -----------------------------------------------------------------------------------------------


def test_the_requester_answers_and_the_agent_goes_on_with_a_call_that_is_checked_anew(
    case: Case, alice: Person
) -> None:
    found = link(case, alice)
    asks = inputs.read(found)
    assert (asks.by, asks.field.path) == ("North", "account")
    answer(found)
    assert standing(case) == ("executing", None, None)
    assert open_tasks(case) == []
    goes_on = resumed(case)
    assert goes_on.ready
    (given,) = goes_on.inputs
    assert (given.step, given.tool, given.field, given.value) == ("apply_credit", "apply_credit", "account", ANSWER)
    permit = propose(case, arguments=CORRECTED)
    assert permit.answer == "execute"
    report(case, permit, reply(RESULTS["apply_credit"]))
    succeed(case, "draft_reply")
    assert finish(case).outcome is not None
    assert standing(case)[0] == "completed"
    assert [action.state for action in actions(case)] == ["void", "succeeded", "succeeded"]
    assert len({action.action_id for action in actions(case)}) == 3


def test_the_sdk_reads_the_answer_when_it_resumes(case: Case, alice: Person) -> None:
    answer(link(case, alice))

    def apply_credit(arguments: dict[str, Any], call: Call) -> dict[str, Any]:
        return {**RESULTS["apply_credit"], "account": arguments["account"]}

    with boundary_of(case.agent).resume(str(case.run_id)) as run:
        (given,) = run.inputs
        corrected = ARGUMENTS[given.tool] | {given.field: given.value}
        assert run.call(apply_credit, corrected, step=given.step)["account"] == ANSWER
    assert effects(case) == ["apply_credit"]


def test_an_answer_is_no_approval(opened: Opener, alice: Person) -> None:
    case = asked(opened(**SCOPES))
    answer(link(case, alice))
    narrow = asked(opened(run={"scope": {"ids": {"account": ["acct_8841"]}}}))
    answer(link(narrow, alice))
    refused = propose(narrow, arguments=CORRECTED)
    assert (refused.answer, refused.error.code if refused.error else "") == ("deny", "policy_denied")


def test_the_call_that_waited_is_over_and_is_not_sent_as_it_was(case: Case, alice: Person) -> None:
    answer(link(case, alice))
    assert propose(case).answer == "deny"
    assert len(tries(case)) == 1


def test_a_run_that_makes_nothing_of_the_answer_did_not_go_well(case: Case, alice: Person) -> None:
    answer(link(case, alice))
    finish(case)
    assert standing(case) == ("failed", "fatal", "not_applied")


def test_a_colleague_answers_for_the_requester(case: Case, alice: Person) -> None:
    press("provide_input", case, alice, value=ANSWER, reason="She said so on the phone.")
    assert [given.value for given in resumed(case).inputs] == [ANSWER]
    assert [event["value"] for event in told(case)] == [ANSWER]


# --- one answer, in time, by the right link -------------------------------------------------------------------


def test_a_link_is_spent_by_its_answer(case: Case, alice: Person) -> None:
    found = link(case, alice)
    answer(found)
    for act in (lambda: answer(found, "acct_1"), lambda: inputs.read(found)):
        with pytest.raises(inputs.Closed):
            act()
    assert len(told(case)) == 1


def test_reading_a_link_changes_nothing(case: Case, alice: Person) -> None:
    found = link(case, alice)
    before = kinds(case), case.action().version
    for _ in range(3):
        inputs.read(found)
    assert (kinds(case), case.action().version) == before


def test_of_two_links_the_first_answer_counts(case: Case, alice: Person) -> None:
    first, second = link(case, alice), link(case, alice)
    answer(second)
    with pytest.raises(inputs.Closed):
        answer(first, "acct_1")


def test_a_link_is_shown_once_and_kept_nowhere(case: Case, alice: Person) -> None:
    decision = press("request_input", case, alice)
    found = questions.hand_out(case.tenant.pk, question_of(decision))
    assert found
    assert questions.hand_out(case.tenant.pk, question_of(decision)) is None
    with wall.within(case.tenant.pk):
        kept = [str(Decision.objects.get(pk=decision.pk).snapshot), *map(str, Event.objects.values_list("data"))]
    assert not any(found in one for one in kept)


def test_after_its_time_a_link_is_no_good_and_the_question_is_a_colleagues(case: Case, alice: Person) -> None:
    found = link(case, alice)
    advance_clock(minutes=61)
    with pytest.raises(inputs.Closed):
        inputs.read(found)
    look(case)
    with pytest.raises(inputs.Closed):
        answer(found)
    assert standing(case) == ("escalated", "needs_human", "input_deadline_passed")
    assert told(case) == []


def test_after_a_cancel_a_link_is_no_good(case: Case, alice: Person) -> None:
    found = link(case, alice)
    press("cancel", case, alice)
    with pytest.raises(inputs.Closed):
        answer(found)


def test_a_link_is_bound_to_its_call_as_it_stood(case: Case, alice: Person) -> None:
    found = link(case, alice)
    with wall.within(case.tenant.pk, by="person"):
        Action.objects.filter(pk=case.action().pk).update(error_field="invoice")
    with pytest.raises(inputs.Closed):
        answer(found)


@pytest.mark.parametrize(
    "change", [lambda one: one[:-1], lambda one: one + "x", lambda one: "x" + one, lambda one: ""]
)
def test_a_link_that_was_changed_is_none(case: Case, alice: Person, change: Any) -> None:
    found = link(case, alice)
    with pytest.raises(inputs.Closed):
        inputs.read(change(found))
    inputs.read(found)


def test_F122_a_link_made_for_another_tenant_opens_nothing_here(case: Case, alice: Person) -> None:
    decision = press("request_input", case, alice)
    with wall.within(case.tenant.pk):
        row = InputRequest.objects.get(pk=question_of(decision))
    foreign = make_tenant("south")
    forged = signing.dumps([foreign.pk.hex, row.pk.hex, questions._bound(row)], salt=questions._SALT)
    with pytest.raises(inputs.Closed):
        answer(forged)


# --- what fits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("", "Write an answer"), ("acct_8841", "what was sent before"), ("x" * 3000, "at most 2000 characters")],
)
def test_an_answer_that_does_not_fit_is_told_so_and_leaves_the_question_open(
    case: Case, alice: Person, text: str, sentence: str
) -> None:
    found = link(case, alice)
    with pytest.raises(Unfit, match=sentence):
        answer(found, text)
    with pytest.raises(Unusable, match=sentence):
        press("provide_input", case, alice, value=text)
    assert told(case) == []
    answer(found)


def test_the_whole_call_has_to_fit_its_schema_with_the_answer(opened: Opener, alice: Person) -> None:
    fits = {"type": "object", "properties": {"account": {"type": "string", "pattern": "^acct_[0-9]+$"}}}
    case = asked(opened(input_schema=fits, **SCOPES))
    found = link(case, alice)
    with pytest.raises(Unfit, match="does not fit"):
        answer(found, "somewhere")
    answer(found)


def test_nobody_tries_values_for_ever(case: Case, alice: Person) -> None:
    found = link(case, alice)
    for _ in range(questions.MOST_TRIES):
        with pytest.raises(Unfit):
            answer(found, "")
    with pytest.raises(inputs.Closed):
        answer(found)
    answer(link(case, alice))


def test_a_sensitive_answer_is_sealed_and_shown_nowhere(opened: Opener, alice: Person) -> None:
    case = asked(opened(sensitive_fields=["account"], **SCOPES))
    answer(link(case, alice), "acct_secret_77")
    assert "acct_secret_77" not in str(told(case))
    with wall.within(case.tenant.pk):
        assert "acct_secret_77" not in str(InputRequest.objects.values_list("answer", flat=True))
    assert resumed(case).inputs[0].value == "acct_secret_77"


# --- who may ask ------------------------------------------------------------------------------------------------


def test_asking_takes_the_right_and_a_question(case: Case, opened: Opener, alice: Person) -> None:
    bob = make_person("bob", case.tenant, "viewer")
    for verb, more in (("request_input", {}), ("provide_input", {"value": ANSWER})):
        with pytest.raises(Refused, match="your role"):
            press(verb, case, bob, **more)
    other = opened(requires_approval=True)
    propose(other)
    with pytest.raises(Refused, match="nothing of this task waits for the requester"):
        press("request_input", other, alice)
    shown = {verb.name for verb in panel(other, alice).shown}
    assert "request_input" not in shown


@pytest.mark.parametrize(
    ("field", "sentence"), [(None, "did not say which field"), ("customer.name", "no single value")]
)
def test_what_no_form_can_ask_for_is_blocked_with_its_sentence(
    opened: Opener, alice: Person, field: str | None, sentence: str
) -> None:
    wants = Observation(kind="exception", declared="needs_input", declared_field=field)
    case = asked(opened(**SCOPES), wants)
    verb = panel(case, alice).verb("request_input")
    assert not verb.allowed
    assert sentence in verb.sentence


def test_asking_the_requester_is_what_is_recommended(case: Case, alice: Person) -> None:
    assert [verb.name for verb in panel(case, alice).verbs if verb.recommended] == ["request_input"]


def test_SEC_09_an_agent_reads_the_answers_of_its_own_runs_only(case: Case, alice: Person, tenant: Tenant) -> None:
    answer(link(case, alice))
    neighbour: Agent = make_client(tenant, "another-agent")
    with pytest.raises(intake.NotFound):
        intake.resume(neighbour.who, case.run_id, Resume(), request_id="test")
    assert effects(case) == []
