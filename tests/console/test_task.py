"""The task page: three answers, every part in its order, what blocks a verb, and how it stays live."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from steadyhand.contract import Observation

from recovery import panel
from recovery.connectors.base import Finding
from recovery.models import Decision, HumanTask
from recovery.work import decisions, sweep, worker
from recovery.work.decisions import Order
from runs import wall
from tests import factories
from tests.console.conftest import House
from tests.factories import Case

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]

SECTIONS = [
    "The three answers",
    "Intent and authorized scope",
    "Effects ledger",
    "Attempts",
    "Evidence",
    "What may have happened to apply_credit",
    "Remaining work",
    "Next actions",
]


def text(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200, response.content[:300]
    return response.content.decode()


def plain(html: str) -> str:
    """What a reader sees, without tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def address(case: Case) -> str:
    return f"/tasks/{case.task().pk}/"


def order(house: House, name: str, case: Case, key: str = "a", reason: str = "because") -> Order:
    person = house.people[name]
    with wall.within(case.tenant.pk):
        task = HumanTask.objects.select_related("run", "action", "claimed_by").get(pk=case.task().pk)
        seen = panel.read(task, person)
        return Order(task.pk, person, reason, seen.evidence_hash, task.version, key * 32)


def ask(house: House, case: Case, name: str = "omar", key: str = "a") -> Decision:
    return decisions.reconcile(order(house, name, case, key), ring=lambda decision_id: None)


def look(monkeypatch: pytest.MonkeyPatch, decision: Decision, finding: Finding) -> None:
    """Let the worker carry out a check whose provider answers with `finding`."""
    monkeypatch.setattr(worker, "ask", lambda question: finding)
    worker.execute(decision.pk)


FOUND = Finding("present", "One record is ours: cr_9.", 1, "cr_9", {"credit_id": "cr_9"}, {})
NONE = Finding("absent", "0 records listed, none of them is ours.", 0)


def test_the_sections_stand_in_their_order(house: House, sign_in: SignIn) -> None:
    html = text(sign_in("alice"), address(factories.unknown_credit(house.agent)))
    places = [html.index(section) for section in SECTIONS]
    assert places == sorted(places)


def test_an_unknown_write_is_answered_in_one_line(house: House, sign_in: SignIn) -> None:
    said = plain(text(sign_in("alice"), address(factories.unknown_credit(house.agent))))
    assert "apply_credit: timed out after dispatch" in said
    assert "Outcome unknown: one apply_credit of 120.00 EUR may exist" in said
    assert re.search(r"Not yet: it could happen twice .* A look-up counts as final from \d\d:\d\d:\d\d", said)
    assert "Recommended: check what happened." in said
    assert "3 allowed, 3 blocked" in said


def test_the_ledger_says_what_is_proven_unknown_and_planned(house: House, sign_in: SignIn) -> None:
    said = plain(text(sign_in("alice"), address(factories.unknown_credit(house.agent))))
    assert re.search(r"load_invoice Proven .* INV-20931 none The provider's reply", said.replace("&#x27;", "'"))
    assert re.search(r"apply_credit Unknown Credit an account, can be undone for 30 d none seen 120.00 EUR", said)
    assert re.search(r"draft_reply Planned .* Waits for apply_credit", said)
    assert "Unknown 120.00 EUR" in said


def test_the_four_cells_bring_facts_for_and_against(house: House, sign_in: SignIn) -> None:
    said = plain(text(sign_in("alice"), address(factories.unknown_credit(house.agent))))
    assert re.search(r"One look-up from \d\d:\d\d:\d\d UTC on separates all four", said)
    assert re.search(r"Never happened Possible Against: 842 bytes were sent", said)
    assert re.search(r"Happened, reply lost Possible For: 842 bytes were sent", said)
    assert "May land for 10 min, and be invisible for 1 min more" in said
    assert "Partial Possible" in said


def test_after_the_bounds_it_can_no_longer_be_in_progress(house: House, sign_in: SignIn) -> None:
    url = address(factories.unknown_credit(house.agent))
    factories.advance_clock(minutes=12)
    said = plain(text(sign_in("alice"), url))
    assert re.search(r"Still in progress Ruled out Against: The declared bounds ended at", said)
    assert "One look-up now separates all four" in said
    assert "Its answer will be final." in said


