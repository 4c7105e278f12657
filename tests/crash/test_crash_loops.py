"""Every worker dies at the same step: the ceiling ends it, a person gets it, and whoever comes later works on."""

from __future__ import annotations

import pytest
from redis import Redis

from runs.models import Action
from tests.crash.case import ROUND_SECONDS, CreditCase, few_looks
from tests.crash.test_every_point import lose_the_reply
from tests.crash.test_poison_messages import QUEUE
from tests.recovery.invariants import broken
from tests.recovery.rebuild import differing
from tests.stack import Stack, wait_for
from tests.stories.billing import Agent
from tests.stories.telling import credits, open_tasks, press_check, settled

MOST_LOOKS = 2
MOST_BEGUN = MOST_LOOKS + 1
"""The contract's ceiling, and the one look that is kept for when it proves something."""

pytestmark = pytest.mark.usefixtures("disarmed")


def test_F020_a_look_that_kills_every_worker_ends_with_a_person(stack: Stack, agent: Agent) -> None:
    case = CreditCase(stack, agent, changes={"made": few_looks})
    lose_the_reply(case)
    stack.arm("C20", always=True)
    for begun in range(1, MOST_BEGUN + 1):
        stack.later(ROUND_SECONDS)
        stack.sweep_until(lambda n=begun: call(case).looks >= n, f"worker {begun} to begin")  # type: ignore[misc]
        stack.wait_died("C20", times=begun)
    stack.later(ROUND_SECONDS)
    stack.sweep_until(lambda: call(case).state == "held", "the last word")
    assert call(case).looks == MOST_BEGUN
    assert open_tasks(stack, str(case.run.pk)) == [("reconcile_write", "external_outcome_unknown")]
    assert [one.number for one in case.tries()] == [1]
    assert len(credits(stack, agent)) == 1
    assert (broken(stack.tenant.pk), differing(stack.tenant.pk)) == ({}, {})


def call(case: CreditCase) -> Action:
    (only,) = case.calls()
    return only


def test_F020_what_killed_a_worker_is_not_handed_to_the_next_one_at_once(case: CreditCase) -> None:
    """The message goes with its worker, before the lease as after it; only the sweep rings again."""
    stack = case.stack
    lose_the_reply(case)
    # An older order that was rung twice would die at the same point, and be counted.
    broker = Redis(unix_socket_path=str(stack.broker_socket))
    wait_for(lambda: not broker.llen(QUEUE) and not broker.hlen("unacked"), "older messages to be worked off")
    stack.arm("C19", always=True)
    decision = press_check(stack, str(case.run.pk))
    stack.wait_died("C19")
    with pytest.raises(AssertionError, match="waited"):
        wait_for(lambda: len(stack.graves()) > 1, "a second death", patience=2)
    assert not settled(stack, decision)
    stack.disarm()
    case.go_on()
    case.holds()
