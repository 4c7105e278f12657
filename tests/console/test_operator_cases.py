"""What goes wrong for operators elsewhere, by the number of its case; the other cases stand beside their features."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from console.builders import runs as run_rows
from recovery import permissions
from recovery.work import decisions
from runs import wall
from runs.models import Evidence, Run
from tests import factories
from tests.console.conftest import House
from tests.console.desk import address, decided, press, said
from tests.console.test_bulk import begun, frozen, pass_on
from tests.console.test_task import plain, text
from tests.recovery.stories import Looks, present, script

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    monkeypatch.setattr("console.views.bulk.ring", lambda operation_id: None)
    found = script(monkeypatch)
    found.say(present())
    return found


def test_U04_the_totals_of_a_bulk_operation_add_up_and_a_failed_item_shows_its_code(
    house: House, sign_in: SignIn, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [factories.unknown_credit(house.agent) for _ in range(3)]
    real, bad = decisions.DOES["claim"], cases[0].task().pk

    def claim(seen: Any, *about: Any) -> Any:
        if seen.task.pk == bad:
            raise ValueError("this one breaks")
        return real(seen, *about)

    omar = sign_in("omar")
    where = frozen(omar, "?verb=claim")
    monkeypatch.setitem(decisions.DOES, "claim", claim)
    begun(omar, where, canary="0")
    pass_on(house, where, 3)
    page = said(omar.get(where))
    assert "3 = 2 done + 0 skipped + 1 failed + 0 pending." in page
    assert "Partly done" in page
    assert "It broke (ValueError). Nothing was recorded or sent." in page


def test_U11_one_function_answers_for_the_page_and_for_the_post_by_tenant(house: House) -> None:
    """Bob reads at Nordlicht and works at Harbor: the same button is dead in one and alive in the other."""
    bob = house.people["bob"]
    permissions.grant_role(bob, house.harbor, "support")
    browser = house.browser("bob")
    ours, theirs = factories.unknown_credit(house.agent), factories.unknown_credit(house.neighbour)
    for case, allowed in ((ours, False), (theirs, True)):
        assert permissions.may(bob, "claim", case.tenant.pk) is allowed
        html = text(browser, address(case))
        assert (f'action="{address(case, "claim")}"' in html) is allowed
        form = {"version": str(case.task().version), "evidence_hash": "", "key": uuid.uuid4().hex}
        answer = browser.post(address(case, "claim"), form)
        assert answer.status_code == 303 if allowed else "your role does not include this" in said(answer)
        assert case.task().state == ("claimed" if allowed else "open")


def test_U15_a_broken_record_is_one_marked_row_and_the_others_are_whole(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for intent in ("First", "Broken", "Last"):
        factories.open_run(house.agent, intent=intent)
    whole = run_rows.row

    def row(visit: Any, run: Run) -> Any:
        if run.intent == "Broken":
            raise LookupError("no look for the state")
        return whole(visit, run)

    monkeypatch.setattr(run_rows, "row", row)
    html = text(sign_in("bob"), "/runs/")
    assert (">First<" in html, ">Last<" in html, ">Broken<" in html) == (True, True, False)
    assert plain(html).count("This record cannot be read") == 1


def test_U21_a_word_of_a_person_is_evidence_with_a_name_and_never_an_attempt(house: House, sign_in: SignIn) -> None:
    case, alice, omar = factories.unknown_credit(house.agent), sign_in("alice"), sign_in("omar")
    before = case.action().attempts
    assert press(alice, case, "attest", outcome="present", reference=" ").status_code == 422
    assert press(alice, case, "attest", outcome="present", reference="cr_7").status_code == 303
    assert case.action().state != "succeeded", "one person's word settles nothing"
    assert press(omar, case, "approve").status_code == 303
    with wall.within(case.tenant.pk):
        [evidence] = Evidence.objects.filter(run_id=case.run_id, verdict="present")
    assert (evidence.kind, case.action().attempts) == ("person", before)
    page = plain(text(sign_in("bob"), f"/tasks/{case.task().pk}/"))
    assert "A person's attestation" in page.replace("&#x27;", "'")
    assert "1 of 3" in page, "its one attempt is the agent's"


def test_U23_what_is_refused_says_why_and_never_shows_as_under_way(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    alice = sign_in("alice")
    assert press(alice, case, "cancel").status_code == 303
    form = {"version": str(case.task().version), "evidence_hash": "", "key": uuid.uuid4().hex, "reason_code": "other"}
    answer = alice.post(address(case, "retry"), {**form, "reason": "Again."})
    assert answer.status_code in (403, 409)
    assert re.search(r"Blocked|changed and sent nothing", said(answer))
    assert decided(case, verb="retry") == []
    assert "Requested" not in plain(text(alice, address(case)))