def test_without_a_declared_bound_no_look_up_promises_to_be_final(house: House, sign_in: SignIn) -> None:
    factories.register(house.agent, factories.billing_manifest(in_flight_seconds=None, lag_seconds=None))
    said = plain(text(sign_in("alice"), address(factories.unknown_credit(house.agent))))
    assert "No look-up separates all four: no bound is declared" in said
    assert "Never ends by itself" in said


def test_without_a_declared_look_up_the_check_is_blocked_with_its_rule(house: House, sign_in: SignIn) -> None:
    factories.register(house.agent, factories.billing_manifest(reconcile=False))
    html = text(sign_in("alice"), address(factories.unknown_credit(house.agent)))
    assert 'id="why-reconcile">Blocked: no look-up is declared for apply_credit.' in html
    assert "only the provider can tell" in html
    assert "No action is recommended." in html


def test_the_agents_closing_sentence_is_a_claim_and_comes_last(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    factories.finish(case, "<i>All done</i>, the credit is there.")
    html = text(sign_in("alice"), address(case))
    assert "Agent's claim (unverified): “&lt;i&gt;All done" in html
    evidence = html[html.index('id="evidence"') : html.index('id="worlds"')]
    assert evidence.rindex("<tr") == evidence.index('<tr class="g"')
    assert "Proves nothing" in evidence


def test_nothing_that_came_from_outside_is_markup(house: House, sign_in: SignIn) -> None:
    nasty = "<img src=x onerror=alert(1)>"
    case = factories.open_run(house.agent, intent=nasty, customer_ref=nasty, requester=nasty, scope={})
    arguments = {"account": nasty, "invoice": nasty, "amount_minor": 1, "currency": "EUR"}
    factories.report(case, factories.propose(case, "apply_credit", arguments), factories.timed_out())
    factories.finish(case, nasty)
    decisions.comment(order(house, "alice", case, reason=nasty))
    for page in ("", "reconcile/", "cancel/"):
        html = text(sign_in("omar"), address(case) + page)
        assert nasty not in html
        assert "&lt;img src=x" in html


def test_the_customers_message_is_compared_with_the_ledger(house: House, sign_in: SignIn) -> None:
    said = plain(text(sign_in("alice"), address(factories.unknown_credit(house.agent))))
    assert "“Your request is under review. We will confirm as soon as we are certain.”" in said
    assert "Agrees with the ledger" in said


def test_sealed_and_sensitive_arguments_never_reach_the_page(house: House, sign_in: SignIn) -> None:
    manifest = factories.billing_manifest()
    manifest["tools"][1]["sensitive_fields"] = ["account"]
    factories.register(house.agent, manifest)
    case = factories.unknown_credit(house.agent, scope={})
    alice = sign_in("alice")
    for url in (address(case), f"{address(case)}reconcile/", f"/runs/{case.run_id}/"):
        assert factories.ACCOUNT not in text(alice, url)


def test_a_blocked_verb_says_whose_role_lacks_it(house: House, sign_in: SignIn) -> None:
    html = text(sign_in("bob"), address(factories.unknown_credit(house.agent)))
    for verb in ("reconcile", "retry", "resume", "cancel"):
        assert f'id="why-{verb}">Blocked: your role does not include this.' in html
    assert "/comment/" not in html


def test_somebody_elses_claim_blocks_and_is_named(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    decisions.claim(order(house, "omar", case))
    said = plain(text(sign_in("alice"), address(case)))
    assert "Omar, since" in said
    assert "Blocked: Omar holds this task until" in said
    assert "You, since" in plain(text(sign_in("omar"), address(case)))


def test_comments_and_history_stand_at_the_side(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    decisions.comment(order(house, "omar", case, reason="The provider confirms a delay."))
    said = plain(text(sign_in("alice"), address(case)))
    assert "The provider confirms a delay." in said
    assert "Task opened. Outcome unknown after dispatch." in said


def test_the_neighbours_of_the_cause_are_one_key_away(house: House, sign_in: SignIn) -> None:
    first, second = (factories.unknown_credit(house.agent) for _ in range(2))
    html = text(sign_in("alice"), address(first))
    assert "1 of 2" in html
    assert f'href="{address(second)}" data-next' in html
    assert " data-previous" not in html


def test_a_check_under_way_is_requested_and_polls_each_second(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    ask(house, case)
    html = text(sign_in("omar"), address(case))
    assert "Requested: check of apply_credit." in html
    assert 'data-poll="1"' in html
    assert "Blocked: a check is under way; its answer appears here." in html


def test_a_check_that_a_worker_holds_is_dispatched(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, seen = factories.unknown_credit(house.agent), {}

    def asking(question: Any) -> Finding:
        seen["html"] = text(sign_in("omar"), address(case))
        return NONE

    decision = ask(house, case)
    monkeypatch.setattr(worker, "ask", asking)
    worker.execute(decision.pk)
    assert "Dispatched: a worker is asking the provider about apply_credit." in seen["html"]


def test_a_check_that_found_nothing_too_early_settles_nothing(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = factories.unknown_credit(house.agent)
    look(monkeypatch, ask(house, case), NONE)
    html = text(sign_in("omar"), address(case))
    said = plain(html)
    assert "Checked: this settles nothing yet." in said
    assert "Not found, not final" in said
    assert re.search(r"Never happened Possible For: Look-up at \d\d:\d\d:\d\d UTC found none", said)
    assert "1 of 6 checks used" in said
    assert 'data-poll="5"' in html


def test_a_check_that_found_it_resolves_the_task_and_the_page_stays(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = factories.unknown_credit(house.agent)
    look(monkeypatch, ask(house, case), FOUND)
    html = text(sign_in("omar"), address(case))
    said = plain(html)
    assert "Resolved: The effect is proven." in said
    assert "Yes, proven: one apply_credit of 120.00 EUR exists once" in said
    assert "One record is ours: cr_9. Found once." in said
    assert "This task is settled; nothing can be sent from here." in said
    assert "What may have happened" not in said
    assert re.search(r"draft_reply Planned", said)


def test_a_final_look_that_found_nothing_says_that_it_is_proven(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = factories.unknown_credit(house.agent)
    factories.advance_clock(minutes=12)
    look(monkeypatch, ask(house, case), NONE)
    said = plain(text(sign_in("omar"), address(case)))
    assert "Resolved: It is proven that nothing happened." in said
    assert "Not there, final" in said


def test_two_records_are_a_conflict(house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    case = factories.unknown_credit(house.agent)
    look(monkeypatch, ask(house, case), Finding("conflict", "2 records carry our reference.", 2))
    said = plain(text(sign_in("omar"), address(case)))
    assert "Conflict: the records contradict each other" in said
    assert "2 records carry our reference." in said


def test_a_task_about_the_run_itself_has_no_call_of_its_own(house: House, sign_in: SignIn) -> None:
    case = factories.open_run(house.agent)
    factories.succeed(case, "load_invoice")
    factories.finish(case)
    said = plain(text(sign_in("alice"), address(case)))
    assert "A required effect is missing" in said
    assert "No call of its own" in said
    assert "Recommended: let the run go on." in said
    assert "What may have happened" not in said


def test_the_region_answers_304_until_something_changes(house: House, sign_in: SignIn) -> None:
    case, alice = factories.unknown_credit(house.agent), sign_in("alice")
    url = f"{address(case)}live/"
    etag = re.search(r'data-etag="([^"]+)"', text(alice, address(case)))
    assert etag
    known = {"If-None-Match": etag[1].replace("&quot;", '"')}
    assert alice.get(url, headers=known).status_code == 304
    decisions.comment(order(house, "omar", case))
    changed = alice.get(url, headers=known)
    assert changed.status_code == 200
    assert changed.content.decode().lstrip().startswith('<div id="task"')
    assert alice.get(url, headers={"If-None-Match": changed.headers["ETag"]}).status_code == 304


def test_each_act_changes_the_version_of_the_region(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, omar = factories.unknown_credit(house.agent), sign_in("omar")
    url, tags = f"{address(case)}live/", []

    def mark() -> None:
        tags.append(omar.get(url).headers["ETag"])

    mark()
    decisions.claim(order(house, "omar", case, "b"))
    mark()
    decision = ask(house, case, key="c")
    mark()
    look(monkeypatch, decision, NONE)
    mark()
    decisions.release(order(house, "omar", case, "d"))
    mark()
    assert len(set(tags)) == len(tags)


@pytest.mark.parametrize("page", ["", "live/", "reconcile/", "retry/", "resume/", "cancel/"])
def test_F122_a_foreign_task_and_a_missing_one_are_the_same_404(house: House, sign_in: SignIn, page: str) -> None:
    foreign = factories.unknown_credit(house.neighbour).task().pk
    alice = sign_in("alice")
    bodies = []
    for task_id in (foreign, "0196f5b0-0000-7000-8000-000000000009", "no-id"):
        response = alice.get(f"/tasks/{task_id}/{page}")
        assert response.status_code == 404
        bodies.append(re.sub(r'nonce="[^"]+"', "", response.content.decode()))
    assert len(set(bodies)) == 1


def test_a_get_changes_nothing(house: House, sign_in: SignIn) -> None:
    case, omar = factories.unknown_credit(house.agent), sign_in("omar")
    before = (case.run.version, case.task().version)
    for page in ("", "live/", "reconcile/", "retry/", "resume/", "cancel/"):
        assert omar.get(address(case) + page).status_code == 200
    for page in ("claim/", "release/", "comment/"):
        assert omar.get(address(case) + page).status_code == 405
    assert (case.run.version, case.task().version) == before


# --- what each kind of task says ------------------------------------------------------------------------------


def exhausted(case: Case) -> None:
    for _ in range(3):
        factories.rate_limit(case, "apply_credit", retry_after=0)
        factories.advance_clock(minutes=1)


def refused_connection(case: Case) -> None:
    factories.refuse(case, status=401)


def lost_lease(case: Case) -> None:
    factories.propose(case)
    factories.advance_clock(minutes=3)
    sweep.sweep(ring=lambda decision_id: None)


def broken_reply(case: Case) -> None:
    factories.report(case, factories.propose(case), factories.reply({"odd": True}))


@pytest.mark.parametrize(
    ("happens", "failed", "changed"),
    [
        (exhausted, "apply_credit: 429 rate limited", "Did anything change? No"),
        (refused_connection, "apply_credit: 401 refused", "Did anything change? No"),
        (lost_lease, "apply_credit: no report before the lease ended", "Outcome unknown: one apply_credit"),
        (broken_reply, "apply_credit: 200 reply proves nothing", "Outcome unknown: one apply_credit"),
    ],
)
def test_the_page_never_says_more_than_is_proven(
    house: House, sign_in: SignIn, happens: Callable[[Case], None], failed: str, changed: str
) -> None:
    case = factories.open_run(house.agent)
    happens(case)
    alice = sign_in("alice")
    said = plain(text(alice, address(case)))
    assert failed in said
    assert changed in said
    unknown = "Outcome unknown" in said
    assert ("What may have happened" in said) == unknown
    assert ("may have happened. Its task stays open" in plain(text(alice, f"{address(case)}cancel/"))) == unknown


def test_a_call_that_waits_for_an_approval_was_not_sent(house: House, sign_in: SignIn) -> None:
    factories.register(house.agent, factories.billing_manifest(value_threshold=1000))
    case = factories.open_run(house.agent)
    factories.propose(case)
    alice = sign_in("alice")
    said = plain(text(alice, address(case)))
    assert "apply_credit: waits for an approval Nothing was sent." in said
    assert "After approval" in said
    assert "No call was permitted." in said
    assert "Waiting for approval 1" in plain(text(alice, "/"))


def test_a_task_of_a_cancelled_run_still_shows_what_is_unknown(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    decisions.cancel(order(house, "alice", case))
    said = plain(text(sign_in("alice"), address(case)))
    assert "Outcome unknown: one apply_credit of 120.00 EUR may exist" in said
    assert "We are checking whether one step had already been done." in said
    assert "Blocked: the run has ended" in said
    assert "draft_reply Planned" not in said[said.index("Remaining work") :]


# --- what provably changed nothing ----------------------------------------------------------------------------


def typed_refusal(case: Case, tool: str = "draft_reply") -> None:
    """The tool's author says that the requester has to supply something."""
    seen = Observation(
        kind="exception", declared="needs_input", declared_field="to", message="The customer's address is missing."
    )
    factories.report(case, factories.propose(case, tool), seen)


def never_sent(case: Case) -> None:
    for _ in range(3):
        factories.report(case, factories.propose(case), Observation(kind="not_sent"))
        factories.advance_clock(minutes=5)


def test_a_typed_need_for_input_names_the_field_and_what_the_tool_said(house: House, sign_in: SignIn) -> None:
    case = factories.open_run(house.agent)
    factories.succeed(case)
    typed_refusal(case)
    alice = sign_in("alice")
    html = text(alice, address(case))
    said = plain(html).replace("&#x27;", "'")
    assert "draft_reply: needs input: to" in said
    assert "The tool said: “The customer's address is missing.”" in said
    assert "After input Nothing happened." in said
    assert "the requester has to change the field to first" in said
    assert "roke off" not in said
    assert "not happen twice" not in said
    assert "Not sent" not in said
    assert "not declared Nothing was changed user input required" in said
    assert "After input" in plain(text(alice, "/"))
    assert 'class="badge warn"' in html


def test_tries_that_never_left_say_that_nothing_happened(house: House, sign_in: SignIn) -> None:
    case = factories.open_run(house.agent)
    never_sent(case)
    alice = sign_in("alice")
    said = plain(text(alice, address(case))).replace("&#x27;", "'")
    assert "Did anything change? No Nothing left the agent's machine" in said
    assert "Is retry safe? No Nothing happened, but all its tries are used." in said
    assert "Blocked: it is certain already that nothing happened." in said
    assert "What may have happened" not in said
    assert "rest on a guess" not in said
    cancel = plain(text(alice, f"{address(case)}cancel/"))
    assert "may have happened" not in cancel
    assert "task stays open" not in cancel


@pytest.mark.parametrize("happens", [never_sent, typed_refusal, exhausted, refused_connection])
def test_queue_and_task_agree_on_whether_retry_is_safe(
    house: House, sign_in: SignIn, happens: Callable[[Case], None]
) -> None:
    case = factories.open_run(house.agent)
    happens(case)
    alice = sign_in("alice")
    in_queue = re.search(r'<span class="word [^"]*">.*?<span>([^<]+)</span>', text(alice, "/"), re.DOTALL)
    on_page = re.search(r"Is retry safe\?</h2>.*?<span>([^<]+)</span>", text(alice, address(case)), re.DOTALL)
    assert in_queue
    assert on_page
    assert in_queue[1] == on_page[1]


def test_the_sheet_of_a_resolved_task_promises_no_worst_case(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = factories.unknown_credit(house.agent)
    look(monkeypatch, ask(house, case), FOUND)
    omar = sign_in("omar")
    assert "None. The task is resolved; nothing can be sent from here." in plain(
        text(omar, f"{address(case)}cancel/")
    )
    said = plain(text(omar, address(case)))
    assert re.search(r"SLA Resolved in .*, at \d\d:\d\d:\d\d UTC, in time\.", said)
    assert "Due " not in said


def test_what_the_machine_did_on_a_wish_is_the_machines(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = factories.unknown_credit(house.agent)
    look(monkeypatch, ask(house, case), FOUND)
    said = plain(text(sign_in("bob"), f"/runs/{case.run_id}/"))
    assert "for Omar" in said
    assert "Proposals are welcome" not in said
    assert "The run may go on." in said
    people = plain(text(sign_in("bob"), f"/runs/{case.run_id}/?events=people"))
    assert "Omar: check what happened" in people
    assert "for Omar" not in people


def test_a_long_comment_is_folded_and_complete(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    long = " ".join(f"word{number}" for number in range(400))
    decisions.comment(order(house, "omar", case, reason=long))
    html = text(sign_in("alice"), address(case))
    said = html[html.index('class="said"') :]
    assert "<summary>show more</summary>" in said
    assert long in plain(said).replace(" show more", "")
    history = html[html.index('class="log"') : html.index("</ol>", html.index('class="log"'))]
    assert "<summary>show more</summary>" in history


def test_without_script_the_page_neither_says_live_nor_offers_keys(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    html = text(sign_in("alice"), address(case))
    assert re.search(r'<span class="live if-script">Live, checked', html)
    assert re.search(r'<span class="no-script">As of', html)
    outside = re.sub(r"<dialog.*?</dialog>", "", html, flags=re.DOTALL)
    for key in re.findall(r"<kbd[^>]*>", outside):
        assert "if-script" in key or f"data-keys>Shortcuts {key}" in outside
