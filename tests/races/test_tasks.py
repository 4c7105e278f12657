"""At one task at the same moment: two answers, an answer and the clock, two sweeps, two handovers; one counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from steadyhand.contract import Observation

from recovery import questions
from recovery.models import Decision, Handover, InputRequest
from recovery.work import decisions, inputs
from recovery.work.sweep import sweep
from runs import wall
from tests.factories import (
    Agent,
    Case,
    billing_manifest,
    lose_the_reply,
    make_person,
    open_run,
    propose,
    register,
    report,
    turn,
)
from tests.races.together import at_once
from tests.recovery.stories import kinds, open_tasks, order, press, standing

Later = Callable[[float], None]
ASKED = Observation(kind="exception", declared="needs_input", declared_field="account")


def asked(agent: Agent) -> tuple[Case, str]:
    """A call that waits for its requester, and the link to them."""
    register(agent, billing_manifest())
    case = open_run(agent, scope={})
    turn(case)
    report(case, propose(case), ASKED)
    decision = press("request_input", case, make_person("alice", case.tenant))
    link = questions.hand_out(case.tenant.pk, decision.snapshot["question"])
    assert link is not None
    return case, link


def answering(link: str, text: str) -> Callable[[], Any]:
    return lambda: inputs.answer(link, text, request_id="test")


def nobody(decision_id: object) -> None:
    """A ring that nobody hears."""


def test_of_two_answers_at_once_one_counts(agent: Agent) -> None:
    case, link = asked(agent)
    told = at_once(answering(link, "acct_1"), answering(link, "acct_2"))
    assert sorted(type(one).__name__ for one in told) == ["Closed", "NoneType"]
    assert kinds(case).count("input_provided") == 1
    with wall.within(case.tenant.pk):
        assert InputRequest.objects.filter(answered_at__isnull=False).count() == 1


def test_an_answer_and_the_end_of_its_time_have_one_winner(agent: Agent, later: Later) -> None:
    case, link = asked(agent)
    later(3599)
    later(1)
    told, _ = at_once(answering(link, "acct_1"), lambda: sweep(ring=nobody))
    sweep(ring=nobody)
    if told is None:
        assert (standing(case)[2], open_tasks(case)) in [(None, []), ("time_budget_exhausted", open_tasks(case))]
    else:
        assert isinstance(told, inputs.Closed)
        assert standing(case) == ("escalated", "needs_human", "input_deadline_passed")
    assert kinds(case).count("input_provided") + kinds(case).count("input_expired") == 1


def test_two_sweeps_at_once_mark_wake_and_remind_once(agent: Agent, later: Later) -> None:
    register(agent, billing_manifest(sla_seconds=60))
    case = open_run(agent)
    turn(case)
    lose_the_reply(case)
    register(agent, billing_manifest(requires_approval=True, sla_seconds=60) | {"approval_reminders": [0.01]})
    waits = open_run(agent)
    propose(waits)
    later(120)
    at_once(*[lambda: sweep(ring=nobody)] * 3)
    sweep(ring=nobody)
    assert [kinds(one).count("sla_breached") for one in (case, waits)] == [1, 1]
    assert kinds(waits).count("reminded") == 1


@pytest.mark.parametrize("round_", range(2))
def test_F117_of_two_handovers_at_once_one_counts(agent: Agent, round_: int) -> None:
    register(agent, billing_manifest())
    case = open_run(agent)
    turn(case)
    lose_the_reply(case)
    alice, omar = make_person("alice", case.tenant), make_person("omar", case.tenant, "oncall")
    to_omar = order(case, alice, to=str(omar.pk))
    to_alice = order(case, omar, to=str(alice.pk))
    told = at_once(lambda: decisions.assign(to_omar), lambda: decisions.assign(to_alice))
    assert sorted(type(one).__name__ for one in told) == ["Decision", "Overtaken"]
    assert kinds(case).count("verb_assign") == 1


@pytest.mark.parametrize("answer", ["decline", "withdraw", "claim"])
def test_F117_of_an_accept_and_what_ends_the_offer_one_counts(agent: Agent, answer: str) -> None:
    register(agent, billing_manifest())
    case = open_run(agent)
    turn(case)
    lose_the_reply(case)
    alice, omar = make_person("alice", case.tenant), make_person("omar", case.tenant, "oncall")
    press("assign", case, alice, to=str(omar.pk))
    other = {"decline": omar, "withdraw": alice, "claim": make_person("ada", case.tenant, "admin")}[answer]
    accept, end = order(case, omar), order(case, other)
    told = at_once(lambda: decisions.accept(accept), lambda: getattr(decisions, answer)(end))
    assert sorted(type(one).__name__ for one in told) in (["Decision", "Overtaken"], ["Decision", "Refused"])
    with wall.within(case.tenant.pk):
        state = Handover.objects.get().state
    won = isinstance(told[0], Decision)
    assert (state, case.task().claimed_by_id == omar.pk) == (
        ("accepted", True) if won else ({"decline": "declined"}.get(answer, "withdrawn"), False)
    )
