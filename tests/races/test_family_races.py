"""A run and those that work for it, at the same moment: who holds one of them waits for no other for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection
from steadyhand.contract import Cancel, Turn, Usage

from recovery import intake
from recovery.work.sweep import sweep
from runs import record, wall
from tests.factories import Agent, Case, open_run, propose, register
from tests.races.together import at_once, waits_for_a_lock
from tests.recovery.stories import kinds, standing

pytestmark = pytest.mark.races
Later = Callable[[float], None]
ROUNDS = pytest.mark.parametrize("round_", range(3))


def nobody(decision_id: object) -> None:
    """A ring that nobody hears."""


def family(agent: Agent, of: int = 3) -> tuple[Case, list[Case]]:
    """A run and its sub-agents, each with a call whose lease has a while to go."""
    register(agent)
    parent = open_run(agent, scope={})
    children = [open_run(agent, scope={}, parent_run_id=str(parent.run_id)) for _ in range(of)]
    for number, case in enumerate([parent, *children]):
        sent = {"account": "a", "invoice": f"INV-{number}", "amount_minor": 1 + number, "currency": "EUR"}
        propose(case, arguments=sent)
    return parent, children


def test_F070_what_is_swept_waits_for_nobody_who_holds_its_parent(agent: Agent, later: Later) -> None:
    parent, children = family(agent)
    later(46)

    def in_no_time() -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '1s'")
        return sweep(ring=nobody)

    with wall.within(agent.tenant.pk):
        assert record.lock_run(parent.run_id) is not None
        (done,) = at_once(in_no_time)
    assert done["leases"] == len(children)
    assert [kinds(case).count("lease_expired") for case in (parent, *children)] == [0, 1, 1, 1]


def test_F136_a_cancel_of_a_deep_family_takes_the_order_of_whoever_locks_several_runs(agent: Agent) -> None:
    register(agent)
    above = open_run(agent, scope={})
    elder = open_run(agent, scope={}, parent_run_id=str(above.run_id))
    below = open_run(agent, scope={}, parent_run_id=str(elder.run_id))
    younger = open_run(agent, scope={}, parent_run_id=str(above.run_id))
    assert below.run_id < younger.run_id
    one_is_held = threading.Event()

    def somebody_leaves() -> None:
        with wall.within(agent.tenant.pk):
            assert record.lock_run(below.run_id) is not None
            one_is_held.set()
            assert waits_for_a_lock()
            assert record.lock_run(younger.run_id) is not None

    def cancel() -> None:
        assert one_is_held.wait(20)
        intake.cancel(agent.who, above.run_id, Cancel(reason="No."), request_id="t")

    assert at_once(somebody_leaves, cancel) == [None, None]
    assert {standing(case)[0] for case in (above, elder, below, younger)} == {"cancelled"}


@ROUNDS
def test_F136_a_cancel_above_beside_the_sweep_and_the_work_below(agent: Agent, later: Later, round_: int) -> None:
    parent, children = family(agent)
    later(46)
    cancel = partial(intake.cancel, agent.who, parent.run_id, Cancel(reason="No."), request_id="t")
    used = Turn(usage=Usage(input_tokens=5))
    turns = [partial(intake.turn, agent.who, one.run_id, used, request_id="t") for one in children]
    done = at_once(cancel, partial(sweep, ring=nobody), *turns, partial(sweep, ring=nobody))
    assert [one for one in done if isinstance(one, Exception)] == []
    sweep(ring=nobody)
    assert {standing(case)[0] for case in (parent, *children)} == {"cancelled"}
