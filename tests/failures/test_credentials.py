"""A credential that the provider refuses: fetched anew once by the runtime, then a person's (F037)."""

from typing import Any

from runs.models import Person
from tests.factories import RESULTS, Case, advance_clock, propose, reply, report, succeed, turn
from tests.failures.conftest import Opener
from tests.recovery.stories import effects, open_tasks, press, standing, tasks, tries

EXPIRED = reply({"error": "invalid_token"}, status=401)


def refreshable(opened: Opener, **promises: Any) -> Case:
    return opened(credential="refreshable", **promises)


def test_F037_a_refused_credential_is_fetched_anew_once_and_the_call_goes_at_once(opened: Opener) -> None:
    case = refreshable(opened)
    told = report(case, propose(case), EXPIRED)
    assert (told.answer, told.wait_seconds, told.reason_code) == ("again", 0, "credential_refresh")
    assert standing(case) == ("recovering", "retryable", "credential_refresh")
    again = propose(case)
    assert (again.answer, again.attempt, again.refresh_credential) == ("execute", 2, True)
    report(case, again, reply(RESULTS["apply_credit"]))
    assert effects(case) == ["apply_credit"]
    assert open_tasks(case) == []


def test_F037_an_ordinary_permit_asks_for_no_refresh(opened: Opener) -> None:
    assert propose(refreshable(opened)).refresh_credential is None


def test_F037_a_second_refusal_is_no_third_try(opened: Opener) -> None:
    case = refreshable(opened)
    report(case, propose(case), EXPIRED)
    report(case, propose(case), EXPIRED)
    assert standing(case) == ("escalated", "needs_human", "credentials_invalid")
    assert open_tasks(case) == [("access_request", "credentials_invalid")]
    assert propose(case).answer == "wait"
    assert len(tries(case)) == 2
    assert [task.paged_at for task in tasks(case)] == [None]


def test_F037_a_credential_that_nobody_can_fetch_is_a_persons_at_once(opened: Opener) -> None:
    case = opened(access_owner="payments-platform")
    report(case, propose(case), EXPIRED)
    assert [(task.kind, task.owner_team) for task in tasks(case)] == [("access_request", "payments-platform")]


def test_F037_one_refused_connection_is_one_question_however_many_calls_it_stops(opened: Opener) -> None:
    case = opened()
    turn(case)
    first, second = propose(case, "load_invoice"), propose(case)
    report(case, first, EXPIRED)
    report(case, second, EXPIRED)
    assert open_tasks(case) == [("access_request", "credentials_invalid")]
    assert standing(case)[0] == "escalated"


def test_F037_a_refresh_is_one_of_the_tries(opened: Opener) -> None:
    case = refreshable(opened, budgets={"max_attempts_per_step": 1})
    report(case, propose(case), EXPIRED)
    assert standing(case) == ("escalated", "needs_human", "retry_exhausted")


def test_a_claim_on_the_question_lets_nothing_out(opened: Opener, omar: Person) -> None:
    case = refreshable(opened)
    succeed(case, "load_invoice")
    report(case, propose(case), EXPIRED)
    report(case, propose(case), EXPIRED)
    press("claim", case, omar)
    assert propose(case).answer == "wait"


def test_once_the_connection_is_renewed_a_person_lets_the_same_call_go(opened: Opener, omar: Person) -> None:
    case = opened()
    report(case, propose(case), EXPIRED)
    assert propose(case).answer == "wait"
    press("retry", case, omar, reason="The token is renewed.")
    advance_clock(seconds=5)
    again = propose(case)
    assert (again.answer, again.attempt, again.action_id) == ("execute", 2, case.action().action_id)
    report(case, again, reply(RESULTS["apply_credit"]))
    assert (effects(case), open_tasks(case)) == (["apply_credit"], [])


def test_a_renewal_that_did_not_help_asks_again_and_sends_nothing_by_itself(opened: Opener, omar: Person) -> None:
    case = opened()
    report(case, propose(case, "load_invoice"), EXPIRED)
    press("retry", case, omar, reason="The token is renewed.")
    advance_clock(seconds=5)
    report(case, propose(case, "load_invoice"), EXPIRED)
    assert standing(case) == ("escalated", "needs_human", "credentials_invalid")
    assert propose(case, "load_invoice").answer == "wait"
    assert len(tries(case, "load_invoice")) == 2
