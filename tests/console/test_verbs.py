"""The verbs as a browser sends them: who may, what a second click gets, and what the slower of two is told."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.http import HttpResponse
from django.test import Client

from console import forms
from recovery import permissions
from recovery.connectors.base import Finding
from recovery.models import Comment, Decision
from recovery.work import worker
from runs import record, wall
from runs.models import Event
from tests import factories
from tests.console.conftest import House, make_house
from tests.factories import Case

SignIn = Callable[[str], Client]
ACTS = ("reconcile", "retry", "resume", "cancel")
AT_ONCE = ("claim", "release", "comment")


def address(case: Case, verb: str = "") -> str:
    return f"/tasks/{case.task().pk}/{verb + '/' if verb else ''}"


def fields(html: str, action: str) -> dict[str, str]:
    """The hidden fields of the form with this address, as a browser would post them."""
    form = re.search(rf'<form[^>]* action="{re.escape(action)}".*?</form>', html, re.DOTALL)
    assert form, f"no form for {action}"
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form[0]))


def sheet(client: Client, case: Case, verb: str, **typed: str) -> dict[str, str]:
    """Open the sheet of a verb and fill it in."""
    response = client.get(address(case, verb))
    assert response.status_code == 200
    codes = re.findall(r'<option value="(\w+)"', response.content.decode())
    return {**fields(response.content.decode(), address(case, verb)), "reason_code": codes[0], "reason": "", **typed}


def click(client: Client, case: Case, verb: str, **typed: str) -> HttpResponse:
    """Press a button of the task page that sends at once."""
    html = client.get(address(case)).content.decode()
    return client.post(address(case, verb), {**fields(html, address(case, verb)), **typed})


def decided(case: Case, **lookup: Any) -> list[Decision]:
    with wall.within(case.tenant.pk):
        return list(Decision.objects.filter(run_id=case.run_id, **lookup).select_related("by"))


def refusals(case: Case) -> list[Event]:
    with wall.within(case.tenant.pk):
        return list(Event.objects.filter(run_id=case.run_id, kind="refused", actor_kind="person"))


def said(response: HttpResponse) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())).replace("&#x27;", "'")


@pytest.fixture
def case(house: House) -> Case:
    return factories.unknown_credit(house.agent)


# --- what a verb does -----------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_check_is_ordered_and_the_page_says_requested(case: Case, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    response = omar.post(address(case, "reconcile"), sheet(omar, case, "reconcile"))
    assert (response.status_code, response.headers["Location"]) == (303, address(case))
    [decision] = decided(case)
    assert (decision.verb, decision.state, str(decision.by)) == ("reconcile", "requested", "Omar")
    assert decision.reason == "Confirm the provider's state."
    page = said(omar.get(address(case)))
    assert "Requested: check of apply_credit." in page
    assert "success" not in page.lower()


@pytest.mark.django_db
def test_the_sheet_shows_its_six_steps(case: Case, sign_in: SignIn) -> None:
    page = said(sign_in("omar").get(address(case, "reconcile")))
    steps = ["What will be sent", "Facts relied on", "Worst case", "Who else must agree", "Reason", "Key"]
    assert [page.index(step) for step in steps] == sorted(page.index(step) for step in steps)
    assert "GET /payments/credits read only" in page
    assert case.action().action_id in page
    assert "Nothing in the world changes." in page
    assert "Request check now" in page


@pytest.mark.django_db
def test_the_sheet_of_cancel_names_the_unknown_write(case: Case, sign_in: SignIn) -> None:
    page = said(sign_in("omar").get(address(case, "cancel")))
    assert re.search(r"The run ends although apply_credit 120.00 EUR may have happened", page)


@pytest.mark.django_db
def test_cancel_ends_the_run_and_keeps_the_task_of_the_unknown_write(case: Case, sign_in: SignIn) -> None:
    alice = sign_in("alice")
    response = alice.post(address(case, "cancel"), sheet(alice, case, "cancel"))
    assert response.status_code == 303
    assert (case.run.state, case.run.reason_code) == ("cancelled", "cancelled_effect_unknown")
    page = said(alice.get(address(case)))
    assert "Recorded: cancel the run." in page
    assert "Open" in page
    assert "Outcome unknown" in page


@pytest.mark.django_db
def test_a_claim_is_one_click_extends_and_is_given_back(case: Case, sign_in: SignIn) -> None:
    alice = sign_in("alice")
    assert click(alice, case, "claim").status_code == 303
    assert case.task().state == "claimed"
    page = said(alice.get(address(case)))
    assert "Recorded: claim. Yours until" in page
    assert "Extend" in page
    assert click(alice, case, "claim").status_code == 303
    assert click(alice, case, "release").status_code == 303
    assert case.task().state == "open"


@pytest.mark.django_db
def test_a_task_is_claimed_from_the_queue(case: Case, sign_in: SignIn) -> None:
    alice = sign_in("alice")
    toggle = re.search(r'class="toggle" href="([^"]+)"', alice.get("/").content.decode())
    assert toggle
    html = alice.get(toggle[1].replace("&amp;", "&")).content.decode()
    assert alice.post(address(case, "claim"), fields(html, address(case, "claim"))).status_code == 303
    assert case.task().claimed_by == alice_of(case)


def alice_of(case: Case) -> Any:
    return factories.Person.objects.get(email="alice@people.example")


@pytest.mark.django_db
def test_a_comment_is_kept_and_moves_nothing(case: Case, sign_in: SignIn) -> None:
    alice, version = sign_in("alice"), case.task().version
    assert click(alice, case, "comment", text="Asked the provider.").status_code == 303
    with wall.within(case.tenant.pk):
        assert [one.text for one in Comment.objects.all()] == ["Asked the provider."]
    assert (case.task().version, case.task().state) == (version, "open")


@pytest.mark.django_db
def test_an_empty_comment_is_refused_with_a_sentence(case: Case, sign_in: SignIn) -> None:
    response = click(sign_in("alice"), case, "comment", text="  ")
    assert response.status_code == 422
    assert "A comment needs words." in said(response)


@pytest.mark.django_db
def test_a_run_that_ended_too_early_may_go_on(house: House, sign_in: SignIn) -> None:
    case, alice = factories.open_run(house.agent), sign_in("alice")
    factories.finish(case)
    assert alice.post(address(case, "resume"), sheet(alice, case, "resume")).status_code == 303
    assert case.run.state == "executing"
    assert "Alice let the run go on." in said(alice.get(address(case)))


@pytest.mark.django_db
def test_a_call_that_is_proven_absent_may_be_sent_again_by_on_call(
    house: House, case: Case, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    omar = sign_in("omar")
    assert click(omar, case, "claim").status_code == 303
    factories.advance_clock(minutes=12)
    assert omar.post(address(case, "reconcile"), sheet(omar, case, "reconcile")).status_code == 303
    monkeypatch.setattr(
        worker, "ask", lambda question: Finding("absent", "0 records listed, none of them is ours.", 0)
    )
    worker.execute(decided(case, verb="reconcile")[0].pk)
    assert case.task().reason_code == "external_outcome_resolved"
    assert omar.post(address(case, "retry"), sheet(omar, case, "retry")).status_code == 303
    assert factories.propose(case, "apply_credit").answer == "execute"


# --- reasons and broken forms ---------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("verb", ["reconcile", "cancel"])
def test_a_verb_that_acts_wants_a_reason(case: Case, sign_in: SignIn, verb: str) -> None:
    omar = sign_in("omar")
    response = omar.post(address(case, verb), sheet(omar, case, verb, reason_code="other", reason="  "))
    assert response.status_code == 422
    assert "Say why in words" in said(response)
    assert decided(case) == []


@pytest.mark.django_db
def test_an_unknown_reason_code_comes_back_with_the_typed_text(case: Case, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    response = omar.post(address(case, "cancel"), sheet(omar, case, "cancel", reason_code="x", reason="My words"))
    assert response.status_code == 422
    assert "My words</textarea>" in response.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "broken", [{"key": ""}, {"key": "timer:x"}, {"version": "-1"}, {"version": "x"}, {"key": "A" * 32}]
)
def test_a_form_without_its_marks_changes_nothing(case: Case, sign_in: SignIn, broken: dict[str, str]) -> None:
    omar = sign_in("omar")
    response = omar.post(address(case, "cancel"), {**sheet(omar, case, "cancel"), **broken})
    assert response.status_code == 400
    assert "nothing was sent" in said(response)
    assert decided(case) == []


@pytest.mark.django_db
@pytest.mark.parametrize("verb", ["comment", "cancel"])
def test_a_nul_character_is_refused(case: Case, sign_in: SignIn, verb: str) -> None:
    alice = sign_in("alice")
    if verb == "comment":
        response = click(alice, case, "comment", text="a\0b")
    else:
        response = alice.post(address(case, verb), sheet(alice, case, verb, reason="a\0b"))
    assert response.status_code == 422
    assert decided(case) == []


@pytest.mark.django_db
@pytest.mark.parametrize("verb", [*ACTS, *AT_ONCE])
def test_a_form_from_another_site_is_refused(house: House, case: Case, verb: str) -> None:
    omar = house.browser("omar")
    omar.handler.enforce_csrf_checks = True
    assert omar.post(address(case, verb), {"key": "a" * 32, "version": 0}).status_code == 403
    assert decided(case) == []


# --- who may --------------------------------------------------------------------------------------------------

MAY = {
    "alice": {"claim", "comment", "reconcile", "cancel"},
    "omar": {"claim", "comment", "reconcile", "cancel"},
    "ada": {"claim", "comment", "reconcile", "cancel"},
    "nia": set(),
    "bob": set(),
}


@pytest.mark.django_db
@pytest.mark.parametrize("verb", [*ACTS, *AT_ONCE])
@pytest.mark.parametrize("name", MAY)
def test_F123_a_button_that_was_not_offered_is_refused_and_audited(
    house: House, case: Case, sign_in: SignIn, name: str, verb: str
) -> None:
    """Retry and resume are blocked by the evidence, release by the claim, the rest by the role alone."""
    marks = sheet(sign_in("omar"), case, "reconcile")
    code = {"retry": "outage_over", "resume": "settled", "cancel": "withdrawn"}.get(verb, "confirm_state")
    response = sign_in(name).post(address(case, verb), {**marks, "reason_code": code, "text": "hello"})
    if verb in MAY[name]:
        assert response.status_code == 303
        assert len(decided(case, verb=verb)) == 1
        return
    assert response.status_code == 403
    assert "Blocked:" in said(response)
    assert "Nothing was sent." in said(response)
    assert decided(case) == []
    [refusal] = refusals(case)
    assert refusal.data["verb"] == verb
    assert refusal.actor == name.capitalize()


@pytest.mark.django_db
@pytest.mark.parametrize("verb", [*ACTS, *AT_ONCE])
def test_F122_a_foreign_task_and_a_missing_one_answer_alike(
    house: House, case: Case, sign_in: SignIn, verb: str
) -> None:
    marks = sheet(sign_in("omar"), case, "reconcile")
    charlie, bodies = sign_in("charlie"), set()
    for task_id in (case.task().pk, "0196f5b0-0000-7000-8000-000000000009"):
        for form in ({**marks, "text": "x"}, {**marks, "reason_code": "other"}):
            response = charlie.post(f"/tasks/{task_id}/{verb}/", form)
            assert response.status_code == 404
            bodies.add(re.sub(r'nonce="[^"]+"', "", response.content.decode()))
    assert len(bodies) == 1
    assert decided(case) == []


@pytest.mark.django_db
@pytest.mark.parametrize("verb", [*ACTS, *AT_ONCE])
def test_nobody_acts_without_signing_in(case: Case, client: Client, verb: str) -> None:
    response = client.post(address(case, verb), {})
    assert response.status_code == 302
    assert response.headers["Location"].startswith("/accounts/login/")


def revoke(house: House, name: str, role: str) -> None:
    person = house.people[name]
    person.groups.remove(Group.objects.get(name=f"{house.nordlicht.pk}:{role}"))


@pytest.mark.django_db
def test_F120_a_right_taken_away_between_page_and_click_is_refused(house: House, case: Case, sign_in: SignIn) -> None:
    alice = sign_in("alice")
    marks = sheet(alice, case, "reconcile")
    revoke(house, "alice", "support")
    permissions.grant_role(house.people["alice"], house.nordlicht, "viewer")
    response = alice.post(address(case, "reconcile"), marks)
    assert response.status_code == 403
    assert decided(case) == []
    assert len(refusals(case)) == 1


@pytest.mark.django_db
def test_F120_somebody_who_lost_the_tenant_no_longer_finds_the_task(
    house: House, case: Case, sign_in: SignIn
) -> None:
    alice = sign_in("alice")
    marks = sheet(alice, case, "reconcile")
    revoke(house, "alice", "support")
    assert alice.post(address(case, "reconcile"), marks).status_code == 404
    assert alice.get(address(case)).status_code == 404


@pytest.mark.django_db
def test_somebody_who_was_deactivated_is_signed_out(house: House, case: Case, sign_in: SignIn) -> None:
    alice = sign_in("alice")
    marks = sheet(alice, case, "reconcile")
    factories.Person.objects.filter(email="alice@people.example").update(is_active=False)
    assert alice.post(address(case, "reconcile"), marks).status_code == 302
    assert decided(case) == []


# --- the same click, and the slower of two --------------------------------------------------------------------


@pytest.mark.django_db
def test_F116_a_second_click_gets_the_first_result(case: Case, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    marks = sheet(omar, case, "reconcile")
    answers = [omar.post(address(case, "reconcile"), marks) for _ in range(3)]
    assert [(one.status_code, one.headers["Location"]) for one in answers] == [(303, address(case))] * 3
    assert len(decided(case)) == 1


@pytest.mark.django_db
def test_F117_the_slower_of_two_people_reads_who_did_what(case: Case, sign_in: SignIn) -> None:
    omar, alice = sign_in("omar"), sign_in("alice")
    marks = sheet(alice, case, "reconcile", reason="Typed by alice.")
    assert click(omar, case, "claim").status_code == 303
    response = alice.post(address(case, "reconcile"), marks)
    assert response.status_code == 409
    assert re.search(r"Omar chose “Claim” at \d\d:\d\d:\d\d UTC, .* sent nothing\.", said(response))
    assert decided(case, verb="reconcile") == []
    assert "Typed by alice.</textarea>" in response.content.decode()
    assert "Blocked: Omar holds this task until" in said(response)


@pytest.mark.django_db
def test_F117_the_slower_of_two_claims_reads_who_holds_it(case: Case, sign_in: SignIn) -> None:
    omar, alice = sign_in("omar"), sign_in("alice")
    marks = fields(alice.get(address(case)).content.decode(), address(case, "claim"))
    assert click(omar, case, "claim").status_code == 303
    response = alice.post(address(case, "claim"), marks)
    assert response.status_code == 409
    assert "Omar holds this task until" in said(response)
    assert str(case.task().claimed_by_id) == str(factories.Person.objects.get(email="omar@people.example").pk)


@pytest.mark.django_db
def test_F118_a_stale_sheet_comes_back_fresh_with_the_typed_text(case: Case, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    old = sheet(omar, case, "cancel", reason_code="wrong_request", reason="Kept words")
    click(omar, case, "claim")
    response = omar.post(address(case, "cancel"), old)
    assert response.status_code == 409
    html = response.content.decode()
    assert "Kept words</textarea>" in html
    assert 'value="wrong_request" selected' in html
    assert "data-focus" in html
    new = fields(html, address(case, "cancel"))
    assert new["key"] != old["key"]
    assert int(new["version"]) > int(old["version"])
    assert case.run.state == "verifying"
    again = omar.post(address(case, "cancel"), {**new, "reason_code": "wrong_request", "reason": "Kept words"})
    assert again.status_code == 303


SHEETS = sorted(verb for verb in forms.REASONS)
STALE = {"outcome": "present", "reference": "ref 77", "amount": "3", "value": "acct 1", "minutes": "60", "to": ""}


@pytest.mark.django_db
@pytest.mark.parametrize("verb", SHEETS)
def test_F118_every_stale_sheet_keeps_what_was_typed(case: Case, sign_in: SignIn, verb: str) -> None:
    ada, path = sign_in("ada"), address(case, verb.replace("_", "-"))
    assert ada.get(path).status_code == 200
    typed = {"reason_code": "other", "reason": f"Typed for {verb}", "evidence_hash": "old", "version": "0"}
    click(ada, case, "claim")
    response = ada.post(path, {**STALE, **typed, "key": "c" * 32})
    html = response.content.decode()
    assert response.status_code == 409
    assert f"Typed for {verb}</textarea>" in html
    assert 'value="other" selected' in html
    assert "Your click changed and sent nothing" in said(response)
    assert [one.verb for one in decided(case)] == ["claim"]


@pytest.mark.django_db
def test_F119_a_sheet_whose_evidence_moved_sends_nothing(case: Case, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    marks = sheet(omar, case, "reconcile", reason="Before the callback")
    with wall.within(case.tenant.pk):
        run = record.lock_run(case.run_id)
        assert run is not None
        record.add_evidence(
            case.action(), run=run, kind="probe", verdict="probe_failed", source="payments", strength=1,
            fact="The look-up did not answer in time.", started_at=record.read_clock(),
        )  # fmt: skip
    response = omar.post(address(case, "reconcile"), marks)
    assert response.status_code == 409
    assert "The facts have changed since this page was drawn. Your click changed and sent nothing." in said(response)
    assert "The look-up did not answer in time." in said(response)
    assert "Before the callback</textarea>" in response.content.decode()
    assert decided(case) == []


@pytest.mark.django_db
def test_the_request_that_decided_is_in_the_audit_trail(case: Case, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    omar.post(address(case, "reconcile"), sheet(omar, case, "reconcile"), headers={"X-Request-Id": "click-1"})
    with wall.within(case.tenant.pk):
        assert Event.objects.get(kind="verb_reconcile").request_id == "click-1"


# --- with real commits: threads, and a broker that is away ----------------------------------------------------


def together(*posts: Callable[[], HttpResponse]) -> list[int]:
    """Send at the same moment, each in its own thread and connection; the status codes, sorted."""
    gate, codes = threading.Barrier(len(posts)), []

    def send(post: Callable[[], HttpResponse]) -> None:
        gate.wait()
        try:
            codes.append(post().status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=send, args=[post]) for post in posts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return sorted(codes)


@pytest.fixture
def real_house(fresh_database: str, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setattr("console.views.decide.ring", _no_broker)
    return make_house()


def _no_broker(decision_id: Any) -> None:
    raise ConnectionError("the broker is away")


def test_F116_eight_clicks_at_once_are_one_check_although_the_broker_is_away(real_house: House) -> None:
    case = factories.unknown_credit(real_house.agent)
    browsers = [real_house.browser("omar") for _ in range(8)]
    marks = sheet(browsers[0], case, "reconcile")
    posts = [lambda one=one: one.post(address(case, "reconcile"), marks) for one in browsers]
    assert together(*posts) == [303] * 8
    assert [one.state for one in decided(case)] == ["requested"]


def test_F117_two_people_at_once_make_one_check_and_one_loser(real_house: House) -> None:
    case = factories.unknown_credit(real_house.agent)
    omar, alice = real_house.browser("omar"), real_house.browser("alice")
    by_omar, by_alice = (sheet(one, case, "reconcile") for one in (omar, alice))
    codes = together(
        lambda: omar.post(address(case, "reconcile"), by_omar),
        lambda: alice.post(address(case, "reconcile"), by_alice),
    )
    assert codes in ([303, 403], [303, 409])
    assert len(decided(case, verb="reconcile")) == 1


def test_F117_two_claims_at_once_have_one_holder(real_house: House) -> None:
    case = factories.unknown_credit(real_house.agent)
    browsers = [real_house.browser(name) for name in ("omar", "alice")]
    marks = [fields(one.get(address(case)).content.decode(), address(case, "claim")) for one in browsers]
    posts = [
        lambda one=one, mark=mark: one.post(address(case, "claim"), mark)
        for one, mark in zip(browsers, marks, strict=True)
    ]
    codes = together(*posts)
    assert codes in ([303, 403], [303, 409])
    assert len(decided(case, verb="claim")) == 1


def test_F117_two_approvals_at_once_free_one_call_once(real_house: House) -> None:
    manifest = factories.billing_manifest(requires_approval=True)
    factories.register(real_house.agent, manifest)
    case = factories.open_run(real_house.agent)
    factories.propose(case)
    browsers = [real_house.browser(name) for name in ("omar", "ada")]
    marks = [sheet(one, case, "approve") for one in browsers]
    posts = [
        lambda one=one, mark=mark: one.post(address(case, "approve"), mark)
        for one, mark in zip(browsers, marks, strict=True)
    ]
    assert together(*posts) == [303, 409]
    assert len(decided(case, verb="approve")) == 1
    assert [mark.data["verb"] for mark in refusals(case)] == ["approve"]
    assert [factories.propose(case).answer for _ in range(2)] == ["execute", "wait"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "verb"), [("bob", "reconcile"), ("bob", "cancel"), ("nia", "resume"), ("alice", "retry")]
)
def test_the_sheet_of_a_verb_that_a_role_lacks_is_refused(case: Case, sign_in: SignIn, name: str, verb: str) -> None:
    response = sign_in(name).get(address(case, verb))
    assert response.status_code == 403
    assert "Blocked: your role does not include this. Nothing was sent." in said(response)
    assert "<form" not in response.content.decode()


@pytest.mark.django_db
def test_my_own_second_tab_is_told_that_i_was_faster(case: Case, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    marks = sheet(omar, case, "reconcile")
    assert click(omar, case, "claim").status_code == 303
    response = omar.post(address(case, "reconcile"), marks)
    assert response.status_code == 409
    assert "You chose “Claim” at" in said(response)
    [refusal] = refusals(case)
    assert refusal.reason.startswith("Omar chose “Claim” at")


@pytest.mark.django_db
@pytest.mark.parametrize(("verb", "most"), [("comment", 4000), ("cancel", 2000)])
def test_words_that_are_too_long_come_back_whole_with_the_limit(
    case: Case, sign_in: SignIn, verb: str, most: int
) -> None:
    alice, words = sign_in("alice"), "x" * (most + 1)
    if verb == "comment":
        response = click(alice, case, verb, text=words)
    else:
        response = alice.post(address(case, verb), sheet(alice, case, verb, reason=words))
    assert response.status_code == 422
    assert f"at most {most} characters; this one has {most + 1}." in said(response)
    assert "[&#x27;" not in response.content.decode()
    assert f">{words}</textarea>" in response.content.decode()
    assert decided(case) == []
