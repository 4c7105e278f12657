"""Each part of a right answer is compared: changing it in a file that passes is noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from recovery.scenarios import compare, format, runner
from tests.scenarios.playing import CASES


def told(name: str, **changes: Any) -> list[str]:
    scenario = format.load(CASES / f"{name}.json")
    return compare.differences(replace(scenario, expect=scenario.expect | changes), runner.play(scenario))


LOST, AGAIN = "gateway-gives-up-after-the-body", "keyed-write-is-sent-again"
WRONG: list[tuple[str, dict[str, Any], str]] = [
    (LOST, {"max_dispatches": {"refund_card": 0}}, "refund_card was sent 1 times"),
    (LOST, {"outcome": "fatal"}, "outcome needs_human/external_outcome_unknown, not"),
    (LOST, {"task": {"kind": "approval"}}, "no open task of kind approval"),
    (LOST, {"task": None}, "a task of kind reconcile_write pages"),
    (LOST, {"alert": {"page": False}}, "somebody was paged for"),
    (LOST, {"effect_states": {"refund": "applied"}}, "the effect of refund is unknown"),
    (LOST, {"blocked_steps": ["refund"]}, "refund was sent, and had to be blocked"),
    (LOST, {"failed_step": "other"}, "failed step refund, not other"),
    (AGAIN, {"attempts": 1}, "2 attempts, not 1"),
    (AGAIN, {"alert": {"page": True}}, "nobody was paged"),
    (AGAIN, {"side_effect": {"completed_effects": []}}, "completed effects ['refund'], not []"),
    ("orders-hidden-in-a-result", {"must_not_contain": {"record": ["or_5"]}}, "record holds 'or_5'"),
    ("letter-is-discarded", {"dead_letter": {"count": 2}}, "1 dead letters, not 2"),
    ("letter-is-discarded", {"audit": ["op_2 discard accepted"]}, "the history lacks: op_2 discard accepted"),
]


@pytest.mark.parametrize(("name", "changes", "sentence"), WRONG)
def test_a_wrong_answer_is_noticed(db: None, name: str, changes: dict[str, Any], sentence: str) -> None:
    assert any(line.startswith(sentence) for line in told(name, **changes)), told(name, **changes)


def test_a_checkpoint_is_the_run_right_after_its_event(db: None) -> None:
    wrong = {"after_t": 0.6, "outcome": "ok", "delay_seconds": {"min": 500, "max": 600}}
    found = told("delay-that-cannot-be-read", checkpoints=[wrong])
    assert found[0].startswith("after 0.6 s: retryable/provider_rate_limited, not ok")
    assert "not 500 to 600" in found[1]


def test_two_names_of_one_reason_fall_together_and_no_others() -> None:
    ceiling = {"outcome": "needs_human", "reason_code": "retry_ceiling_exhausted"}
    assert compare.same(ceiling, "needs_human", "retry_exhausted")
    assert not compare.same(ceiling, "fatal", "retry_exhausted")
    assert not compare.same({"outcome": "fatal", "reason_code": "not_applied"}, "fatal", "permission_denied")
