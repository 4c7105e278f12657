"""True histories of one write at a small provider, and the rows that they leave: attempts, evidence, times, keys.

The provider keeps every promise that its contract makes, unless the history is one where it breaks a bound. What it
did is known here to the last commit, so every answer that the rows lead to can be held against the truth.

Promises: nothing commits later than `IN_FLIGHT` after a try was over for us, and a commit is seen `LAG` later at the
latest; a key merges what lands within its retention; a refusal changed nothing; a reply is true where it is proof.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from steadyhand.manifest import Tool

from recovery.rules import assembly, bounds, trust
from recovery.rules.decide import Action, NextAction, decide
from recovery.rules.evidence import Evidence
from recovery.rules.known import Fact, Known, Try
from tests.recovery.worlds import World

T0 = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
TIMEOUT, LEASE, IN_FLIGHT, LAG, RETENTION = 10.0, 15.0, 20.0, 5.0, 120.0
PAUSES = (0.0, 0.1, 3.0, 9.9, 15.0, 20.0, 25.0, 40.0, 60.0, 130.0)
EVENTS = 14
FATES = ("ok", "lost", "late", "silent", "refused", "limited", "not sent", "broken", "part", "lie")
KEYS: dict[str, dict[str, Any]] = {
    "none": {"kind": "none"},
    "kept for a while": {"kind": "key", "header": "Key", "retention_seconds": RETENTION},
    "kept for ever": {"kind": "key", "header": "Key", "retention_seconds": "unlimited"},
    "not compared": {"kind": "key", "header": "Key", "retention_seconds": "unlimited", "compares_arguments": False},
}
BOUNDS = {"max_in_flight_seconds": IN_FLIGHT, "max_visibility_lag_seconds": LAG}
UNBOUNDED = dict.fromkeys(BOUNDS)
CALLBACK = {"source": "pay", "succeeded": ["done"], "failed": ["failed"]}


class Commit(NamedTuple):
    """Something that lands at the provider: when, when a look can see it, of which try, under which key, whole?"""

    at: float
    visible_at: float
    attempt: int
    generation: int
    whole: bool


class Moment(NamedTuple):
    """What the rows led to, and how things stood. `told`: nothing is hidden from the rows that excuses it."""

    evidence: Evidence
    answer: NextAction
    world: World
    told: bool


def contracts() -> list[Tool]:
    """Every combination of promises about keys, bounds and proof that a manifest may make."""
    return [
        _tool(key, limits, proof)
        for key in KEYS
        for limits in (BOUNDS, UNBOUNDED)
        for proof in ("reply", "look", "look_final")
        if proof != "look_final" or limits is BOUNDS
    ]


def _tool(key: str, limits: dict[str, Any], proof: str) -> Tool:
    look = {"connector": "c", "look": {"path": "/x", "ours": {"ref": "{action_id}"}, "external_id": "id"}}
    return Tool.model_validate(
        {
            "name": "pay", "effect": "write", "proof": proof, "timeout_seconds": TIMEOUT, "idempotency": KEYS[key],
            "reconcile": {**look, **limits, "max_looks": 4}, "callback": CALLBACK,
            "compensate": {"tool": "refund", "arguments": {"id": "id"}},
        }
    )  # fmt: skip


@dataclass
class History:
    """One write and its provider. `breaks`: the bound is not kept. `demoted`: by now that is known from elsewhere."""

    rng: random.Random
    tool: Tool
    goal: Any = "forward"
    breaks: bool = False
    demoted: bool = False
    now: float = 0.0
    tries: list[Try] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    landed: list[Commit] = field(default_factory=list)
    coming: list[Commit] = field(default_factory=list)
    generation: int = 1
    first_used: float | None = None
    looks: int = 0
    undone: bool = False
    _end: Callable[[], None] | None = None

    def moments(self) -> Iterator[Moment]:
        """Live through it; one moment after every event that left a row or let time pass."""
        self._send()
        for _ in range(EVENTS):
            moment = self._moment()
            yield moment
            if moment.answer.action in ENDS or (
                moment.answer.action is Action.COMPENSATE and self.rng.random() < 0.5
            ):
                return
            if moment.answer.action is Action.RETRY and self._end is None and self.rng.random() < 0.7:
                self._send_again(moment.evidence)
            else:
                self._happen()

    # --- what is known, and what is true --------------------------------------------------------------------

    def known(self) -> Known:
        refused = bool(self.tries) and self.tries[-1].observed == "permanent_reject"
        tool = trust.undeclared(self.tool) if self.demoted else self.tool
        first = None if self.first_used is None else _at(self.first_used)
        return Known(
            tool=tool, connector_kind="http", tries=tuple(self.tries), facts=tuple(self.facts), goal=self.goal,
            looks_made=self.looks, due_at=T0, first_dispatched_at=first, max_attempts=5,
            budget_left=True, deadline_at=None, next_due_at=None, over_threshold=False, gate_open=True,
            never_again=refused, demoted=self.demoted,
        )  # fmt: skip

    def _moment(self) -> Moment:
        evidence = assembly.assemble(self.known(), _at(self.now))
        return Moment(evidence, decide(evidence), self._world(), self._shows())

    def _world(self) -> World:
        return World(
            effects=0 if self.undone else sum(one.whole for one in self.landed),
            part=any(not one.whole for one in self.landed),
            under_way=any(not self._merges(one) for one in self.coming),
            key_honoured=self._would_merge(),
            undone=self.undone,
        )

    def _would_merge(self) -> bool:
        """Whether a copy sent now would become one with the others, even if it lands as late as it may."""
        latest = self.now + TIMEOUT + (IN_FLIGHT if self._bounded else 0.0)
        return self._honours and self.first_used is not None and latest < self.first_used + self._retention

    def _shows(self) -> bool:
        """A broken bound, and what somebody did outside, excuse an answer until a row tells of them.

        Once a connector is demoted its bounds are not believed, so nothing excuses any more.
        """
        if self.undone and not any(fact.verdict == "undone" for fact in self.facts):
            return False
        disproven = max((fact.after_attempt for fact in self.facts if fact.verdict == "absent_final"), default=0)
        found = ("present", "present_final", "partial", "partial_final", "conflict")
        return (
            self.demoted
            or not self.breaks
            or any(fact.verdict in found and fact.after_attempt <= disproven for fact in self.facts)
        )

    # --- sending --------------------------------------------------------------------------------------------

    def _send_again(self, evidence: Evidence) -> None:
        if evidence.key == "expired":
            self.generation, self.first_used = self.generation + 1, None
        self._send()

    def _send(self) -> None:
        self.first_used = self.now if self.first_used is None else self.first_used
        number, sent_at = len(self.tries) + 1, self.now
        observed, lasts, commits = self._fate(sent_at)
        self.coming += [Commit(at, at + lag, number, self.generation, whole) for at, lag, whole in commits]
        self.tries.append(Try(number, None, None, _at(sent_at), self.generation))

        def end() -> None:
            self._advance(sent_at + lasts)
            self.tries[number - 1] = Try(number, observed, _at(sent_at + lasts), _at(sent_at), self.generation)

        self._end = end

    def _fate(self, sent_at: float) -> tuple[str, float, list[tuple[float, float, bool]]]:
        """How the try ends for us, after how long, and what it does: (when, lag, whole) of each commit."""
        in_time = sent_at + self.rng.uniform(0.0, 5.0)
        lag = self.rng.choice((0.0, 0.0, LAG - 0.1 if self._bounded else 300.0))
        answered = sent_at + 6.0
        done = [(in_time, lag, True)]
        match "late" if self.breaks and not self.tries else self.rng.choice(FATES):
            case "ok":
                return "ok_valid", answered - sent_at, self._twice(done)
            case "lost":
                return "unknown", LEASE, self._twice(done)
            case "late":
                return "unknown", LEASE, [(sent_at + LEASE + self._late_by(), lag, True)]
            case "silent":
                return "unknown", LEASE, []
            case "refused":
                return "permanent_reject", 1.0, []
            case "limited":
                return "transient_reject", 1.0, []
            case "not sent":
                return "not_sent", 0.1, []
            case "broken":
                return "ok_invalid", 1.0, done if self.rng.random() < 0.5 else []
            case "part":
                return "unknown", LEASE, [(in_time, lag, False)]
        return ("ok_valid", 1.0, []) if self.tool.proof != "reply" else ("unknown", LEASE, [])

    def _late_by(self) -> float:
        if self.breaks:
            return IN_FLIGHT + LAG + self.rng.uniform(5.0, 60.0)
        return self.rng.uniform(0.1, IN_FLIGHT - 0.1) if self._bounded else self.rng.uniform(0.1, 400.0)

    def _twice(self, done: list[tuple[float, float, bool]]) -> list[tuple[float, float, bool]]:
        """Only a contract that asks for a final look lets the same call land a second time."""
        if self.tool.proof != "look_final" or self.rng.random() < 0.6:
            return done
        return [*done, (done[0][0] + self.rng.uniform(0.1, IN_FLIGHT - 0.1), 0.0, True)]

    # --- what happens meanwhile -----------------------------------------------------------------------------

    def _happen(self) -> None:
        if self._end is not None and self.rng.random() < 0.6:
            end, self._end = self._end, None
            return end()
        self._advance(self.now + self.rng.choice(PAUSES))
        # Known from another call, before this one was sent again on the strength of the bound.
        self.demoted = self.demoted or (self.breaks and len(self.tries) == 1 and self.rng.random() < 0.1)
        happen = self.rng.choice((self._look, self._look, self._late_report, self._message, self._undo_outside))
        return happen()

    def _look(self) -> None:
        """A look now, whoever asked for it; whether it is final is computed as the worker computes it."""
        self.looks += 1
        said, count = self._seen()
        known = self.known()
        final_at = bounds.final_from(known.tool, bounds.uncertain_since(known))
        verdict = bounds.finalize(said, started_at=_at(self.now), final_at=final_at)
        self.facts.append(Fact("probe", verdict, len(self.tries), _at(self.now), count))

    def _seen(self) -> tuple[str, int | None]:
        if self.rng.random() < 0.15:
            return "probe_failed", None
        seen = [one for one in self.landed if one.visible_at <= self.now]
        whole = sum(one.whole for one in seen)
        if self.undone and seen:
            return "undone", whole
        if whole >= 2:
            return self.rng.choice(("conflict", "present")), whole
        if whole == 1:
            return ("conflict", 1) if len(seen) > 1 else ("present", 1)
        return ("partial", 1) if seen else ("absent", 0)

    def _late_report(self) -> None:
        """The valid reply of a try that we had given up, where the contract takes a reply for proof."""
        given_up = [one.number for one in self.tries if one.observed == "unknown"]
        whole = [one for one in self.landed if one.attempt in given_up and one.whole]
        if whole and self.tool.proof == "reply" and not self.undone:
            self.facts.append(Fact("late_report", "present", whole[0].attempt, T0, 1))

    def _message(self) -> None:
        """The provider's message that it is done: true as a reply is, so only where a reply is proof."""
        true = any(one.whole for one in self.landed) and not self.undone
        over = self._end is None and self.tries[-1].observed == "unknown"
        if over and (true or self.tool.proof != "reply"):
            self.facts.append(Fact("callback", "present", len(self.tries), _at(self.now), 1))

    def _undo_outside(self) -> None:
        if self.goal == "rollback" and len(self.landed) == 1 and self.landed[0].whole and not self.coming:
            self.undone = self._end is None

    # --- time at the provider -------------------------------------------------------------------------------

    def _advance(self, to: float) -> None:
        self.now = max(self.now, to)
        due = sorted(one for one in self.coming if one.at <= self.now)
        self.coming = [one for one in self.coming if one.at > self.now]
        for one in due:
            if not self._merges(one):
                self.landed.append(one)
            elif one.whole:  # a repeat under its key completes what was begun
                self.landed = [
                    kept._replace(whole=kept.whole or kept.generation == one.generation) for kept in self.landed
                ]

    def _merges(self, commit: Commit) -> bool:
        """Whether the provider makes one of this and what is there: the same key, and it still remembers it."""
        earlier = [one for one in self.landed if one.generation == commit.generation]
        return self._honours and bool(earlier) and commit.at < earlier[0].at + self._retention

    @property
    def _honours(self) -> bool:
        return self.tool.idempotency.kind == "key" and self.tool.idempotency.compares_arguments

    @property
    def _retention(self) -> float:
        declared = self.tool.idempotency.retention_seconds
        return declared if isinstance(declared, float) else float("inf")

    @property
    def _bounded(self) -> bool:
        return self.tool.reconcile is not None and self.tool.reconcile.max_in_flight_seconds is not None


# An undo may lie a while before it is sent, so a history may go on after one was called for.
ENDS = (Action.CLOSE_OK, Action.CLOSE_CANCELLED, Action.CLOSE_NO_EFFECT, Action.FATAL)


def _at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)
