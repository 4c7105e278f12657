"""`manage.py recompute`: a recommendation of the past, decided again from its own row (DECISIONS 2)."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from console.embedded.errors import Trouble
from recovery import recompute
from recovery.models import Decision
from recovery.rules import snapshots
from runs.models import Person
from tests.factories import lose_the_reply, make_tenant
from tests.failures.conftest import Opener
from tests.recovery.stories import press


@pytest.fixture
def decided(opened: Opener, alice: Person) -> Decision:
    case = opened()
    lose_the_reply(case)
    return press("claim", case, alice)


def told(decision: Decision) -> list[str]:
    out = StringIO()
    call_command("recompute", "north", str(decision.pk), stdout=out)
    return out.getvalue().splitlines()


def test_a_past_recommendation_comes_out_the_same(decided: Decision) -> None:
    lines = told(decided)
    assert lines[0].startswith("claim by Alice at ")
    assert lines[1].removeprefix("then") == lines[2].removeprefix("now ")
    assert lines[3:] == ["The same."]


def test_what_the_rules_say_otherwise_today_is_named(decided: Decision, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as changed:
        changed.setattr("recovery.rules.assembly.verdict_of", lambda known: "absent_final")
        assert "Differs: verdict was none and comes out as absent_final." in told(decided)


def test_a_version_that_has_changed_is_named(decided: Decision, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as changed:
        changed.setattr("recovery.rules.assembly.verdict_of", lambda known: "present_final")
        changed.setattr("recovery.recompute.TABLE_VERSION", 4)
        assert any("(table 3 then, 4 now)" in line for line in told(decided))


def test_facts_that_somebody_changed_are_told(decided: Decision) -> None:
    decided.snapshot["facts"]["goal"] = "rollback"
    assert recompute.differs(decided) == "The stored facts do not fit their digest: somebody changed them."


def test_a_decision_of_nobody_and_of_another_tenant_is_missing_alike(decided: Decision) -> None:
    make_tenant("south")
    for tenant, pk in (("south", decided.pk), ("north", decided.run_id)):
        with pytest.raises(Trouble, match="There is no decision"):
            call_command("recompute", tenant, str(pk))


def test_a_decision_about_the_run_as_a_whole_says_that_nothing_was_computed(decided: Decision) -> None:
    decided.snapshot = {"run_state": "escalated"}
    with pytest.raises(snapshots.Unreadable, match="keeps no facts"):
        list(recompute.lines(decided))
