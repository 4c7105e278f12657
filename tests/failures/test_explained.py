"""`explain` says where a live run stands, and why a look could not answer."""

from __future__ import annotations

from recovery.connectors import base
from recovery.scenarios import explain
from tests.factories import advance_clock, propose, report, timed_out
from tests.failures.conftest import Opener
from tests.recovery.stories import Looks, look


def test_a_live_run_goes_on_and_a_failed_look_says_why(opened: Opener, looks: Looks) -> None:
    case = opened()
    report(case, propose(case), timed_out())
    looks.say(base.failed("billing.example cannot be resolved."))
    advance_clock(seconds=60)
    look(case)
    told = list(explain.lines(case.run.pk, case.tenant.pk))
    assert any("probe_failed" in line and "billing.example cannot be resolved." in line for line in told)
    assert not any(line.startswith("ends") or "None" in line for line in told)
    assert any(line.startswith("goes on: ") for line in told)
