"""The list of runs and the run page: answers, waterfall, budgets, state path, effects, events."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from console.builders import runs as build
from console.waterfall import Lane, Stretch, draw
from recovery.connectors.base import Finding
from recovery.work import decisions
from runs.models import Run
from tests import factories
from tests.console.conftest import House
from tests.console.test_task import FOUND, ask, look, order, plain, text

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]


def titles(html: str) -> list[str]:
    return re.findall(r"data-open>([^<]+)</a>", html)


def states(html: str) -> list[str]:
    """The states of the path, in their order."""
    path = html[html.index('class="path"') : html.index("</ol>", html.index('class="path"'))]
    return re.findall(r"<code>(\w+)</code>", path)


@pytest.fixture
def several(house: House) -> House:
    factories.complete(house.agent, intent="Went well")
    factories.unknown_credit(house.agent, intent="Is unknown")
    factories.rate_limit(factories.open_run(house.agent, intent="Tries again"))
    refused = factories.open_run(house.agent, intent="Was refused")
    factories.refuse(refused)
    factories.finish(refused)
    factories.unknown_credit(house.neighbour, intent="Next door")
    return house


def test_the_newest_run_comes_first_with_what_is_proven_and_unknown(several: House, sign_in: SignIn) -> None:
    html = text(sign_in("bob"), "/runs/")
    assert titles(html) == ["Was refused", "Tries again", "Is unknown", "Went well"]
    said = plain(html)
    assert "2 proven" in said
    assert "1 unknown" in said
    assert "external_outcome_unknown" in said


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?state=completed", ["Went well"]),
        ("?state=live", ["Tries again", "Is unknown"]),
        ("?outcome=fatal", ["Was refused"]),
        ("?workflow=billing-case&state=failed", ["Was refused"]),
        ("?workflow=other", []),
        ("?state=nonsense", []),
        ("?tenant=nordlicht&outcome=ok", ["Went well"]),
    ],
)
def test_a_filter_is_an_address(several: House, sign_in: SignIn, query: str, found: list[str]) -> None:
    html = text(sign_in("bob"), f"/runs/{query}")
    assert titles(html) == found
    assert found or "No run fits." in html


def test_the_list_is_paged_by_key_and_keeps_its_filter(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "PAGE", 2)
    for name in ("one", "two", "three", "four", "five"):
        factories.open_run(house.agent, intent=name)
    bob, url, seen = sign_in("bob"), "/runs/?state=live", []
    while url:
        html = text(bob, url)
        seen += titles(html)
        more = re.search(r'<a href="([^"]+)">Older runs', html)
        url = more[1].replace("&amp;", "&") if more else ""
        assert "state=live" in url or not url
    assert seen == ["five", "four", "three", "two", "one"]


def test_the_rows_answer_304_until_a_run_moves(house: House, sign_in: SignIn) -> None:
    case, bob = factories.open_run(house.agent), sign_in("bob")
    etag = re.search(r'data-etag="([^"]+)"', text(bob, "/runs/"))
    assert etag
    known = {"If-None-Match": etag[1].replace("&quot;", '"')}
    assert bob.get("/runs/live/", headers=known).status_code == 304
    factories.rate_limit(case)
    assert bob.get("/runs/live/", headers=known).status_code == 200


@pytest.mark.parametrize("query", ["?before=zzz", "?before=%00", "?tenant=harbor"])
def test_an_address_that_names_nothing_is_not_found(house: House, sign_in: SignIn, query: str) -> None:
    assert sign_in("bob").get(f"/runs/{query}").status_code == 404


def test_a_run_that_cannot_be_shown_is_one_marked_row(
    several: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = build.row

    def row(visit: Any, run: Run) -> Any:
        if run.intent == "Tries again":
            raise LookupError("no look for the state")
        return whole(visit, run)

    monkeypatch.setattr(build, "row", row)
    html = text(sign_in("bob"), "/runs/")
    assert titles(html) == ["Was refused", "Is unknown", "Went well"]
    assert html.count("This record cannot be read") == 1


def test_a_run_that_went_well_shows_its_path_budgets_and_effects(house: House, sign_in: SignIn) -> None:
    case = factories.complete(house.agent, customer_ref="K-1")
    html = text(sign_in("bob"), f"/runs/{case.run_id}/")
    said = plain(html)
    assert states(html)[0] == "planning"
    assert states(html)[-1] == "completed"
    assert "3 / 12" in said
    assert "3 / 20" in said
    assert "2 proven" in said
    assert "Your request is done." in said
    assert "Agrees with the ledger" in said
    assert "This state is final" in said


def test_an_unknown_write_is_one_violet_stretch_with_its_bound(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    html = text(sign_in("bob"), f"/runs/{case.run_id}/")
    assert re.search(r'<g class="unk dash"><rect[^>]*><title>outcome unknown, a look-up is final from \d\d:', html)
    assert "blocked by apply_credit" in html
    assert "1 unknown, 120.00 EUR" in html
    assert states(html)[-1] == "verifying"
    assert f"/tasks/{case.task().pk}/" in html


def test_waits_look_ups_and_people_stand_on_the_same_axis(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = factories.open_run(house.agent)
    factories.rate_limit(case, retry_after=1)
    factories.advance_clock(seconds=2)
    factories.succeed(case, "load_invoice")
    factories.lose_the_reply(case)
    look(monkeypatch, ask(house, case), FOUND)
    said = plain(text(sign_in("bob"), f"/runs/{case.run_id}/"))
    assert "Retry-After 1 s" in said
    assert "429 rate limited" in said
    assert "Look-up" in said
    assert "Omar: check what happened" in said
    assert "found once" in said


def test_the_budget_that_fired_comes_first_and_is_named(house: House, sign_in: SignIn) -> None:
    factories.register(house.agent, factories.billing_manifest(budgets={"max_turns": 1}))
    case = factories.open_run(house.agent)
    factories.turn(case)
    factories.turn(case)
    html = text(sign_in("bob"), f"/runs/{case.run_id}/")
    budgets = html[html.index('class="budgets"') :]
    assert re.match(r'class="budgets"><div class="bad"><label for="budget-1"><span>Turns, fired', budgets)
    assert "turn budget exhausted" in html
    assert states(html)[-1] == "escalated"


def test_events_are_narrowed_by_kind(house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    case = factories.unknown_credit(house.agent)
    look(monkeypatch, ask(house, case), Finding("absent", "0 records listed, none of them is ours.", 0))
    decisions.comment(order(house, "alice", case, key="b", reason="Noted by alice"))
    bob = sign_in("bob")
    people = plain(text(bob, f"/runs/{case.run_id}/?events=people"))
    assert "Alice: comment. Noted by alice." in people
    assert "Run opened." not in people
    assert "Run opened." in plain(text(bob, f"/runs/{case.run_id}/"))
    assert bob.get(f"/runs/{case.run_id}/?events=zzz").status_code == 404


def test_the_region_of_a_run_answers_304_until_it_moves(house: House, sign_in: SignIn) -> None:
    case, bob = factories.open_run(house.agent), sign_in("bob")
    etag = re.search(r'data-etag="([^"]+)"', text(bob, f"/runs/{case.run_id}/"))
    assert etag
    known = {"If-None-Match": etag[1].replace("&quot;", '"')}
    assert bob.get(f"/runs/{case.run_id}/live/", headers=known).status_code == 304
    factories.turn(case)
    changed = bob.get(f"/runs/{case.run_id}/live/", headers=known)
    assert changed.status_code == 200
    assert changed.content.decode().lstrip().startswith('<div id="run"')


@pytest.mark.parametrize("page", ["", "live/"])
def test_a_foreign_run_and_a_missing_one_are_the_same_404(house: House, sign_in: SignIn, page: str) -> None:
    foreign = factories.open_run(house.neighbour).run_id
    bob, bodies = sign_in("bob"), set()
    for run_id in (foreign, "0196f5b0-0000-7000-8000-000000000009", "no-id"):
        response = bob.get(f"/runs/{run_id}/{page}")
        assert response.status_code == 404
        bodies.add(re.sub(r'nonce="[^"]+"', "", response.content.decode()))
    assert len(bodies) == 1


def test_a_run_that_has_done_nothing_yet_has_a_page(house: House, sign_in: SignIn) -> None:
    said = plain(text(sign_in("bob"), f"/runs/{factories.open_run(house.agent).run_id}/"))
    assert "No calls yet" in said
    assert "Nothing to tell yet" in said


def test_an_agents_token_opens_no_page(house: House, client: Client) -> None:
    response = client.get("/runs/", headers={"Authorization": f"Bearer {house.agent.token}"})
    assert response.status_code == 302


def test_every_kind_of_outcome_has_a_page(several: House, sign_in: SignIn) -> None:
    bob = sign_in("bob")
    for url in re.findall(r'href="(/runs/[0-9a-f-]{36}/)"', text(bob, "/runs/")):
        assert "State path" in text(bob, url)


def test_words_beside_a_span_give_way_to_the_next_one() -> None:
    start = datetime(2026, 3, 2, 10, tzinfo=UTC)
    seconds = [start + timedelta(seconds=n) for n in (0, 1, 2, 100)]
    near = [
        Stretch(seconds[0], seconds[1], "move", "dispatched", dashed=True),
        Stretch(seconds[1], seconds[2], "ok", "proven"),
    ]
    [row] = draw([Lane("apply_credit", near)], start=start, end=seconds[3], label="x").rows
    assert [span.label.text if span.label else "" for span in row.spans] == ["", "proven"]
    assert [span.text for span in row.spans] == ["dispatched", "proven"]


def test_a_run_that_tries_again_says_from_when_and_who_asked(several: House, sign_in: SignIn) -> None:
    bob = sign_in("bob")
    [url] = re.findall(r'href="(/runs/[0-9a-f-]{36}/)" data-open>Tries again', text(bob, "/runs/"))
    html = text(bob, url)
    said = plain(html)
    assert re.search(r"load_invoice : next try not before \d\d:\d\d:\d\d UTC \(the provider asked for 30 s\)", said)
    assert re.search(r"<title>next try not before", html)
    assert "It moves by itself; no person is asked." in said
    factories.advance_clock(minutes=1)
    assert "load_invoice : the agent, to send it again." in plain(text(bob, url))


def test_a_run_with_an_unknown_write_says_when_it_is_looked_for_and_offers_what_is_offered(
    house: House, sign_in: SignIn
) -> None:
    case = factories.unknown_credit(house.agent)
    html = text(sign_in("alice"), f"/runs/{case.run_id}/")
    said = plain(html)
    assert re.search(r"apply_credit : a look-up, due \d\d:\d\d:\d\d UTC; final from \d\d:\d\d:\d\d UTC\.", said)
    moves = html[html.index('class="foot moves"') :]
    moves = moves[: moves.index("</div>")]
    assert re.findall(r">([^<]+)</a>", moves) == ["Check what happened", "Attest what happened", "Cancel the run"]
    viewer = plain(text(sign_in("bob"), f"/runs/{case.run_id}/"))
    assert re.search(r"A person is asked in T-\d+; nothing there is yours to do now\.", viewer)


def test_the_region_of_a_waiting_run_is_drawn_again_when_the_wait_is_over(house: House, sign_in: SignIn) -> None:
    case, bob = factories.open_run(house.agent), sign_in("bob")
    factories.rate_limit(case, retry_after=10)
    url = f"/runs/{case.run_id}/live/"
    known = {"If-None-Match": bob.get(url).headers["ETag"]}
    assert bob.get(url, headers=known).status_code == 304
    factories.advance_clock(seconds=20)
    assert bob.get(url, headers=known).status_code == 200


@pytest.mark.parametrize("by", ["run", "action", "task", "customer"])
def test_a_run_is_looked_up_by_what_names_it_in_full(house: House, sign_in: SignIn, by: str) -> None:
    wanted = factories.unknown_credit(house.agent, intent="This one", customer_ref="K-2041")
    factories.unknown_credit(house.agent, intent="Another", customer_ref="K-2042")
    names = {
        "run": str(wanted.run_id),
        "action": wanted.action().action_id,
        "task": f"T-{wanted.task().number}",
        "customer": " K-2041 ",
    }
    bob = sign_in("bob")
    assert titles(bob.get("/runs/", {"q": names[by]}).content.decode()) == ["This one"]
    charlie = sign_in("charlie").get("/runs/", {"q": names[by]}).content.decode()
    assert titles(charlie) == []
    assert "No run fits." in charlie


@pytest.mark.parametrize("address", ["/runs/?foo=1", "/?q=foo", "/?sort=x`<b>"])
def test_a_part_of_an_address_that_a_list_does_not_know_is_named(house: House, sign_in: SignIn, address: str) -> None:
    html = text(sign_in("bob"), address)
    assert "A part of this address was not used." in html
    assert "<b>`" not in html
    assert "not used" not in text(sign_in("bob"), "/?view=mine")


def test_words_never_lie_on_other_words() -> None:
    start = datetime(2026, 3, 2, 10, tzinfo=UTC)
    at = [start + timedelta(seconds=n) for n in (0, 50, 51, 52, 53, 54, 100)]
    tries = [Stretch(at[n], at[n], "idle", "Not sent") for n in (1, 2, 3, 4, 5)]
    [row] = draw([Lane("apply_credit", tries)], start=start, end=at[6], label="x").rows
    assert [span.label.text if span.label else "" for span in row.spans] == ["", "", "", "", "Not sent"]
