"""A provider of the outside world that keeps its own ledger: what it says there is what happened. No Django.

Everything is lazy and in seconds of a virtual clock: `send` lets a request go, `advance` lets time pass, `reply` is
what has come back by now. Nothing here knows how its caller decides, so that anybody's way of retrying can be judged.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal

from tests.simulation.fates import NOTHING_DONE, Answer, Fate, Script

STATUS: dict[Answer, int] = {
    "ok": 200, "refused": 422, "limited": 429, "error": 500, "gateway": 502, "unavailable": 503, "accepted": 202,
    "error_object": 200, "no_identity": 200, "wrong_types": 200, "foreign": 200, "truncated": 200,
    "conflict_done": 409, "unauthorized": 401, "forbidden": 403, "redirect": 302, "not_found": 404, "mismatch": 409,
}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """One request. `reference` is the caller's own id for what it wants done once, `key` what the provider may
    recognise a repeat by; `undoes` names an effect to take back; `items` are the keys of a batch."""

    tool: str
    reference: str
    key: str = ""
    arguments: Any = None
    write: bool = True
    attempt: int = 1
    undoes: str = ""
    items: tuple[str, ...] = ()


@dataclass
class Effect:
    """A line of the ledger. `whole` False: only a part of it was done. `undone_by`: the effect that took it back.
    `exchange` is the number of the request that did it: two lines of one request are the network's doing."""

    id: str
    call: Call
    at: float
    visible_at: float
    whole: bool = True
    items: tuple[str, ...] = ()
    undone_by: str = ""
    exchange: int = 0


@dataclass(frozen=True)
class Reply:
    """What came back: a status, how it reads, and the id that it names."""

    status: int
    answer: Answer
    effect: str = ""
    asks: float | None = None
    job: str = ""
    items: tuple[str, ...] = ()


@dataclass
class Exchange:
    """One request under way. `left`: whether a byte left; `reply` is None until one has arrived."""

    number: int
    call: Call
    fate: Fate
    sent_at: float
    left: bool = True
    arrived_at: float | None = None
    reply: Reply | None = None
    reply_at: float | None = None


@dataclass
class Job:
    """Accepted work that ends later."""

    id: str
    call: Call
    state: Literal["processing", "succeeded", "failed"] = "processing"
    effect: str = ""


@dataclass
class _Kept:
    """What a key stands for."""

    arguments: Any
    since: float
    effect: str = ""


@dataclass(frozen=True)
class Outage:
    """From `begins` to `ends`: connections are refused, or what arrives is answered with 503."""

    begins: float
    ends: float
    how: Literal["refuse", "unavailable", "hang"] = "refuse"


