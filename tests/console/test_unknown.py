"""Unknown writes by connector and outage window (UX: unknown writes)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.builders import unknown as build
from recovery.models import Demotion
from recovery.work import holds, looks
from runs import wall
from runs.querysets import read_clock
from tests import factories
from tests.console.conftest import House
from tests.console.desk import said
from tests.console.test_bulk import begun, frozen, items, pass_on
from tests.console.test_queue import OVERHEAD
from tests.console.test_task import plain, text
from tests.factories import Case
from tests.recovery.stories import SILENT, Looks, present, press, script, waiting

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]
CHECK = re.compile(r'href="(/bulk/new/\?verb=reconcile[^"]*)"')


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Looks:
    monkeypatch.setattr("console.views.bulk.ring", lambda operation_id: None)
    found = script(monkeypatch)
    found.say(present())
    return found


@pytest.fixture
def outages(house: House) -> list[Case]:
    """Two writes close together, and a third one an hour later."""
    cases = [
        factories.unknown_credit(house.agent, intent="First"),
        factories.unknown_credit(house.agent, intent="Second"),
    ]
    factories.advance_clock(hours=1)
    return [*cases, factories.unknown_credit(house.agent, intent="Later")]


def windows_of(html: str) -> list[str]:
    """The rows of the windows as text, without those of their writes."""
    return [plain(row) for row in re.findall(r'<tr class="group.*?</tr>', html, re.DOTALL)]


def checks(html: str) -> list[str]:
    return [url.replace("&amp;", "&") for url in CHECK.findall(html)]


def test_writes_that_began_together_are_one_row_with_their_count_and_money(
    outages: list[Case], sign_in: SignIn
) -> None:
    html = text(sign_in("omar"), "/unknown/")
    large, small = windows_of(html)
    assert "payments apply_credit" in large
    assert "2 240.00 EUR" in large
    assert "1 120.00 EUR" in small
    assert "3 writes, the oldest since" in plain(html)
    assert "360.00 EUR at risk" in plain(html)


def test_a_row_says_from_when_finding_nothing_would_prove_something(outages: list[Case], sign_in: SignIn) -> None:
    large, small = windows_of(text(sign_in("omar"), "/unknown/"))
    assert "Now, for all" in large
    assert re.search(r"From (\d{4}-\d\d-\d\d )?[\d:]{8} UTC", small)


def test_one_button_is_filled_and_it_is_the_most_urgent_rows(outages: list[Case], sign_in: SignIn) -> None:
    html = text(sign_in("omar"), "/unknown/")
    assert html.count('data-verb="reconcile"') == 2
    filled = re.findall(r'data-verb="reconcile" data-recommended.*?</a>', html, re.DOTALL)
    assert len(filled) == 1
    assert "Check what happened, 2" in filled[0]
    assert "Check what happened, 2" in windows_of(html)[0]


def test_the_check_of_a_window_is_for_exactly_its_writes(
    outages: list[Case], sign_in: SignIn, house: House, asked: Looks
) -> None:
    omar = sign_in("omar")
    first, _ = checks(text(omar, "/unknown/"))
    assert "Check what happened: 2 tasks" in said(omar.get(first))
    frozen(omar, first.removeprefix("/bulk/new/"))
    assert {item.task_id for item in items(house)} == {case.task().pk for case in outages[:2]}


def test_a_window_opens_into_its_writes_page_by_page(
    outages: list[Case], sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    omar = sign_in("omar")
    monkeypatch.setattr(build, "MOST_ROWS", 1)
    [url, _] = re.findall(r'class="toggle" href="([^"]+)"', text(omar, "/unknown/"))
    html = text(omar, url.replace("&amp;", "&"))
    assert (">First<" in html, ">Second<" in html) == (True, False)
    more = re.search(r'<a href="([^"]+)">More writes', html)
    assert more
    html = text(omar, more[1].replace("&amp;", "&"))
    assert (">First<" in html, ">Second<" in html) == (False, True)
    assert "More writes" not in html
    assert outages[1].task().pk.hex in html.replace("-", "")


def test_a_write_says_what_its_last_look_up_found(
    outages: list[Case], sign_in: SignIn, asked: Looks, house: House
) -> None:
    asked.say(SILENT)
    press("reconcile", outages[0], house.people["omar"])
    looks.execute_many(waiting(house.nordlicht.pk))
    omar = sign_in("omar")
    url = re.findall(r'class="toggle" href="([^"]+)"', text(omar, "/unknown/"))[0]
    opened = plain(text(omar, url.replace("&amp;", "&")))
    assert "no look-up yet" in opened, "the second write was not looked at"
    assert opened.count("no look-up yet") == 1


def test_a_connector_in_trouble_is_seen_beside_its_writes(outages: list[Case], sign_in: SignIn, house: House) -> None:
    assert "Circuit closed" in windows_of(text(sign_in("omar"), "/unknown/"))[0]
    holds.hold_circuit(
        house.people["omar"], house.nordlicht.pk, name="connector:payments", reason="They asked for a rest."
    )
    row = windows_of(text(sign_in("omar"), "/unknown/"))[0]
    assert "Circuit held open" in row
    assert "They asked for a rest." in row


def test_F028_under_a_bound_that_was_not_kept_no_look_up_is_called_final(
    outages: list[Case], sign_in: SignIn, house: House
) -> None:
    omar = sign_in("omar")
    assert "Now, for all" in windows_of(text(omar, "/unknown/"))[0]
    with wall.within(house.nordlicht.pk):
        action = outages[0].action()
        since = read_clock()
        Demotion.objects.create(
            tenant=house.nordlicht, connector="payments", workflow_id=outages[0].workflow_id,
            run_id=outages[0].run_id, action=action, reason="It landed after it had been disproven.", since=since,
        )  # fmt: skip
    row = windows_of(text(omar, "/unknown/"))[0]
    assert "Never: a bound was not kept" in row
    assert "finding nothing proves nothing" in row
    assert "Now, for all" not in row
    factories.advance_clock(hours=1)
    factories.register(house.agent, factories.billing_manifest(first_look_seconds=61))
    factories.unknown_credit(house.agent)
    factories.advance_clock(hours=1)
    rows = windows_of(text(omar, "/unknown/"))
    assert any("Now, for all" in one for one in rows), "a version registered since promises anew"


def test_what_nobody_can_be_asked_about_is_settled_by_hand(house: House, sign_in: SignIn) -> None:
    bare: dict[str, Any] = factories.billing_manifest()
    next(tool for tool in bare["tools"] if tool["name"] == "apply_credit")["reconcile"] = None
    factories.register(house.agent, bare)
    factories.unknown_credit(house.agent)
    [row] = windows_of(text(sign_in("omar"), "/unknown/"))
    assert "No look-up" in row
    assert "Never: no bound declared" in row
    assert "Settle by hand each is settled from its own task" in row.replace("nobody can be asked: ", "")


def test_somebody_who_may_not_check_is_told_so(outages: list[Case], sign_in: SignIn) -> None:
    html = text(sign_in("bob"), "/unknown/")
    assert checks(html) == []
    assert windows_of(html)[0].endswith("your role does not include this ")


def test_the_rail_leads_here_and_an_empty_page_teaches(house: House, sign_in: SignIn) -> None:
    html = text(sign_in("omar"), "/unknown/")
    assert 'href="/unknown/' in html
    assert "No write is unknown." in html
    assert "its reply was lost" in html


def test_a_neighbours_writes_are_not_counted(outages: list[Case], sign_in: SignIn) -> None:
    assert "No write is unknown." in text(sign_in("charlie"), "/unknown/")


def test_the_bar_tells_of_new_writes_and_no_row_moves(outages: list[Case], sign_in: SignIn, house: House) -> None:
    omar = sign_in("omar")
    html = text(omar, "/unknown/")
    etag, url = re.search(r'data-etag="([^"]+)"', html), re.search(r'hx-get="(/unknown/news/[^"]+)"', html)
    assert etag
    assert url
    known = {"If-None-Match": etag[1].replace("&quot;", '"')}
    assert omar.get(url[1].replace("&amp;", "&"), headers=known).status_code == 304
    factories.unknown_credit(house.agent)
    told = omar.get(url[1].replace("&amp;", "&"), headers=known).content.decode()
    assert "1 new write, show" in told
    assert '<tr class="group' not in told


def test_an_address_that_names_nothing_opens_nothing(outages: list[Case], sign_in: SignIn) -> None:
    assert len(windows_of(text(sign_in("omar"), "/unknown/?open=zzz&after=zzz"))) == 2
    assert sign_in("omar").get("/unknown/?tenant=harbor").status_code == 404


def test_the_page_asks_at_most_six_questions_however_many_writes(
    outages: list[Case], sign_in: SignIn, house: House
) -> None:
    omar = sign_in("omar")
    url = re.findall(r'class="toggle" href="([^"]+)"', text(omar, "/unknown/"))[0].replace("&amp;", "&")
    with CaptureQueriesContext(connection) as asked:
        text(omar, url)
    own = [one["sql"] for one in asked if not any(word in one["sql"] for word in OVERHEAD)]
    assert len(own) <= 6, "\n\n".join(own)


def test_an_outage_of_many_writes_is_cleared_by_two_checks_and_nothing_is_sent_again(
    house: House, sign_in: SignIn, asked: Looks
) -> None:
    """The promise of the page: what can be settled is settled, and the ledger shows one arrival a call."""
    cases = [factories.unknown_credit(house.agent) for _ in range(6)]
    factories.advance_clock(hours=1)
    cases += [factories.unknown_credit(house.agent) for _ in range(3)]
    omar = sign_in("omar")
    for url in checks(text(omar, "/unknown/")):
        where = frozen(omar, url.removeprefix("/bulk/new/"))
        begun(omar, where, canary="0")
        for _ in range(4):
            pass_on(house, where)
    assert "No write is unknown." in text(omar, "/unknown/")
    with wall.within(house.nordlicht.pk):
        assert [case.action().attempts for case in cases] == [1] * 9
        assert {case.action().state for case in cases} == {"succeeded"}
    assert len(asked.asked) == 9
