"""What a decision keeps: enough to be decided again, in a form that shows when somebody touched it."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.rules import snapshots
from recovery.rules.assembly import assemble
from recovery.rules.decide import decide
from recovery.rules.known import Known
from tests.recovery.test_assembly import OBSERVED, T0, VERDICTS, fact, known, tool

NOW = T0 + timedelta(seconds=30, microseconds=7)


def taken(about: Known) -> dict[str, Any]:
    """The snapshot as it comes back from a JSON column."""
    evidence = assemble(about, NOW)
    kept: dict[str, Any] = json.loads(json.dumps(snapshots.taken(about, NOW, evidence, decide(evidence))))
    return kept


@given(
    st.lists(st.sampled_from(OBSERVED), max_size=4),
    st.lists(st.tuples(st.sampled_from(VERDICTS), st.integers(0, 4)), max_size=4),
)
def test_whatever_was_decided_is_decided_again_from_its_snapshot(observed: list[Any], facts: list[Any]) -> None:
    about = known(*observed, facts=tuple(fact(verdict, after) for verdict, after in facts))
    assert snapshots.known_of(taken(about)) == about
    assert snapshots.again(taken(about)).same


def test_every_part_of_what_is_known_is_kept() -> None:
    about = known(
        "unknown", facts=(fact("absent"),), due_at=T0, deadline_at=T0, next_due_at=NOW, ends_at=NOW, undo="held",
        goal="rollback", undo_in_time=False, looks_made=2, over_threshold=True, gate_open=False, never_again=True,
    )  # fmt: skip
    back = snapshots.known_of(taken(about))
    assert {field.name: getattr(back, field.name) for field in fields(Known)} == {
        field.name: getattr(about, field.name) for field in fields(Known)
    }


@pytest.mark.parametrize("part", snapshots.PARTS)
def test_a_snapshot_that_was_changed_shows_it(part: str) -> None:
    kept = taken(known("unknown"))
    assert snapshots.again(kept).intact
    changed = {**kept, part: {**kept[part], "looks": "spent"} if isinstance(kept[part], dict) else kept[part]}
    changed["digest"] = "0" * 64 if changed[part] == kept[part] else kept["digest"]
    assert not snapshots.again(changed).intact


def test_rules_that_have_changed_since_are_named_field_by_field(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = taken(known("unknown", facts=(fact("absent"),)))
    monkeypatch.setattr("recovery.rules.assembly.verdict_of", lambda known: "absent_final")
    again = snapshots.again(kept)
    assert again.differing == {"verdict": ("absent", "absent_final")}
    assert (again.then.rule, again.now.rule, again.same) == ("9e", "8i", False)


def test_the_circuit_of_that_moment_counts() -> None:
    about = known("transient_reject")
    evidence = assemble(about, NOW)._replace(circuit="shut")
    kept = json.loads(json.dumps(snapshots.taken(about, NOW, evidence, decide(evidence))))
    assert (snapshots.again(kept).now.rule, snapshots.again(kept).same) == ("8h", True)


def test_a_decision_about_no_call_cannot_be_computed() -> None:
    with pytest.raises(snapshots.Unreadable, match="keeps no facts"):
        snapshots.again({"run_state": "escalated"})


def test_the_hash_of_a_form_stands_for_the_facts_of_its_snapshot() -> None:
    about = known("unknown", of=tool(proof="look"))
    assert snapshots.hash_in(taken(about)) == snapshots.hash_of(about)
    assert snapshots.hash_of(replace(about, over_threshold=True)) != snapshots.hash_of(about)
