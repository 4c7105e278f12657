"""What a run page hands out: older events, the raw record and the support bundle (UX: run)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from django.test import Client

from console.builders import dossier
from console.builders import run as build
from console.builders.history import EVIDENCE, PEOPLE, TRANSITIONS, kind_of, kinds_of
from runs import wall
from runs.models import Action, Attempt
from tests import factories
from tests.console.conftest import House
from tests.console.test_task import text
from tests.factories import Case
from tests.recovery import stories

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]


@pytest.fixture
def story(house: House) -> Case:
    """An unknown credit that omar took."""
    case = factories.unknown_credit(house.agent, intent="Refund Mrs Weber", customer_ref="kd-77")
    stories.press("claim", case, house.people["omar"])
    return case


def events(html: str) -> list[int]:
    """The places of the events that are listed, in their order."""
    listed = html[html.index('id="events"') :]
    return [int(seq) for seq in re.findall(r'<td class="g">(\d+)</td>', listed)]


@pytest.mark.parametrize("tab", ["", TRANSITIONS, EVIDENCE, PEOPLE])
def test_older_events_follow_page_by_page_and_none_is_lost_or_shown_twice(
    story: Case, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch, tab: str
) -> None:
    bob, url = sign_in("bob"), f"/runs/{story.run_id}/?events={tab}"
    whole = events(text(bob, url))
    monkeypatch.setattr(build, "EVENTS_SHOWN", 2)
    seen: list[int] = []
    while url:
        html = text(bob, url)
        seen += events(html)
        more = re.search(r'<a href="([^"]+)#events">Earlier events', html)
        url = more[1].replace("&amp;", "&") if more else ""
    assert seen == whole
    assert seen == sorted(seen, reverse=True)
    assert seen, "each tab has events in this story"


def test_the_database_sorts_events_into_tabs_as_the_page_does(story: Case) -> None:
    with wall.within(story.tenant.pk):
        for tab in (TRANSITIONS, EVIDENCE, PEOPLE):
            asked = set(story.run.events.filter(kinds_of(tab)).values_list("pk", flat=True))
            assert asked == {event.pk for event in story.run.events.all() if kind_of(event) == tab}, tab


@pytest.mark.parametrize("mark", ["zzz", "%00", "01890000-0000-7000-8000-000000000000"])
def test_a_mark_that_is_no_event_of_this_run_is_not_found(story: Case, sign_in: SignIn, mark: str) -> None:
    assert sign_in("bob").get(f"/runs/{story.run_id}/?under={mark}").status_code == 404


def test_the_raw_record_is_strict_json_with_every_row_and_nothing_sealed(story: Case, sign_in: SignIn) -> None:
    answer = sign_in("bob").get(f"/runs/{story.run_id}/raw/")
    told = json.loads(answer.content)
    assert answer["Content-Type"] == "application/json"
    assert told["run"]["intent"] == "Refund Mrs Weber"
    assert [one["step"] for one in told["actions"]] == [one.step for one in _actions(story)]
    with wall.within(story.tenant.pk):
        assert len(told["attempts"]) == Attempt.objects.filter(run_id=story.run_id).count()
        assert len(told["events"]) == story.run.events.count()
    assert told["cut"] == []
    assert "sealed" not in answer.content.decode()


def test_the_raw_record_says_of_what_it_has_only_a_part(
    story: Case, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dossier, "MOST", 1)
    told = json.loads(sign_in("bob").get(f"/runs/{story.run_id}/raw/").content)
    assert {"attempts", "tasks"} <= set(told["cut"])


def test_it_can_be_saved_as_a_file(story: Case, sign_in: SignIn) -> None:
    answer = sign_in("bob").get(f"/runs/{story.run_id}/raw/?save=1")
    assert answer["Content-Disposition"] == f'attachment; filename="run-{story.run_id}.json"'


def test_the_support_bundle_has_ids_rules_and_hashes_and_no_word_of_a_customer(story: Case, sign_in: SignIn) -> None:
    answer = sign_in("bob").get(f"/runs/{story.run_id}/bundle/")
    said = answer.content.decode()
    assert answer["Content-Disposition"].startswith("attachment")
    assert f"# Run {story.run_id}" in said
    assert _actions(story)[-1].action_id in said
    assert "claim by rule" in said
    for told in ("Weber", "kd-77", "acct_", "observation", '"arguments"'):
        assert told not in said, told


@pytest.mark.parametrize("part", ["raw/", "bundle/"])
def test_another_tenant_gets_none_of_it(story: Case, sign_in: SignIn, part: str) -> None:
    assert sign_in("charlie").get(f"/runs/{story.run_id}/{part}").status_code == 404


def _actions(case: Case) -> list[Action]:
    with wall.within(case.tenant.pk):
        return list(case.run.actions.order_by("pk"))
