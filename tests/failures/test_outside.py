"""What happened outside and nobody admits: listed, compared, asked about once, never taken for nothing."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from steadyhand.connector import Answer, Ask, Listed, Page

from recovery import gaps as gap_rows
from recovery.connectors.listing import HALVINGS
from recovery.models import Gap, HumanTask, OutsideSweep
from recovery.work import outside, worker
from recovery.work.sweep import sweep
from runs import wall
from runs.models import Event, Evidence, Person, Run, Tenant, Workflow
from runs.querysets import read_clock
from tests.factories import (
    Agent,
    Case,
    advance_clock,
    lose_the_reply,
    open_run,
    propose,
    register,
    reply,
    report,
    succeed,
)
from tests.failures import books
from tests.recovery.installed import installed
from tests.recovery.stories import kinds, open_tasks, panel, press, standing, tasks, tries

pytestmark = [pytest.mark.failures, pytest.mark.django_db]
EVERY, OVERLAP = 600, 60


@dataclass
class Ledger:
    """A system that lists what it did; `does` may be replaced by what goes wrong.

    `heeds`: whether it keeps to the interval that it is asked for.
    """

    effects: list[Listed] = field(default_factory=list)
    asked: list[tuple[datetime, datetime]] = field(default_factory=list)
    does: Callable[[], None] = lambda: None
    page_size: int = 2
    heeds: bool = False

    def reconcile(self, ask: Ask) -> Answer:
        return Answer("absent", 0)

    def list_effects(self, since: datetime, until: datetime, cursor: str) -> Page:
        self.asked.append((since, until))
        self.does()
        held = [one for one in self.effects if not self.heeds or since <= one.at < until]
        start = int(cursor or 0)
        end = start + self.page_size
        return Page(tuple(held[start:end]), str(end) if end < len(held) else "")

    def made(self, external_id: str, *, reference: str = "", key: str = "", ago: float = 1, **record: Any) -> None:
        self.effects.append(Listed(external_id, now() - timedelta(seconds=ago), reference, key, record))


def now() -> datetime:
    return read_clock()


@pytest.fixture
def ledger(tmp_path: Path, agent: Agent) -> Iterator[Ledger]:
    made = Ledger()
    with installed(tmp_path, books.NAME, made):
        register(agent, manifest())
        yield made


def manifest(**lists: Any) -> dict[str, Any]:
    made = books.manifest({"kind": "python"})
    made["connectors"][books.NAME]["lists"] = {"every_seconds": EVERY, "overlap_seconds": OVERLAP, **lists}
    return made


def listed(tenant: Tenant, seconds: float = EVERY + 1) -> None:
    """Time passes, the sweep rings, and the worker lists."""
    advance_clock(seconds=seconds)
    rung: list[uuid.UUID] = []
    sweep(ring=rung.append)
    for one in rung:
        worker.execute(one)


def where(tenant: Tenant) -> OutsideSweep:
    with wall.within(tenant.pk):
        return OutsideSweep.objects.get()


def gaps(tenant: Tenant) -> list[str]:
    with wall.within(tenant.pk):
        return list(Gap.objects.order_by("id").values_list("external_id", flat=True))


def asked(tenant: Tenant) -> list[tuple[str, str, str]]:
    """(kind, reason, owner) of the tasks that hang on runs of origin outside."""
    with wall.within(tenant.pk):
        rows = HumanTask.objects.filter(run__origin="outside").exclude(state="resolved").order_by("id")
        return list(rows.values_list("kind", "reason_code", "owner_team"))


def test_an_effect_that_no_call_admits_is_a_gap_and_a_task(ledger: Ledger, tenant: Tenant) -> None:
    ledger.made("cr_9", ago=-300)
    listed(tenant)
    assert gaps(tenant) == ["cr_9"]
    assert asked(tenant) == [("gap", "unadmitted_effect", "billing-support")]
    with wall.within(tenant.pk):
        run = Run.objects.get(origin="outside")
    assert (run.state, run.outcome, run.reason_code) == ("escalated", "needs_human", "unadmitted_effect")


def test_two_long_ids_that_begin_alike_are_two_questions(ledger: Ledger, tenant: Tenant) -> None:
    for last in "ab":
        ledger.made("cr_" * 65 + last, ago=-300)
    listed(tenant)
    assert asked(tenant) == [("gap", "unadmitted_effect", "billing-support")] * 2


def test_it_is_asked_once_however_often_it_is_listed(ledger: Ledger, tenant: Tenant) -> None:
    ledger.made("cr_9", ago=-580)
    for _ in range(3):
        listed(tenant)
        with wall.within(tenant.pk):
            OutsideSweep.objects.update(listed_until=now() - timedelta(seconds=EVERY), due_at=now())
    assert (gaps(tenant), len(asked(tenant))) == (["cr_9"], 1)


@pytest.mark.parametrize("known_by", ["reference", "key", "external_id"])
def test_what_a_call_admits_is_none(ledger: Ledger, tenant: Tenant, agent: Agent, known_by: str) -> None:
    case = open_run(agent)
    succeed(case)
    action = case.action()
    words = {"reference": {"reference": action.action_id}, "key": {"key": action.idempotency_key}, "external_id": {}}
    ledger.made(action.external_id, ago=-300, **words[known_by])
    listed(tenant)
    assert (gaps(tenant), open_tasks(case)) == ([], [])


def test_a_listing_that_is_admitted_asks_nothing_for_each_effect_and_locks_no_run(
    ledger: Ledger, tenant: Tenant, agent: Agent
) -> None:
    asked_for: list[int] = []
    for calls in (2, 10):
        for _ in range(calls):
            case = open_run(agent)
            succeed(case)
            ledger.made(case.action().external_id, reference=case.action().action_id, ago=-300)
        advance_clock(seconds=EVERY + 1)
        with CaptureQueriesContext(connection) as queries:
            outside.execute(where(tenant).pk)
        told = [one["sql"] for one in queries]
        assert not [sql for sql in told if sql.startswith('SELECT "runs_run"') and "FOR UPDATE" in sql]
        asked_for.append(len(told))
    assert asked_for[0] == asked_for[1]
    assert gaps(tenant) == []


def test_above_a_bound_the_rest_is_one_question_that_counts_and_names_them(ledger: Ledger, tenant: Tenant) -> None:
    ledger.page_size = 1000
    single, most = gap_rows.MOST_ASKED_ONE_BY_ONE, gap_rows.MOST_NAMED
    for number in range(single + most + 20):
        ledger.made(f"cr_{number}", ago=-300)
    listed(tenant)
    assert (len(gaps(tenant)), len(asked(tenant))) == (single + most + 20, single + 1)
    with wall.within(tenant.pk):
        told = Event.objects.get(kind="gaps_found")
        assert told.run.gaps.count() == most + 20
        assert [run.intent.count("cr_") for run in Run.objects.filter(pk=told.run_id)] == [most]
    assert (told.data["count"], told.data["external_ids"]) == (
        most + 20,
        [f"cr_{number}" for number in range(single, single + most)],
    )
    assert f"lists {most + 20} more" in told.reason
    with wall.within(tenant.pk):
        OutsideSweep.objects.update(listed_until=now() - timedelta(seconds=2 * EVERY), due_at=now())
    listed(tenant)
    assert len(asked(tenant)) == single + 1, "none of them is asked about again"


def test_an_effect_that_is_listed_twice_at_once_is_one_gap(ledger: Ledger, tenant: Tenant) -> None:
    for _ in range(2):
        ledger.made("cr_9", ago=-300)
    listed(tenant)
    assert gaps(tenant) == ["cr_9"]


def test_SEC_34_two_effects_whose_ids_look_like_secrets_are_two_gaps(ledger: Ledger, tenant: Tenant) -> None:
    for external_id in ("Qx7vT2mZr9LkB4nWc8YpD1sHf6JgA3eU", "mK5tRb1Vw9XzP3qLd7NcG2yJh8FsE4aU"):
        ledger.made(external_id, ago=-300)
    listed(tenant)
    assert [one.partition("~")[0] for one in gaps(tenant)] == ["[redacted token]"] * 2


def test_an_unknown_write_admits_its_effect(ledger: Ledger, tenant: Tenant, agent: Agent) -> None:
    case = open_run(agent)
    lose_the_reply(case)
    ledger.made("cr_5", reference=case.action().action_id, ago=-300)
    listed(tenant)
    assert gaps(tenant) == []


def test_F028_an_effect_of_a_call_that_was_closed_as_nothing_asks_again(
    ledger: Ledger, tenant: Tenant, agent: Agent
) -> None:
    case = open_run(agent)
    report(case, propose(case), reply({"code": "NO"}, status=422), "apply_credit")
    assert case.action().state == "refused_permanent"
    ledger.made("cr_5", reference=case.action().action_id, ago=-300)
    listed(tenant)
    assert open_tasks(case) == [("decide_next", "conflicting_evidence")]
    assert gaps(tenant) == []
    listed(tenant)
    assert len(tasks(case)) == 1


def test_F029_two_effects_of_one_call_are_a_duplicate(ledger: Ledger, tenant: Tenant, agent: Agent) -> None:
    case = open_run(agent)
    succeed(case)
    for external_id in (case.action().external_id, "cr_twin"):
        ledger.made(external_id, reference=case.action().action_id, ago=-300)
    listed(tenant)
    assert open_tasks(case) == [("duplicate_effect", "duplicate_effect")]
    assert gaps(tenant) == []


def test_F029_an_effect_that_was_listed_of_an_open_call_keeps_it_from_being_sent_again(
    ledger: Ledger, tenant: Tenant, agent: Agent
) -> None:
    case = open_run(agent)
    lose_the_reply(case)
    ledger.made("cr_1", reference=case.action().action_id, ago=-300)
    listed(tenant)
    for _ in range(3):
        listed(tenant, 60)
    assert len(tries(case)) == 1, "its look-up says that nothing is there"
    assert open_tasks(case) == [("decide_next", "conflicting_evidence")]


def test_F029_effects_of_one_call_in_two_listings_are_a_duplicate(
    ledger: Ledger, tenant: Tenant, agent: Agent
) -> None:
    case = open_run(agent)
    lose_the_reply(case)
    for external_id in ("cr_1", "cr_2"):
        ledger.effects.clear()
        ledger.made(external_id, reference=case.action().action_id, ago=-300)
        listed(tenant)
    assert ("duplicate_effect", "duplicate_effect") in tasks_ever(case)
    assert named(case) == ["cr_1", "cr_2"]


def test_F029_a_third_effect_is_kept_whatever_its_name(ledger: Ledger, tenant: Tenant, agent: Agent) -> None:
    case = open_run(agent)
    succeed(case)
    ledger.made("cr_z", reference=case.action().action_id, ago=-EVERY + 20)
    listed(tenant)
    ledger.made("cr_m", reference=case.action().action_id, ago=-300)
    listed(tenant)
    assert named(case) == ["cr_z", "cr_m"]


def test_an_effect_of_another_system_that_has_the_same_id_admits_nothing(
    ledger: Ledger, tenant: Tenant, agent: Agent
) -> None:
    made = manifest()
    made["connectors"]["archive"] = {"kind": "python", "entry_point": books.NAME, "lists": {"every_seconds": EVERY}}
    register(agent, made)
    case = open_run(agent)
    succeed(case)
    ledger.made(case.action().external_id, ago=-300)
    listed(tenant)
    with wall.within(tenant.pk):
        assert list(Gap.objects.values_list("connector", "external_id")) == [("archive", case.action().external_id)]


def named(case: Case) -> list[str]:
    with wall.within(case.tenant.pk):
        return list(Evidence.objects.filter(kind="listing").order_by("id").values_list("external_id", flat=True))


def tasks_ever(case: Case) -> list[tuple[str, str]]:
    with wall.within(case.tenant.pk):
        return list(HumanTask.objects.filter(run_id=case.run_id).values_list("kind", "reason_code"))


# --- nothing falls between ----------------------------------------------------------------------------------


def test_each_interval_begins_before_the_end_of_the_last_one(ledger: Ledger, tenant: Tenant) -> None:
    for _ in range(3):
        listed(tenant)
    spans = ledger.asked
    assert len(spans) == 3
    for (_, ended), (begun, _) in pairwise(spans):
        assert begun == ended - timedelta(seconds=OVERLAP)


def test_what_shows_late_is_found_by_the_next_listing(ledger: Ledger, tenant: Tenant) -> None:
    listed(tenant)
    ledger.made("cr_9", ago=30)
    listed(tenant)
    assert gaps(tenant) == ["cr_9"], "it had happened before the first listing and showed after it"


def test_every_page_is_read(ledger: Ledger, tenant: Tenant) -> None:
    for number in range(5):
        ledger.made(f"cr_{number}", ago=-300)
    listed(tenant)
    assert gaps(tenant) == [f"cr_{number}" for number in range(5)]


def test_what_lies_outside_of_the_interval_is_not_asked_about(ledger: Ledger, tenant: Tenant) -> None:
    ledger.made("cr_old", ago=7200)
    ledger.made("cr_future", ago=-7200)
    listed(tenant)
    assert gaps(tenant) == []


# --- could not list is never clean ----------------------------------------------------------------------------


def breaks() -> None:
    raise RuntimeError("quiet-harbour")


def test_a_listing_that_fails_moves_nothing_forward_and_is_tried_again(ledger: Ledger, tenant: Tenant) -> None:
    before = where(tenant).listed_until
    ledger.does = breaks
    ledger.made("cr_9", ago=-300)
    listed(tenant)
    stands = where(tenant)
    assert (stands.listed_until, stands.failures, asked(tenant)) == (before, 1, [])
    assert "RuntimeError" in stands.failure
    assert "quiet-harbour" not in stands.failure
    ledger.does = lambda: None
    listed(tenant, 61)
    assert (gaps(tenant), where(tenant).failures) == (["cr_9"], 0)


@pytest.mark.parametrize(
    "odd",
    [
        {"external_id": "x" * 300}, {"external_id": "a\0b"}, {"external_id": "a\ud800"}, {"reference": "r\0"},
        {"key": "k\ud800"}, {"record": {"amount": Decimal(1), "at": math.nan, "more": {1, 2}}},
    ],
)  # fmt: skip
def test_a_listing_with_odd_text_or_values_is_a_listing(ledger: Ledger, tenant: Tenant, odd: dict[str, Any]) -> None:
    ledger.made("cr_9", ago=-300)
    ledger.effects = [replace(one, **odd) for one in ledger.effects]
    listed(tenant)
    assert (len(gaps(tenant)), where(tenant).failures) == (1, 0)


@pytest.mark.parametrize(
    "wrong", [{"external_id": 7}, {"reference": 8}, {"reference": None}, {"key": [1]}, {"at": 5}]
)
def test_a_listing_whose_parts_are_no_text_cannot_be_used(
    ledger: Ledger, tenant: Tenant, wrong: dict[str, Any]
) -> None:
    ledger.made("cr_9", ago=-300)
    ledger.effects = [replace(one, **wrong) for one in ledger.effects]
    listed(tenant)
    assert (gaps(tenant), where(tenant).failures) == ([], 1)


def test_a_listing_that_cannot_be_compared_is_a_failure_like_any_other(
    ledger: Ledger, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gap_rows, "compare", lambda *_: breaks())
    for _ in range(3):
        listed(tenant, EVERY)
    assert asked(tenant) == [("gap", "effects_unlisted", "billing-support")]
    assert where(tenant).failure == "What it lists could not be compared: RuntimeError."


def test_after_a_few_failures_a_person_is_asked_and_it_goes_on_more_slowly(ledger: Ledger, tenant: Tenant) -> None:
    ledger.does = breaks
    listed(tenant)
    for _ in range(5):
        listed(tenant, EVERY)
    assert asked(tenant) == [("gap", "effects_unlisted", "billing-support")]
    assert len(ledger.asked) <= 6
    ledger.does = lambda: None
    listed(tenant)
    assert asked(tenant) == []
    with wall.within(tenant.pk):
        assert [run.state for run in Run.objects.filter(origin="outside")] == ["completed"]


def test_more_pages_than_agreed_and_a_page_that_repeats_are_no_listing(
    ledger: Ledger, tenant: Tenant, agent: Agent
) -> None:
    register(agent, manifest(max_pages=2))
    for number in range(5):
        ledger.made(f"cr_{number}", ago=-300)
    listed(tenant)
    assert (gaps(tenant), where(tenant).failures) == ([], 1)
    assert "more than 2 pages" in where(tenant).failure


def test_what_is_too_long_for_one_listing_is_listed_piece_by_piece_until_nothing_is_left(
    ledger: Ledger, tenant: Tenant, agent: Agent
) -> None:
    register(agent, manifest(max_pages=2))
    ledger.heeds = True
    for number in range(12):
        ledger.made(f"cr_{number}", ago=-10 - 50 * number)
    listed(tenant)
    first = where(tenant)
    assert (first.failures, first.due_at) == (0, now() + timedelta(minutes=1))
    assert 0 < len(gaps(tenant)) < 12
    ends = [first.listed_until]
    while len(ends) < 10 and len(gaps(tenant)) < 12:
        listed(tenant, 61)
        ends.append(where(tenant).listed_until)
    assert sorted(gaps(tenant)) == sorted(f"cr_{number}" for number in range(12))
    assert ends == sorted(set(ends)), "each piece goes on from the last one"


def test_an_interval_that_fits_in_no_half_is_said_and_the_asking_ends(
    ledger: Ledger, tenant: Tenant, agent: Agent
) -> None:
    register(agent, manifest(max_pages=2))
    ledger.heeds = True
    for number in range(5):
        ledger.made(f"cr_{number}", ago=-1)
    before = where(tenant).listed_until
    listed(tenant)
    assert (where(tenant).listed_until, where(tenant).failures) == (before, 1)
    assert len(ledger.asked) == 2 * (1 + HALVINGS)
    for _ in range(2):
        listed(tenant, EVERY)
    assert asked(tenant) == [("gap", "effects_unlisted", "billing-support")]


def test_two_workers_list_once(ledger: Ledger, tenant: Tenant) -> None:
    advance_clock(seconds=EVERY + 1)
    one = where(tenant).pk
    ledger.does = lambda: outside.execute(one)
    outside.execute(one)
    assert len(ledger.asked) == 1


def test_a_worker_that_died_in_it_is_followed_by_another(ledger: Ledger, tenant: Tenant) -> None:
    advance_clock(seconds=EVERY + 1)
    with wall.within(tenant.pk):
        OutsideSweep.objects.update(lease_until=now() + timedelta(seconds=30), fence=7)
    listed(tenant, 1)
    assert ledger.asked == []
    listed(tenant, 61)
    assert len(ledger.asked) == 1


def test_a_version_that_lists_no_more_ends_it(ledger: Ledger, tenant: Tenant, agent: Agent) -> None:
    quiet = manifest()
    del quiet["connectors"][books.NAME]["lists"]
    register(agent, quiet)
    with wall.within(tenant.pk):
        OutsideSweep.objects.update(workflow=Workflow.objects.latest("version"))
    listed(tenant)
    assert (ledger.asked, where(tenant).due_at) == ([], None)


def test_a_person_closes_the_question_and_no_agent_can_go_on_with_it(
    ledger: Ledger, tenant: Tenant, agent: Agent, alice: Person
) -> None:
    ledger.made("cr_9", ago=-300)
    listed(tenant)
    with wall.within(tenant.pk):
        task = HumanTask.objects.get(kind="gap")
    case = Case(agent, task.run_id, workflow_id="")
    seen = panel(case, alice, task)
    assert not seen.verb("resume").allowed
    assert seen.verb("cancel").label == "Close the question"
    assert "What was found stays as it is in the other system." in seen.verb("cancel").sentence
    press("cancel", case, alice, reason="A colleague did it by hand: SUP-7.")
    assert (standing(case)[0], open_tasks(case)) == ("cancelled", [])
    assert "gap_found" in kinds(case)


def test_F029_a_lost_reply_whose_effect_is_listed_is_proven_by_it_and_the_rest_is_compared(
    ledger: Ledger, tenant: Tenant, agent: Agent
) -> None:
    """The listing's record fits the call in every field, so it proves what a look would (7a)."""
    case = open_run(agent)
    lose_the_reply(case)
    record = {name: (case.action().arguments or {})[name] for name in books.FIELDS}
    at = now() + timedelta(seconds=300)
    ledger.effects += [Listed("cr_1", at, case.action().action_id, "", record), Listed("cr_x", at, "", "")]
    listed(tenant)
    action = case.action()
    assert (action.state, action.external_id, action.reason_code) == ("succeeded", "cr_1", "completed_reconciled")
    assert propose(case).result == record, "an agent that comes back has what the call returned"
    assert gaps(tenant) == ["cr_x"]
    assert where(tenant).failures == 0