@dataclass
class Remote:
    """`keys`: whether a repeat under a key is recognised, for `retention` seconds (None: for ever), and whether the
    arguments under a key are `compares`d. `told`: called with every job that ended, which is how callbacks start."""

    rng: random.Random
    script: Script = field(default_factory=Script)
    keys: bool = False
    retention: float | None = None
    compares: bool = True
    outages: list[Outage] = field(default_factory=list)
    looks_fail: float = 0.0
    told: Callable[[Job, float], None] | None = None
    ledger: list[Effect] = field(default_factory=list)
    arrivals: list[Exchange] = field(default_factory=list)
    twins: list[Effect] = field(default_factory=list)
    jobs: dict[str, Job] = field(default_factory=dict)
    now: float = 0.0

    def __post_init__(self) -> None:
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []
        self._order, self._ids = count(), count(1)
        self._kept: dict[str, _Kept] = {}

    # --- what a caller does ---------------------------------------------------------------------------------

    def send(self, call: Call, now: float) -> Exchange:
        """Let a request go. Its exchange is filled in as time passes."""
        self.advance(now)
        fate = self.script.fate(call.tool, self.rng, write=call.write)
        outage = self.outage(now)
        if outage is not None:
            fate = _in(outage, fate)
        exchange = Exchange(next(self._ids), call, fate, now, left=fate.arrives is not None)
        if fate.arrives is not None:
            self._at(now + fate.arrives, lambda: self._arrive(exchange))
        return exchange

    def reply(self, exchange: Exchange, now: float) -> Reply | None:
        """What has come back by now."""
        self.advance(now)
        return exchange.reply if exchange.reply_at is not None and exchange.reply_at <= now else None

    def look(self, reference: str, now: float, *, tool: str | None = None) -> list[Effect] | None:
        """Every effect under a reference that can be seen now; None where the look-up itself does not answer."""
        self.advance(now)
        if self.outage(now) is not None or self.rng.random() < self.looks_fail:
            return None
        listed = [one for one in (*self.ledger, *self.twins) if one.call.reference == reference]
        return [
            one for one in listed if one.visible_at <= now and not one.undone_by and tool in (None, one.call.tool)
        ]

    def poll(self, job: str, now: float) -> Job | None:
        """How far an accepted job is; None where nobody answers."""
        self.advance(now)
        return None if self.outage(now) is not None else self.jobs.get(job)

    def advance(self, to: float) -> None:
        """Let everything happen that is due by then."""
        while self._waiting and self._waiting[0][0] <= to:
            self.now, _, happen = heapq.heappop(self._waiting)
            happen()
        self.now = max(self.now, to)

    def settle(self) -> float:
        """Let everything happen that was ever sent; the time at which the last of it did."""
        while self._waiting:
            self.advance(self._waiting[0][0])
        return self.now

    # --- what a judge reads ---------------------------------------------------------------------------------

    def effects(self, reference: str) -> list[Effect]:
        """What stands in the ledger under a reference, whole or in part, undone or not."""
        return [one for one in self.ledger if one.call.reference == reference]

    def standing(self, reference: str) -> list[Effect]:
        """The same without what was taken back."""
        return [one for one in self.effects(reference) if not one.undone_by]

    def outage(self, now: float) -> Outage | None:
        return next((one for one in self.outages if one.begins <= now < one.ends), None)

    # --- what happens there ---------------------------------------------------------------------------------

    def undo_outside(self, effect: Effect) -> None:
        """Somebody at the provider takes an effect back by hand (F141)."""
        effect.undone_by = "outside"

    def plant_twin(self, call: Call, now: float) -> None:
        """A record that carries the reference of `call` and is another's: other fields, or simply one too many."""
        self.twins.append(Effect(f"tw_{next(self._ids)}", call, now, now))

    def _at(self, when: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._waiting, (when, next(self._order), happen))

    def _arrive(self, exchange: Exchange) -> None:
        exchange.arrived_at = self.now
        self.arrivals.append(exchange)
        fate, call = exchange.fate, exchange.call
        if fate.cut:
            return
        if not call.write:
            self._answer(exchange, Reply(STATUS.get(fate.answer, 200), fate.answer, asks=fate.asks))
            return
        if fate.answer == "accepted":
            self._accept(exchange)
        for delay in (fate.commits, *fate.again):
            if delay is not None:
                self._at(self.now + delay, lambda: self._commit(exchange))
        if fate.commits is None:
            self._answer(exchange, self._said(exchange, ""))

    def _accept(self, exchange: Exchange) -> None:
        """Take it on and say so; the work ends later, well or badly."""
        job = Job(f"job_{exchange.number}", exchange.call)
        self.jobs[job.id] = job
        self._answer(exchange, self._said(exchange, ""))
        if exchange.fate.fails is not None:
            self._at(self.now + exchange.fate.fails, lambda: self._end(job.id, "failed", ""))

    def _commit(self, exchange: Exchange) -> None:
        call = exchange.call
        kept = self._kept.get(call.key) if self.keys and call.key else None
        if kept is not None and self._lives(kept):
            if self.compares and kept.arguments != call.arguments:
                self._answer(exchange, Reply(STATUS["mismatch"], "mismatch"))
            else:
                self._answer(exchange, self._said(exchange, kept.effect))
            return
        effect = self._write(exchange)
        if self.keys and call.key:
            self._kept[call.key] = _Kept(call.arguments, self.now, effect.id)
        self._answer(exchange, self._said(exchange, effect.id))

    def _lives(self, kept: _Kept) -> bool:
        return self.retention is None or self.now - kept.since < self.retention

    def _write(self, exchange: Exchange) -> Effect:
        call, fate = exchange.call, exchange.fate
        items = call.items if fate.done is None else call.items[: fate.done]
        effect = Effect(f"ef_{next(self._ids)}", call, self.now, self.now + fate.lag, fate.whole, items)
        effect.exchange = exchange.number
        self.ledger.append(effect)
        target = next((one for one in self.ledger if call.undoes and one.id == call.undoes), None)
        if target is not None and not target.undone_by:
            target.undone_by = effect.id
        if fate.answer == "accepted":
            self._end(f"job_{exchange.number}", "succeeded", effect.id)
        return effect

    def _said(self, exchange: Exchange, effect: str) -> Reply:
        answer, job = exchange.fate.answer, f"job_{exchange.number}"
        named = effect if answer not in NOTHING_DONE else ""
        items = next((one.items for one in self.ledger if one.id == effect), ())
        return Reply(STATUS.get(answer, 200), answer, named, exchange.fate.asks, job, items)

    def _answer(self, exchange: Exchange, reply: Reply) -> None:
        """The first word about a request is its reply; it comes no earlier than what it reports."""
        fate = exchange.fate
        if fate.replies is None or exchange.reply_at is not None or exchange.arrived_at is None:
            return
        exchange.reply = reply
        exchange.reply_at = max(self.now, exchange.arrived_at + fate.replies)

    def _end(self, job_id: str, state: Literal["succeeded", "failed"], effect: str) -> None:
        job = self.jobs.get(job_id)
        if job is None:
            return
        job.state, job.effect = state, effect
        if self.told is not None:
            self.told(job, self.now)


def _in(outage: Outage, fate: Fate) -> Fate:
    if outage.how == "refuse":
        return replace(fate, arrives=None)
    return Fate(commits=None, answer="unavailable", replies=None if outage.how == "hang" else 0.05)
