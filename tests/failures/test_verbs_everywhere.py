"""Whatever a task is about, an admin may claim it and has a verb that acts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from recovery.rules import policy
from tests.factories import (
    Case,
    advance_clock,
    finish,
    lose_the_reply,
    make_person,
    propose,
    rate_limit,
    refuse,
    reply,
    report,
    succeed,
    timed_out,
    turn,
)
from tests.failures.conftest import Opener
from tests.recovery.stories import TWICE, Looks, look, panel, press, tasks

NO_LOOKS = {"reconcile": None}
SHORT = {"in_flight_seconds": 20, "lag_seconds": 5}


def lost(case: Case) -> None:
    turn(case)
    lose_the_reply(case)


def cancelled(case: Case) -> None:
    lost(case)
    press("cancel", case, make_person("mia", case.tenant))


def expired(case: Case) -> None:
    propose(case)
    advance_clock(hours=2)
    look(case)


def used_up(case: Case) -> None:
    for _ in range(3):
        rate_limit(case, "apply_credit", retry_after=0)
        advance_clock(minutes=1)


def vouched(case: Case) -> None:
    lost(case)
    press("attest", case, make_person("mia", case.tenant), outcome="present", reference="cr_1")


def counted_twice(case: Case) -> None:
    lost(case)
    advance_clock(seconds=30)
    look(case)


def read_used_up(case: Case) -> None:
    for _ in range(3):
        report(case, propose(case, "load_invoice"), timed_out())
        advance_clock(minutes=1)


def turns(case: Case) -> None:
    for _ in range(5):
        turn(case)


def input_wanted(case: Case) -> None:
    observation = reply({}, status=422).model_copy(
        update={"kind": "exception", "declared": "needs_input", "declared_field": "account", "status": None}
    )
    report(case, propose(case), observation)


@pytest.mark.parametrize(
    ("happens", "promises", "acts"),
    [
        (lost, {}, "reconcile"),
        (lost, NO_LOOKS, "attest"),
        (cancelled, {}, "reconcile"),
        (cancelled, NO_LOOKS, "attest"),
        (lambda case: propose(case), {"requires_approval": True}, "approve"),
        (expired, {"requires_approval": True, "budgets": {"max_elapsed_seconds": 3600}}, "cancel"),
        (used_up, {}, "replay"),
        (read_used_up, {}, "replay"),
        (vouched, NO_LOOKS, "approve"),
        (counted_twice, SHORT, "cancel"),
        (turns, {"budgets": {"max_turns": 4}}, "top_up"),
        (lambda case: finish(case), {}, "resume"),
        (lambda case: refuse(case, status=401), {}, "cancel"),
        (input_wanted, {}, "cancel"),
    ],
)
def test_every_open_task_leaves_an_admin_a_claim_and_a_verb_that_acts(
    opened: Opener, looks: Looks, happens: Callable[[Case], object], promises: dict[str, object], acts: str
) -> None:
    looks.say(TWICE)
    case = opened(**promises)
    succeed(case, "load_invoice") if happens is not read_used_up else None
    happens(case)
    ada = make_person("ada", case.tenant, "admin")
    waiting = [task for task in tasks(case) if task.state != "resolved"]
    assert waiting
    for task in waiting:
        allowed = {verb.name for verb in panel(case, ada, task).verbs if verb.allowed}
        assert acts in allowed, (task.kind, task.reason_code, allowed)
        assert "claim" in allowed or task.state == "awaiting_approval"
        assert allowed & set(policy.ACTING)
        assert {verb.name for verb in panel(case, ada, task).shown} >= allowed & set(policy.ACTING)
