"""A stopped agent hears what stopped it: a switch that will be lifted, a quarantine, or a budget."""

from __future__ import annotations

from recovery.work import stops
from runs import wall
from runs.models import Run
from tests.factories import make_person, propose
from tests.failures.conftest import Opener


def test_a_halt_names_itself_and_what_comes_after_it(opened: Opener) -> None:
    case = opened()
    omar = make_person("omar", case.tenant, "oncall")
    stops.set_stop(omar, case.tenant.pk, scope="everything", mode="halt", reason="A trial.")
    halted = propose(case).error.message
    assert "A halt of everything stands. Once it is lifted, the run is resumed by its id." in halted


def test_a_quarantine_does_not_promise_that_a_lift_is_enough(opened: Opener) -> None:
    case = opened()
    omar = make_person("omar", case.tenant, "oncall")
    stops.set_stop(omar, case.tenant.pk, scope="tool", name="apply_credit", mode="quarantine", reason="A trial.")
    permit = propose(case)
    assert permit.answer == "stop"
    assert permit.error.message.startswith("An operator stopped this.")
    assert "lifted" not in permit.error.message


def test_a_budget_names_itself(opened: Opener) -> None:
    case = opened()
    with wall.within(case.tenant.pk):
        Run.objects.filter(pk=case.run.pk).update(max_tool_calls=0)
    permit = propose(case)
    assert permit.error.code == "tool_call_budget_exhausted"
    assert permit.error.message.startswith("The run used all its tool calls. A person may raise it;")
