"""Steadyhand's own rules under a virtual clock: classify, assemble, decide, wait, look, count once more.

Nothing is imitated: answers are typed by `classify`, rows become evidence by `assembly`, `decide` says what follows,
`backoff` and the bounds say when. A person is never played: a question for one ends the episode.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from steadyhand.contract import Observation
from steadyhand.manifest import Tool

from benchmarks.evaluation.remote import CLIENT_TIMEOUT, IN_FLIGHT, LAG, Answer, Remote
from benchmarks.evaluation.ways import SENDS, Told, Way
from recovery.rules import assembly, backoff, bounds
from recovery.rules.classify import classify
from recovery.rules.decide import Action, NextAction, decide
from recovery.rules.evidence import Evidence
from recovery.rules.evidence import Observation as Observed
from recovery.rules.known import Fact, Known, Try

T0 = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = 60
KEEPS_KEYS_FOR = 86400.0
ANSWERS: dict[Answer, Observation] = {
    "ok": Observation(kind="reply", status=200, body='{"id": "ef_1"}'),
    "timeout": Observation(kind="timeout"),
    "conflict": Observation(kind="reply", status=409, body='{"error": "the object was changed"}'),
    "error": Observation(kind="reply", status=500, body='{"error": "internal"}'),
}


def contract(*, keyed: bool, bounded: bool) -> Tool:
    """What the manifest promises. Where requests may land at any time, no bound is declared (`bounded` False)."""
    look: dict[str, Any] = {"path": "/effects", "ours": {"reference": "{action_id}"}, "external_id": "id"}
    limits = {"max_in_flight_seconds": IN_FLIGHT, "max_visibility_lag_seconds": LAG} if bounded else {}
    kept = KEEPS_KEYS_FOR if bounded else "unlimited"
    key = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": kept} if keyed else {"kind": "none"}
    return Tool.model_validate(
        {
            "name": "pay", "effect": "write", "timeout_seconds": CLIENT_TIMEOUT, "identity_fields": ["id"],
            "reconcile": {"connector": "provider", "look": look, **limits}, "idempotency": key,
        }
    )  # fmt: skip


def way(tool: Tool) -> Way:
    """Steadyhand under this contract, as a way of retrying. Typing an answer is pure, so each is typed once."""
    typed = {name: classify(one, tool, clock=lambda: T0, breach=lambda _: None) for name, one in ANSWERS.items()}
    observed = {name: found.observed for name, found in typed.items()}
    return lambda remote, rng: Episode(tool, observed, remote, rng).told()


@dataclass
class Episode:
    """One call with its rows and its clock."""

    tool: Tool
    observed: Mapping[Answer, Observed]
    remote: Remote
    rng: random.Random
    now: float = 0.0
    tries: tuple[Try, ...] = ()
    facts: tuple[Fact, ...] = ()
    looks: int = 0
    due_at: datetime | None = None
    sends_from: float = 0.0
    first_at: datetime | None = None

    def told(self) -> Told:
        """What the record says in the end, the later counting look included."""
        for _ in range(STEPS):
            evidence, answer = self._ask()
            match answer.action:
                case Action.RETRY:
                    self._send_when_due(evidence)
                case Action.PROBE:
                    self._look()
                case Action.WAIT:
                    self._wait_for_look()
                case Action.CLOSE_OK:
                    return self._counted_once_more(evidence)
                case Action.FATAL:
                    return "failed"
                case _:
                    return "human"
        raise RuntimeError("an episode that comes to no end")

    def _ask(self) -> tuple[Evidence, NextAction]:
        evidence = assembly.assemble(self._known(), _at(self.now))
        return evidence, decide(evidence)

    def _known(self) -> Known:
        return Known(
            tool=self.tool, connector_kind="http", tries=self.tries, facts=self.facts, goal="forward",
            looks_made=self.looks, due_at=self.due_at, first_dispatched_at=self.first_at, max_attempts=SENDS,
            budget_left=True, deadline_at=None, next_due_at=None, over_threshold=False, gate_open=True,
            never_again=bool(self.tries) and self.tries[-1].observed == "permanent_reject",
        )  # fmt: skip

    def _send_when_due(self, evidence: Evidence) -> None:
        """A proven absence is sent again at once, anything else after its pause; then it is asked once more."""
        if self.now < self.sends_from and evidence.verdict != "absent_final":
            self.now = self.sends_from
            return
        sent_at = _at(self.now)
        self.first_at = self.first_at or sent_at
        answer, self.now = self.remote.send(self.now)
        self.tries += (Try(len(self.tries) + 1, self.observed[answer], _at(self.now), sent_at),)
        self.due_at = None
        self.sends_from = self.now + backoff.retry_delay(len(self.tries), None, self.rng.uniform(0.5, 1.0))

    def _wait_for_look(self) -> None:
        self.due_at = assembly.next_look_at(self._known(), _at(self.now))
        assert self.due_at is not None
        self.now = max(self.now, (self.due_at - T0).total_seconds())

    def _look(self) -> None:
        self.looks, self.due_at = self.looks + 1, None
        final_at = bounds.final_from(self.tool, self.tries[-1].ended_at)
        said, count = self.remote.look(self.now)
        verdict = bounds.finalize(said, started_at=_at(self.now), final_at=final_at)
        self.facts += (Fact("probe", verdict, len(self.tries), _at(self.now), count),)

    def _counted_once_more(self, evidence: Evidence) -> Told:
        """What was believed on less than a final look is counted later; a contradiction is a person's (F029)."""
        after = bounds.recount_after(self.tool, "http")
        ended_at = self.tries[-1].ended_at
        if evidence.verdict == "present_final" or after is None or ended_at is None:
            return "ok"
        self.now = max(self.now, (ended_at - T0).total_seconds() + after)
        self._look()
        return "human" if self._ask()[1].reason == "conflicting_evidence" else "ok"


def _at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)
