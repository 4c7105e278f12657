"""What must be true of every state that an episode can reach, beside the invariants that every event is held to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from steadyhand.contract import OUTCOME_OF, Cancel

from recovery import intake, panel
from recovery.models import HumanTask
from runs import wall
from runs.models import Action, Attempt, Evidence, Person, Run
from runs.states import RUN_OPEN, TASK_OPEN
from tests.simulation import shop
from tests.simulation.agents import Temper
from tests.simulation.episode import READ, WHO, Setup, Stage, play, theatre
from tests.simulation.fates import GOOD, late, lost
from tests.simulation.faults import FAULTS, NOTIFY, calm
from tests.simulation.shop import IN_FLIGHT, Flavour
from tests.simulation.stories import story

SEEDS = range(1000, 1060)
NO_ACT = {"comment", "claim", "release", "assign", "accept", "decline", "withdraw", "snooze", "reopen"}
NOTHING_LANDED = {"not_sent", "transient_reject", "permanent_reject"}
CALMLY = {"loses": 0.0, "doubles": 0.0, "delays": 0.0}


@pytest.fixture(scope="module")
def stage() -> Iterator[None]:
    with theatre():
        yield


@pytest.mark.usefixtures("stage")
def test_whoever_is_asked_can_do_something() -> None:
    asked = sum(_every_question_has_an_answer(play(story(seed)), f"seed {seed}") for seed in SEEDS)
    assert asked > 15


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.usefixtures("stage")
def test_whoever_is_asked_after_a_fault_can_do_something(fault: str) -> None:
    _every_question_has_an_answer(play(calm(fault, 0)), fault)


def _every_question_has_an_answer(made: Stage, where: str) -> int:
    """Whatever is asked when all is quiet, and what is left of it once every run is cancelled; how much that was."""
    asked = _answerable(made, where)
    for run in made.rows(Run, state__in=RUN_OPEN):
        intake.cancel(WHO, run.pk, Cancel(reason="Nobody waits for it any more"), request_id="sim")
    return asked + _answerable(made, f"{where}, cancelled")


def _answerable(made: Stage, where: str) -> int:
    tasks = made.rows(HumanTask, state__in=TASK_OPEN)
    for task in tasks:
        assert _offered(task), f"{where}: nothing can be done about {task.kind} ({task.reason_code})"
    return len(tasks)


def _offered(task: HumanTask) -> set[str]:
    """What anybody may do, the holder of the task or a second person."""
    found: set[str] = set()
    for person in Person.objects.all():
        with wall.within(shop.TENANT):
            seen = panel.read(HumanTask.objects.get(pk=task.pk), person)
            found |= {verb.name for verb in seen.verbs if verb.allowed}
    return found - NO_ACT


@pytest.mark.usefixtures("stage")
def test_nothing_happened_is_said_only_where_it_is_proven() -> None:
    said = 0
    for seed in SEEDS:
        made = play(story(seed))
        for action in made.rows(Action, effect="write", role="call", state="void", attempts__gt=0):
            said += 1
            tries = {one.observed for one in made.rows(Attempt, action=action)}
            proofs = {one.verdict for one in made.rows(Evidence, action=action)}
            assert tries <= NOTHING_LANDED or "absent_final" in proofs, f"seed {seed}: {action.tool}"
    assert said > 0


@pytest.mark.usefixtures("stage")
def test_a_proof_that_comes_after_a_final_absence_asks_a_person() -> None:
    """F028: a look was final, the run was cancelled as one that did nothing, and then the provider says it landed."""
    made = play(
        Setup(4, plan=(READ, NOTIFY), told={"notify": [late(IN_FLIGHT * 5)]}, broker=dict(CALMLY),
              temper=Temper(cancels_at=60.0, leaves=True), later=[(600.0, _told)])
    )  # fmt: skip
    assert made.rows(Run)[0].state == "cancelled"
    assert made.rows(HumanTask, action__tool="notify", state__in=TASK_OPEN)


def _told(stage: Stage) -> None:
    action = Action.objects.get(tool="notify")
    assert action.state == "void"
    stage.postman.post({"state": "succeeded", "reference": action.action_id, "id": "ef_9"}, after=0.1)


@pytest.mark.usefixtures("stage")
def test_arrivals_are_the_attempts_that_were_recorded() -> None:
    for seed in SEEDS:
        made = play(Setup(seed, told={"credit": [lost(), GOOD]}, flavour=Flavour(keyed=True), broker=dict(CALMLY)))
        recorded = sum(action.attempts for action in made.rows(Action))
        assert len(made.remote.arrivals) == recorded, f"seed {seed}"


@pytest.mark.usefixtures("stage")
def test_every_run_that_ended_ok_has_every_effect_once() -> None:
    ended = 0
    for seed in SEEDS:
        made = play(story(seed))
        for run in made.rows(Run):
            assert run.outcome is None or run.reason_code is None or OUTCOME_OF[run.reason_code].value == run.outcome
            ended += run.state not in RUN_OPEN
    assert ended > 20
