"""The scenarios can fail: each of these faults, planted in the code, makes the scenario that is about it fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from recovery import endings, escalation, gate, letters, proposal, reports
from recovery.rules import assembly, backoff, bounds, classify, signatures
from runs import budgets, redact
from tests.scenarios.playing import differences

Plant = Callable[[pytest.MonkeyPatch], None]


def _replaced(module: Any, name: str, value: Any) -> Plant:
    return lambda patch: patch.setattr(module, name, value)


def _misread(change: Callable[[classify.Classified], classify.Classified]) -> Plant:
    """Whatever came back is classified as always, and then changed."""
    right = classify.classify

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(reports, "classify", lambda *what, **more: change(right(*what, **more)))

    return plant


def _lost_answer_means_refused(found: classify.Classified) -> classify.Classified:
    lost = found.observed == "unknown"
    return replace(found, observed="transient_reject", reason="provider_unavailable") if lost else found


def _any_200_is_proof(found: classify.Classified) -> classify.Classified:
    broken = found.observed == "ok_invalid"
    return replace(found, observed="ok_valid", reason="completed", result={}) if broken else found


def _error_is_success(found: classify.Classified) -> classify.Classified:
    refused = found.observed == "permanent_reject"
    return replace(found, observed="ok_valid", reason="completed", result={}) if refused else found


def _every_look_is_final(verdict: str, **_: Any) -> str:
    return f"{verdict}_final" if verdict in ("present", "absent") else verdict


PLANTED: dict[str, tuple[Plant, str]] = {
    "a lost answer is taken for a refusal": (_misread(_lost_answer_means_refused), "gateway-gives-up-after-the-body"),
    "a good status is taken for proof": (_misread(_any_200_is_proof), "html-page-for-a-write"),
    "an error inside a good status is not seen": (_misread(_error_is_success), "error-list-in-a-200"),
    "a key is taken to live for ever": (
        _replaced(assembly, "live_key", lambda known, now: "live"),
        "key-expired-between-tries",
    ),
    "an early look is taken for final": (
        _replaced(bounds, "finalize", _every_look_is_final),
        "absent-inside-the-lag-then-outside",
    ),
    "the provider's delay is shortened": (
        _replaced(backoff, "retry_delay", lambda attempts, asked, spread: min(asked or 1.0, 1.0)),
        "delay-beyond-the-end",
    ),
    "nobody looks at the scope": (_replaced(proposal.scope, "breach", lambda *what: None), "outside-its-scope"),
    "an approval is not asked for": (_replaced(gate, "needs_care", lambda prepared: False), "approval-never-comes"),
    "the model is believed that it is done": (
        _replaced(endings, "missing_effect", lambda run: None),
        "required-effect-missing",
    ),
    "any signature will do": (_replaced(signatures, "holds", lambda *what: True), "callback-with-a-bad-signature"),
    "budgets are not looked at": (_replaced(budgets, "fired", lambda *what, **more: []), "token-ceiling"),
    "a discarded call counts as done": (
        _replaced(endings, "uncorrected_refusal", lambda run: None),
        "letter-is-discarded",
    ),
    "texts are kept as they came": (_replaced(redact, "redact", lambda value, **more: value), "secret-in-an-address"),
    "nobody is paged": (_replaced(escalation, "_page", lambda *what: None), "told-without-a-result"),
    # None at all is refused by PostgreSQL itself.
    "a dead letter keeps its last try only": (
        _replaced(letters, "history", lambda action, whole=letters.history: whole(action)[-1:]),
        "letter-is-discarded",
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_makes_its_scenario_fail(db: None, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    plant, name = PLANTED[fault]
    plant(monkeypatch)
    assert differences(name) != []
