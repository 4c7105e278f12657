"""One write for one piece of business, whatever its other arguments are and whichever run asks (I9, F088)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from runs import wall
from runs.ids import new_id
from runs.models import Action
from tests.factories import ARGUMENTS, Agent, Case, open_run, propose, refuse, register, reply, report, timed_out
from tests.failures.conftest import Opener, manifest
from tests.recovery.stories import Looks, tries


@pytest.fixture
def once(agent: Agent) -> Case:
    register(agent, manifest(once_per=["invoice"]))
    return open_run(agent)


def credit(case: Case, **changes: Any) -> Any:
    return propose(case, "apply_credit", ARGUMENTS["apply_credit"] | changes)


def test_F088_a_second_amount_for_the_same_invoice_is_refused_after_the_first_is_proven(once: Case) -> None:
    report(once, credit(once), reply({"credit_id": "cr_1"}), tool="apply_credit")
    second = credit(once, amount_minor=12_001)
    assert (second.answer, second.error.code, second.error.field) == ("deny", "policy_denied", "invoice")
    assert credit(once).answer == "replay"
    assert len(tries(once)) == 1


def test_another_run_of_the_tenant_is_refused_too(once: Case, agent: Agent) -> None:
    report(once, credit(once), timed_out(), tool="apply_credit")
    other = open_run(agent)
    assert credit(other, amount_minor=1).answer == "deny"
    assert tries(other) == []


def test_another_invoice_is_another_piece_of_business(once: Case, agent: Agent) -> None:
    report(once, credit(once), reply({"credit_id": "cr_1"}), tool="apply_credit")
    assert credit(open_run(agent), invoice="INV-2").answer == "execute"


def test_what_was_refused_does_not_stand_for_its_business(once: Case, agent: Agent) -> None:
    refuse(once)
    assert credit(open_run(agent)).answer == "execute"


def test_the_database_holds_it_where_code_would_not(once: Case, agent: Agent) -> None:
    credit(once)
    with wall.within(once.tenant.pk):
        twin = Action.objects.get(run_id=once.run_id)
        twin.pk, twin.action_id, twin.arguments_hash = new_id(), "0" * 64, "1" * 64
        with pytest.raises(IntegrityError), transaction.atomic():
            twin.save(force_insert=True)


def test_without_the_promise_a_second_amount_is_a_second_credit(opened: Opener, looks: Looks) -> None:
    case = opened()
    report(case, credit(case), reply({"credit_id": "cr_1"}), tool="apply_credit")
    assert credit(case, amount_minor=11_999).answer == "execute"
