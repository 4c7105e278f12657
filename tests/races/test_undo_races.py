"""Two people, or a person and a machine, at the same undo or dead letter: it happens once (FAULTS H, F159)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from steadyhand.contract import Cancel

from recovery import intake, reading
from recovery.models import DeadLetter, Decision
from recovery.work import decisions, worker
from runs import wall
from runs.models import Action
from tests.factories import (
    Agent,
    Case,
    billing_manifest,
    finish,
    make_person,
    open_run,
    propose,
    register,
    reply,
    report,
    succeed,
)
from tests.failures.outside import Sends, script_sends, stand_manifest
from tests.races.together import at_once
from tests.recovery.stories import kinds, order, standing, tries, waiting

RESULTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "reserve": ({"stand": "A7"}, {"reservation_id": "rs_1"}),
    "pay": ({"amount_minor": 5000}, {"payment_id": "p_50"}),
}
Later = Callable[[float], None]
KEYED: Any = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"}


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> Sends:
    sends = script_sends(monkeypatch)
    sends.say(reply({"undo_id": "un_1"}))
    return sends


def booked(agent: Agent, **manifest: Any) -> Case:
    register(agent, stand_manifest(required_effects=["furnish"], **manifest))
    case = open_run(agent, scope={})
    for tool, (asked, answer) in RESULTS.items():
        report(case, propose(case, tool, asked), reply(answer, status=201), tool=tool)
    finish(case)
    return case


def undos(case: Case) -> int:
    with wall.within(case.tenant.pk):
        return Action.objects.filter(run_id=case.run_id, role="undo").count()


def test_I15_two_people_who_order_the_same_rollback_start_it_once(agent: Agent, sends: Sends) -> None:
    case = booked(agent)
    omar, ada = make_person("omar", case.tenant, "oncall"), make_person("ada", case.tenant, "admin")
    forms = [order(case, omar), order(case, ada)]
    ended = at_once(*[partial(decisions.compensate, form) for form in forms])
    assert sum(isinstance(one, Decision) for one in ended) == 1
    assert (undos(case), kinds(case).count("compensating")) == (1, 2)  # the run's, and that of the one effect


def test_I15_two_workers_at_the_same_undo_send_it_once(agent: Agent, sends: Sends) -> None:
    case = booked(agent)
    decisions.compensate(order(case, make_person("omar", case.tenant, "oncall")))
    [waits] = waiting(case.tenant.pk)
    at_once(*[partial(worker.execute, waits) for _ in range(3)])
    assert sends.tools.count("refund") == 1


UNSENT = ("cancelled", "cancelled", "cancelled_with_effects"), ["reserve"]
"""The cancel came first: the undo does not leave, and what it was for stands."""
SENT = ("cancelled", "cancelled", "cancelled_by_user"), []
"""The cancel came while the undo was out: its answer is waited for, and nothing stands."""
UNDONE = ("failed", "fatal", "not_applied"), []
"""The undo came first: the rollback is over, and there is nothing left to cancel."""


def rolled_back_to_the_last(agent: Agent) -> tuple[Case, Any, Callable[[], Any]]:
    """A rollback with one undo to go, the order for it, and a cancel of its run."""
    case = booked(agent)
    decisions.compensate(order(case, make_person("omar", case.tenant, "oncall")))
    [first] = waiting(case.tenant.pk)
    worker.execute(first)
    [last] = waiting(case.tenant.pk)
    cancel = partial(intake.cancel, case.agent.who, case.run_id, Cancel(reason="x"), request_id="t")
    return case, last, cancel


def came_to(case: Case) -> tuple[tuple[Any, ...], list[str]]:
    """How the run ended, once, and what stands of what it did."""
    assert len([kind for kind in kinds(case) if kind in ("failed", "cancelled")]) == 1
    with wall.within(case.tenant.pk):
        return standing(case), reading.completed_effects(case.run)


def test_F136_a_cancel_before_the_last_undo(agent: Agent, sends: Sends) -> None:
    case, last, cancel = rolled_back_to_the_last(agent)
    cancel()
    worker.execute(last)
    assert (came_to(case), sends.tools) == (UNSENT, ["refund"])


def test_F136_a_cancel_while_the_last_undo_is_out(agent: Agent, sends: Sends) -> None:
    case, last, cancel = rolled_back_to_the_last(agent)
    sends.meanwhile = cancel
    worker.execute(last)
    assert (came_to(case), sends.tools) == (SENT, ["refund", "release"])


def test_F136_a_cancel_after_the_last_undo(agent: Agent, sends: Sends) -> None:
    case, last, cancel = rolled_back_to_the_last(agent)
    worker.execute(last)
    cancel()
    assert (came_to(case), sends.tools) == (UNDONE, ["refund", "release"])


def test_F136_a_cancel_and_the_last_undo_at_once_come_in_one_of_these_orders(agent: Agent, sends: Sends) -> None:
    case, last, cancel = rolled_back_to_the_last(agent)
    raised = [one for one in at_once(partial(worker.execute, last), cancel) if isinstance(one, Exception)]
    left, cancelling = "release" in sends.tools, "cancelling" in kinds(case)
    assert left or cancelling
    assert came_to(case) == (UNSENT if not left else SENT if cancelling else UNDONE)
    assert (raised, sends.tools.count("release")) == ([], int(left))


def spent(agent: Agent, later: Later) -> Case:
    made = billing_manifest()
    next(tool for tool in made["tools"] if tool["name"] == "apply_credit").update(idempotency=KEYED, reconcile=None)
    register(agent, made)
    case = open_run(agent)
    succeed(case, "load_invoice")
    for _ in range(3):
        report(case, propose(case), reply({}, status=429))
        later(10)
    return case


def test_F159_two_people_who_replay_the_same_letter_permit_one_more_try(agent: Agent, later: Later) -> None:
    case = spent(agent, later)
    omar, ada = make_person("omar", case.tenant, "oncall"), make_person("ada", case.tenant, "admin")
    at_once(*[partial(decisions.replay, order(case, person)) for person in (omar, ada)])
    with wall.within(case.tenant.pk):
        letter = DeadLetter.objects.get(run_id=case.run_id)
    assert (letter.state, letter.generation) == ("replay_requested", 1)
    assert kinds(case).count("dead_letter_replayed") == 1
    report(case, propose(case), reply({}, status=429))
    assert len(tries(case)) == 4
    assert propose(case).answer == "wait"


def test_F159_a_replay_and_a_discard_at_once_are_one_of_them(agent: Agent, later: Later) -> None:
    case = spent(agent, later)
    omar, ada = make_person("omar", case.tenant, "oncall"), make_person("ada", case.tenant, "admin")
    at_once(partial(decisions.replay, order(case, omar)), partial(decisions.discard, order(case, ada)))
    done = {"dead_letter_replayed", "dead_letter_discarded"} & set(kinds(case))
    assert len(done) == 1
    assert standing(case)[0] in ("recovering", "executing")
