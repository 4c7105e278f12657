"""One verb for many tasks: the list is frozen, each item has one outcome, and nothing is done twice or hidden."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from recovery import permissions
from recovery.models import BulkItem, BulkOperation
from recovery.rules import bulk as rules
from recovery.work import bulk, bulk_run, bulk_sight, decisions, looks, sweep, worker
from recovery.work.bulk import Pace, Wish
from runs import wall
from runs.models import Event, Person, Tenant
from runs.querysets import read_clock
from tests.factories import (
    Agent,
    Case,
    advance_clock,
    billing_manifest,
    finish,
    lose_the_reply,
    make_client,
    make_person,
    make_tenant,
    open_run,
    register,
    unknown_credit,
)
from tests.failures.test_sweep_together import lost_leases
from tests.recovery.stories import ABSENT, SILENT, Looks, effects, present, press, waiting


def quiet(_: uuid.UUID) -> None:
    """A bell that nobody hears: the sweep finds what is due."""


def unknown(agent: Agent, many: int) -> list[Case]:
    register(agent, billing_manifest(first_look_seconds=300))
    cases = [open_run(agent) for _ in range(many)]
    for case in cases:
        lose_the_reply(case)
    return cases


def frozen(cases: list[Case], by: Person, verb: str = "reconcile", key: str = "") -> BulkOperation:
    ids = [case.task().pk for case in cases]
    wish = Wish(verb, ids, "All tasks of a test", "?view=unknown", key or uuid.uuid4().hex)
    return bulk.freeze(by, cases[0].tenant.pk, wish, ring=quiet)


def started(operation: BulkOperation, by: Person, **pace: Any) -> BulkOperation:
    told = {"reason": "After the incident.", "canary": 0, "rate": 3000, "stop_after": 5, **pace}
    operation = now(operation)
    return bulk.start(
        by, operation.tenant_id, operation.pk, Pace(**told), version=operation.version, key=uuid.uuid4().hex,
        ring=quiet,
    )  # fmt: skip


def now(operation: BulkOperation) -> BulkOperation:
    with wall.within(operation.tenant_id):
        return BulkOperation.objects.select_related("changed_by").get(pk=operation.pk)


def items(operation: BulkOperation) -> list[BulkItem]:
    with wall.within(operation.tenant_id):
        return list(operation.items.select_related("decision", "task").order_by("place"))


def told(operation: BulkOperation) -> list[str]:
    return [item.state for item in items(operation)]


def kinds(operation: BulkOperation) -> list[str]:
    return [item.kind for item in items(operation)]


def move(operation: BulkOperation, by: Person, what: str, key: str = "", version: int | None = None) -> BulkOperation:
    operation = now(operation)
    more = {"ring": quiet} if what == "resume" else {}
    at = operation.version if version is None else version
    return getattr(bulk, what)(
        by, operation.tenant_id, operation.pk, version=at, key=key or uuid.uuid4().hex, **more
    )  # fmt: skip


def run_on(operation: BulkOperation, passes: int = 1) -> BulkOperation:
    """So many passes of a worker, a few seconds apart; what was ordered is looked up between them."""
    for _ in range(passes):
        bulk_run.execute(operation.pk, ring=quiet)
        looks.execute_many(waiting(operation.tenant_id))
        advance_clock(seconds=6)
        sweep.sweep(ring=quiet)
    return now(operation)


def life(operation: BulkOperation) -> list[str]:
    with wall.within(operation.tenant_id):
        found = Event.objects.filter(kind__startswith="bulk_").order_by(*Event.IN_ORDER)
        return [one.kind for one in found if one.data["operation"] == str(operation.pk)]


# --- the frozen list -------------------------------------------------------------------------------------------


def test_U01_the_list_is_frozen_and_a_task_that_comes_later_is_not_on_it(agent: Agent, omar: Person) -> None:
    cases = unknown(agent, 3)
    operation = frozen(cases, omar)
    unknown(agent, 1)
    assert (operation.state, operation.verb, operation.by) == ("created", "reconcile", omar)
    assert [item.task_id for item in items(operation)] == [case.task().pk for case in cases]
    assert [item.task_version for item in items(operation)] == [case.task().version for case in cases]
    assert all(item.evidence_hash and item.workflow_id for item in items(operation))
    assert kinds(operation) == ["will_run"] * 3


def test_what_was_frozen_cannot_be_written_again(agent: Agent, omar: Person) -> None:
    operation = frozen(unknown(agent, 1), omar)
    for rows, changes in (
        (BulkItem.objects, {"task_version": 9}),
        (BulkItem.objects, {"place": 9}),
        (BulkOperation.objects, {"verb": "cancel"}),
        (BulkOperation.objects, {"words": "Something else"}),
    ):
        with refused(operation):
            rows.update(**changes)
    with refused(operation):
        BulkItem.objects.all().delete()


@contextmanager
def refused(operation: BulkOperation) -> Iterator[None]:
    with pytest.raises(DatabaseError, match="permission denied"), wall.within(operation.tenant_id):
        yield


def test_U07_a_double_click_freezes_one_list_and_starts_it_once(agent: Agent, omar: Person) -> None:
    cases, key = unknown(agent, 2), uuid.uuid4().hex
    assert frozen(cases, omar, key=key).pk == frozen(cases, omar, key=key).pk
    operation, twice = frozen(cases, omar, "claim", key=uuid.uuid4().hex), uuid.uuid4().hex
    pace = Pace("Because.", 0, 60, 1)
    for _ in range(2):
        bulk.start(omar, agent.tenant.pk, operation.pk, pace, version=operation.version, key=twice, ring=quiet)
    assert life(operation) == ["bulk_frozen", "bulk_started"]


def test_a_key_that_froze_another_list_freezes_nothing_for_anybody_else(
    agent: Agent, omar: Person, alice: Person
) -> None:
    cases, key = unknown(agent, 1), uuid.uuid4().hex
    frozen(cases, omar, key=key)
    with pytest.raises(bulk.Refused, match="sent already, for something else"):
        frozen(cases, alice, key=key)


# --- the dry run -----------------------------------------------------------------------------------------------


def test_the_dry_run_says_of_each_task_what_would_become_of_it(
    agent: Agent, omar: Person, alice: Person, looks: Looks
) -> None:
    ready, held, doubtful = unknown(agent, 3)
    over = finish_early(agent)
    press("claim", held, alice)
    assert kinds(frozen([ready, held, over], omar)) == ["will_run", "blocked", "already_done"]
    assert kinds(frozen([ready, held, over], omar, "resume")) == ["check_first", "blocked", "will_run"]
    assert kinds(frozen([doubtful], omar, "retry")) == ["check_first"]
    press("cancel", over, omar)
    assert kinds(frozen([over], omar, "cancel")) == ["already_done"]
    sentences = [item.sentence for item in items(frozen([held], omar))]
    assert sentences[0].startswith("Alice holds this task until")


def finish_early(agent: Agent) -> Case:
    """A run that ended its work without a required effect: its task is about the run."""
    case = open_run(agent)
    finish(case)
    return case


def test_a_worker_goes_on_with_the_dry_run_of_a_long_list_and_it_cannot_be_started_before(
    agent: Agent, omar: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_sight, "BATCH", 2)
    monkeypatch.setattr(bulk, "FIRST", 2)
    operation = frozen(unknown(agent, 5), omar)
    assert kinds(operation) == ["will_run", "will_run", "", "", ""]
    with pytest.raises(bulk.Refused, match="The dry run is not through yet"):
        started(operation, omar)
    rung: list[uuid.UUID] = []
    sweep.sweep(ring=rung.append)
    assert operation.pk in rung
    worker.execute(operation.pk)
    assert kinds(operation) == ["will_run"] * 5
    assert started(operation, omar).state == "running"


def test_a_right_that_is_lost_is_not_permitted(agent: Agent, tenant: Tenant, omar: Person) -> None:
    cases = unknown(agent, 1)
    operation = frozen(cases, omar, "retry")
    with wall.within(tenant.pk):
        BulkItem.objects.update(kind="")
    omar.groups.clear()
    permissions.grant_role(omar, tenant, "support")
    bulk_sight.look(tenant.pk, operation.pk, most=10)
    assert kinds(operation) == ["not_permitted"]


# --- each item when it runs ----------------------------------------------------------------------------------


def test_every_item_has_one_outcome_and_the_totals_add_up_at_every_moment(
    agent: Agent, omar: Person, looks: Looks
) -> None:
    looks.say(present(), ABSENT)
    cases = unknown(agent, 4)
    operation = started(frozen(cases, omar), omar, rate=12)
    for _ in range(7):
        operation = run_on(operation)
        with wall.within(operation.tenant_id):
            assert sum(bulk_run.counts(operation).values()) == 4
    assert operation.state == "done"
    assert {item.code for item in items(operation)} <= {"present", "absent", "absent_final"}
    assert life(operation) == ["bulk_frozen", "bulk_started", "bulk_ended"]
    assert [one.request_id for one in decided(agent)] == [f"bulk-{operation.pk.hex}"] * 4


def decided(agent: Agent) -> list[Event]:
    with wall.within(agent.tenant.pk):
        return list(Event.objects.filter(kind="verb_reconcile"))


def test_U01_a_task_that_changed_since_the_freeze_is_skipped_with_the_cause(
    agent: Agent, omar: Person, alice: Person, looks: Looks
) -> None:
    looks.say(present())
    cases = unknown(agent, 4)
    operation = frozen(cases, omar)
    press("claim", cases[1], alice)
    press("comment", cases[2], alice)
    press("cancel", cases[3], alice)
    operation = run_on(started(operation, omar), 3)
    assert operation.state == "partly_done"
    assert told(operation) == ["done", "skipped", "done", "skipped"]
    [_, held, _, ended] = items(operation)
    assert held.code == "changed"
    assert held.words.startswith("Alice chose “Claim” at")
    assert held.words.endswith("after the list was frozen.")
    assert "Alice chose “Cancel the run”" in ended.words
    assert effects(cases[1]) == []


@pytest.mark.parametrize("verb", ["claim", "release", "comment"])
def test_U01_no_verb_is_too_small_to_be_overtaken(agent: Agent, omar: Person, alice: Person, verb: str) -> None:
    cases = unknown(agent, 2)
    if verb == "release":
        for case in cases:
            press("claim", case, omar)
    operation = frozen(cases, omar, verb)
    press("snooze" if verb != "release" else "claim", cases[0], omar, until=read_clock() + timedelta(hours=1))
    operation = run_on(started(operation, omar), 1)
    assert told(operation) == ["skipped", "done"]
    assert items(operation)[0].code == "changed"


def test_I13_a_right_that_was_lost_since_suspends_it_and_nothing_is_done(
    agent: Agent, omar: Person, looks: Looks
) -> None:
    operation = started(frozen(unknown(agent, 3), omar), omar)
    omar.groups.clear()
    operation = run_on(operation)
    assert (operation.state, told(operation)) == ("suspended", ["pending"] * 3)
    assert operation.why == "Omar may no longer do this: your role does not include this."


def test_an_item_that_breaks_is_failed_with_a_code_and_keeps_none_of_the_others(
    agent: Agent, omar: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = unknown(agent, 5)
    operation, real, bad = started(frozen(cases, omar, "claim"), omar), decisions.DOES["claim"], cases[2].task().pk

    def claim(seen: Any, *about: Any) -> Any:
        if seen.task.pk == bad:
            raise ValueError("this one breaks")
        return real(seen, *about)

    monkeypatch.setitem(decisions.DOES, "claim", claim)
    operation = run_on(operation)
    assert told(operation) == ["done", "done", "failed", "done", "done"]
    assert (items(operation)[2].code, operation.state) == ("error", "partly_done")
    assert items(operation)[2].words == "It broke (ValueError). Nothing was recorded or sent."
    assert [case.task().state for case in cases] == ["claimed", "claimed", "open", "claimed", "claimed"]


@pytest.mark.parametrize(
    ("verb", "state"), [("snooze", "open"), ("claim", "claimed"), ("cancel", "open"), ("comment", "open")]
)
def test_other_verbs_do_in_bulk_what_they_do_alone(
    agent: Agent, omar: Person, verb: str, state: str, looks: Looks
) -> None:
    until = (read_clock() + timedelta(hours=2)).isoformat()
    cases = unknown(agent, 3)
    more = {"until": until} if verb == "snooze" else {}
    operation = run_on(started(frozen(cases, omar, verb), omar, more=more), 1)
    assert (operation.state, told(operation)) == ("done", ["done"] * 3)
    assert [case.task().state for case in cases] == [state] * 3
    assert {item.decision.verb for item in items(operation) if item.decision} == {verb}


# --- the canary ------------------------------------------------------------------------------------------------


def test_the_canary_goes_first_and_a_look_up_that_fails_in_it_stops_the_operation(
    agent: Agent, omar: Person, looks: Looks
) -> None:
    looks.say(SILENT)
    operation = started(frozen(unknown(agent, 5), omar), omar, canary=2)
    operation = run_on(operation, 3)
    assert operation.state == "suspended"
    assert operation.why.startswith(f"The canary met something unexpected at T-{items(operation)[0].task.number}:")
    assert told(operation) == ["failed", "failed", "pending", "pending", "pending"]
    assert [item.begun_at is None for item in items(operation)] == [False, False, True, True, True]
    assert items(operation)[0].code == "probe_failed"


def test_nothing_else_is_begun_before_the_canary_is_answered(agent: Agent, omar: Person, looks: Looks) -> None:
    looks.say(present())
    operation = started(frozen(unknown(agent, 5), omar), omar, canary=2)
    bulk_run.execute(operation.pk, ring=quiet)
    assert [item.begun_at is None for item in items(operation)] == [False, False, True, True, True]
    operation = run_on(operation, 4)
    assert operation.state == "done"


def test_a_refused_canary_stops_it_after_one_and_going_on_is_a_persons_decision(
    agent: Agent, omar: Person, alice: Person
) -> None:
    cases = unknown(agent, 4)
    operation = frozen(cases, omar, "claim")
    press("claim", cases[0], alice)
    operation = run_on(started(operation, omar, canary=3), 2)
    assert (operation.state, told(operation)) == ("suspended", ["skipped", "pending", "pending", "pending"])
    sweep.sweep(ring=quiet)
    assert now(operation).state == "suspended"
    operation = run_on(move(operation, omar, "resume"), 3)
    assert (operation.state, told(operation)) == ("partly_done", ["skipped", "done", "done", "done"])
    assert life(operation) == ["bulk_frozen", "bulk_started", "bulk_suspended", "bulk_resumed", "bulk_ended"]


def test_too_many_failures_after_the_canary_suspend_it(agent: Agent, omar: Person, looks: Looks) -> None:
    looks.say(present(), SILENT)
    operation = run_on(started(frozen(unknown(agent, 6), omar), omar, canary=1, stop_after=2, rate=24), 5)
    assert operation.state == "suspended"
    assert operation.why == "2 items failed, the limit is 2."


# --- suspend, resume, stop -----------------------------------------------------------------------------------


def test_suspended_nothing_is_begun_and_what_was_under_way_is_still_taken_in(
    agent: Agent, omar: Person, alice: Person, looks: Looks
) -> None:
    looks.say(present())
    operation = started(frozen(unknown(agent, 4), omar), omar, rate=12)
    bulk_run.execute(operation.pk, ring=quiet)
    operation = move(operation, omar, "suspend")
    operation = run_on(run_on(operation), 2)
    assert (operation.state, told(operation)) == ("suspended", ["done", "pending", "pending", "pending"])
    assert operation.due_at is None, "nothing is left to be done by itself"
    operation = run_on(move(operation, alice, "resume"), 6)
    assert operation.state == "done"


def test_stopping_undoes_nothing_and_begins_nothing(agent: Agent, omar: Person) -> None:
    cases = unknown(agent, 3)
    operation = run_on(started(frozen(cases, omar, "claim"), omar, rate=12))
    operation = move(operation, omar, "stop")
    operation = run_on(operation, 2)
    assert (operation.state, told(operation)) == ("cancelled", ["done", "pending", "pending"])
    assert cases[0].task().state == "claimed"
    with pytest.raises(bulk.Refused, match="Omar stopped it at"):
        move(operation, omar, "resume")


def test_U07_F117_a_second_click_is_the_first_one_and_an_older_page_moves_nothing(
    agent: Agent, omar: Person, alice: Person
) -> None:
    operation = started(frozen(unknown(agent, 3), omar), omar)
    key, version = uuid.uuid4().hex, now(operation).version
    for _ in range(2):
        move(operation, omar, "suspend", key=key, version=version)
    with pytest.raises(bulk.Refused, match=r"Omar suspended it at .* Your click changed nothing"):
        move(operation, alice, "stop", version=version)
    assert life(operation) == ["bulk_frozen", "bulk_started", "bulk_suspended"]


# --- who may, and how many -------------------------------------------------------------------------------------


def test_SEC_06_support_may_do_few_at_once_and_on_call_many(
    agent: Agent, omar: Person, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recovery.rules.bulk.FEW", 2)
    cases = unknown(agent, 3)
    assert frozen(cases[:2], alice).state == "created"
    with pytest.raises(bulk.Refused, match="at most 2 tasks at once"):
        frozen(cases, alice)
    assert frozen(cases, omar).state == "created"
    with pytest.raises(bulk.Refused, match="Your role does not include this"):
        frozen(cases[:1], make_person("bob", agent.tenant, "viewer"))
    with pytest.raises(bulk.Refused, match="does not include this"):
        frozen(cases[:1], alice, "retry")


def test_a_list_has_a_ceiling(agent: Agent, omar: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recovery.rules.bulk.MOST_ITEMS", 2)
    with pytest.raises(bulk.Refused, match=r"at most 2 tasks. Narrow the selection"):
        frozen(unknown(agent, 3), omar)


@pytest.mark.parametrize("verb", ["compensate", "attest", "waive", "approve"])
def test_what_takes_a_look_at_each_one_is_never_done_in_bulk(agent: Agent, omar: Person, verb: str) -> None:
    with pytest.raises(bulk.Refused, match="never done in bulk"):
        frozen(unknown(agent, 1), omar, verb)


def test_F132_F122_a_task_of_another_tenant_is_on_no_list(agent: Agent, omar: Person) -> None:
    cases = unknown(agent, 2)
    stranger = make_tenant("south")
    theirs = make_client(stranger)
    register(theirs)
    foreign = unknown_credit(theirs).task().pk
    wish = Wish("claim", [foreign, *(case.task().pk for case in cases)], "A mix", "?", uuid.uuid4().hex)
    operation = run_on(started(bulk.freeze(omar, agent.tenant.pk, wish, ring=quiet), omar))
    assert told(operation) == ["done", "done"]
    with wall.within(stranger.pk):
        assert not BulkItem.objects.exists()
    with pytest.raises(bulk.NoSuchOperation):
        bulk.stop(omar, stranger.pk, operation.pk, version=0, key="a" * 32)


# --- the pace, and two at once ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "last_minute", "last_moments", "most"),
    [(60, 0, 0, 5), (60, 58, 1, 2), (60, 60, 0, 0), (60, 20, 5, 0), (1, 0, 0, 1), (1, 1, 0, 0), (3000, 0, 0, 250)],
)
def test_the_rate_is_kept_in_every_minute_and_spread_over_it(
    rate: int, last_minute: int, last_moments: int, most: int
) -> None:
    assert rules.begin_now(rate, last_minute=last_minute, last_moments=last_moments) == most


def test_the_rate_is_kept_by_the_databases_clock(agent: Agent, omar: Person) -> None:
    operation = started(frozen(unknown(agent, 5), omar, "claim"), omar, rate=2)
    begun = []
    for _ in range(12):
        operation = run_on(operation)
        begun.append(sum(item.begun_at is not None for item in items(operation)))
    assert begun == [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 4]


def test_a_second_worker_finds_the_lease_taken_and_one_that_was_slow_begins_nothing(
    agent: Agent, omar: Person
) -> None:
    operation = started(frozen(unknown(agent, 2), omar, "claim"), omar)
    slow = bulk_run._take(operation.tenant_id, operation.pk)
    assert slow is not None
    bulk_run.execute(operation.pk, ring=quiet)
    assert told(operation) == ["pending", "pending"]
    advance_clock(minutes=3)
    other = bulk_run._take(operation.tenant_id, operation.pk)
    assert other is not None
    bulk_run._begin(slow, quiet)
    assert told(operation) == ["pending", "pending"]
    bulk_run._begin(other, quiet)
    assert told(operation) == ["done", "done"]


def test_the_sweep_rings_for_what_is_due_and_for_nothing_else(agent: Agent, omar: Person) -> None:
    operation = started(frozen(unknown(agent, 1), omar, "claim"), omar)
    rung: list[uuid.UUID] = []
    sweep.sweep(ring=rung.append)
    sweep.sweep(ring=rung.append)
    assert rung.count(operation.pk) == 1
    run_on(operation)
    rung.clear()
    advance_clock(minutes=1)
    sweep.sweep(ring=rung.append)
    assert operation.pk not in rung


def test_the_worker_carries_out_a_bulk_operation_by_the_same_bell(
    agent: Agent, omar: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = started(frozen(unknown(agent, 1), omar, "claim"), omar)
    worker.execute(operation.pk)
    assert told(operation) == ["done"]


def test_400_unknown_writes_are_checked_in_one_operation_in_few_transactions(
    agent: Agent, omar: Person, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks.say(present())
    cases = lost_leases(agent, 400, first_look_seconds=3000)
    sweep.sweep(ring=quiet)
    with CaptureQueriesContext(connection) as asked:
        operation = frozen(cases, omar)
        while bulk_sight.look(agent.tenant.pk, operation.pk, most=100):
            pass
        operation = run_on(started(operation, omar, canary=3), 6)
    assert (operation.state, bulk_count(operation)) == ("done", {"done": 400})
    begun = sum((one["sql"] or "").startswith("SAVEPOINT") for one in asked)
    print(f"{begun} transactions, {len(asked)} statements")
    assert begun < 400
    assert all(effects(case) == ["apply_credit"] for case in cases[::40])


def test_what_the_dry_run_found_not_ready_is_not_tried_whatever_it_has_become_since(
    agent: Agent, omar: Person, alice: Person
) -> None:
    cases = unknown(agent, 2)
    press("claim", cases[0], alice)
    operation = started(frozen(cases, omar, "claim"), omar)
    assert [(item.state, item.code) for item in items(operation)] == [("skipped", "blocked"), ("pending", "")]
    press("release", cases[0], alice)
    run_on(operation)
    assert told(operation) == ["skipped", "done"]


def test_items_of_a_batch_share_its_transaction(agent: Agent, omar: Person, caplog: pytest.LogCaptureFixture) -> None:
    operation = started(frozen(unknown(agent, 6), omar), omar)
    with CaptureQueriesContext(connection) as asked:
        bulk_run.execute(operation.pk, ring=quiet)
    assert "halved" not in caplog.text
    assert sum((one["sql"] or "").startswith("SAVEPOINT") for one in asked) < 12
    assert all(item.decision for item in items(operation))


def bulk_count(operation: BulkOperation) -> dict[str, int]:
    with wall.within(operation.tenant_id):
        return bulk_run.counts(operation)
