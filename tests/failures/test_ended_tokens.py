"""A run whose agent is let in no more: nothing is sent for it, and nobody is told that it goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from recovery.models import DeadLetter
from recovery.work.decisions import Refused
from runs import wall
from runs.models import AgentClient, Person
from tests.factories import (
    Agent,
    Case,
    advance_clock,
    finish,
    make_person,
    open_run,
    propose,
    register,
    reply,
    report,
    turn,
)
from tests.failures.conftest import Opener
from tests.failures.outside import script_sends, stand_manifest
from tests.failures.test_dead_letters_two import over, spent
from tests.failures.test_host_calls import CREDITED, hosted
from tests.recovery.stories import Looks, kinds, look, open_tasks, panel, press, standing, tries

End = Callable[[Case], None]


def revoked(case: Case) -> None:
    _change(case, revoked_at=timezone.now())


def run_out(case: Case) -> None:
    _change(case, expires_at=F("created_at"))


def _change(case: Case, **changes: Any) -> None:
    with wall.within(case.tenant.pk):
        AgentClient.objects.filter(pk=case.agent.client.pk).update(**changes)


def settled(opened: Opener) -> Case:
    case = opened()
    finish(case)
    return case


def proven_absent(opened: Opener) -> Case:
    case = opened()
    report(case, propose(case), reply({}, status=401))
    return case


def out_of_turns(opened: Opener) -> Case:
    case = opened(budgets={"max_turns": 2})
    for _ in range(3):
        turn(case)
    return case


@pytest.mark.parametrize(("ends", "words"), [(revoked, "was ended"), (run_out, "has run out")])
@pytest.mark.parametrize(
    ("verb", "made"), [("replay", spent), ("resume", settled), ("retry", proven_absent), ("top_up", out_of_turns)]
)
def test_SEC_17_what_only_lets_the_agent_go_on_is_refused_with_a_sentence(
    opened: Opener, tenant: Any, verb: str, made: Callable[[Opener], Case], ends: End, words: str
) -> None:
    case, ada = made(opened), make_person("ada", tenant, "admin")
    assert panel(case, ada).verb(verb).allowed
    ends(case)
    asked = panel(case, ada).verb(verb)
    said = f"Blocked: the token of billing-agent {words}; nobody would go on with this run."
    assert (asked.allowed, asked.rule, asked.sentence) == (False, "agent", said)
    before = standing(case)
    with pytest.raises(Refused, match="nobody would go on"):
        press(verb, case, ada)
    assert (standing(case), kinds(case)[-1]) == (before, "refused")
    assert panel(case, ada).verb("cancel").allowed, "it can still be ended"


def test_SEC_17_a_second_word_comes_too_late_for_a_replay(opened: Opener, omar: Person, tenant: Any) -> None:
    ada = make_person("ada", tenant, "admin")
    case = over(opened, ada)
    press("replay", case, omar)
    revoked(case)
    with pytest.raises(Refused, match="the token of billing-agent was ended"):
        press("approve", case, ada)
    with wall.within(case.tenant.pk):
        assert DeadLetter.objects.get().state == "recorded"
    assert len(tries(case)) == 3


@pytest.mark.parametrize("answers", [(), (reply({}, status=429),)])
def test_SEC_17_what_the_worker_was_to_send_for_it_does_not_leave(
    opened: Opener, looks: Looks, omar: Person, monkeypatch: pytest.MonkeyPatch, answers: tuple[Any, ...]
) -> None:
    sends = script_sends(monkeypatch)
    case = hosted(opened)
    propose(case)
    if answers:
        sends.say(*answers)
        look(case)
    sends.say(CREDITED)
    revoked(case)
    for _ in range(3):
        advance_clock(seconds=60)
        look(case)
    assert len(sends.sent) == len(answers)
    advance_clock(hours=2)
    look(case)
    assert set(open_tasks(case)) == {("decide_next", "time_budget_exhausted")}
    press("cancel", case, omar)
    look(case)
    assert (standing(case)[0], len(sends.sent)) == ("cancelled", len(answers))


def test_SEC_17_what_it_did_is_still_taken_back(agent: Agent, omar: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    sends = script_sends(monkeypatch)
    sends.say(reply({"undo_id": "un_1"}))
    register(agent, stand_manifest(required_effects=["furnish"]))
    case = open_run(agent, scope={})
    paid = reply({"payment_id": "p_1"}, status=201)
    report(case, propose(case, "pay", {"amount_minor": 500}), paid, tool="pay")
    finish(case)
    revoked(case)
    press("compensate", case, omar)
    look(case)
    assert (sends.tools, standing(case)[0]) == (["refund"], "failed")
