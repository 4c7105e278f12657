"""The wire between the record's people and the provider: every request of an episode leaves through here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from steadyhand.contract import Observation

from recovery.connectors.base import Outgoing, Question
from recovery.connectors.http import Unusable
from runs.models import Attempt, Circuit
from tests.simulation import shop
from tests.simulation.remote import Call, Exchange, Remote
from tests.simulation.world import Broken, Killed, World

LOOK_SECONDS = 0.2


class Outside:
    """Sends, looks and polls, with time passing and processes dying on the way."""

    def __init__(self, world: World, remote: Remote, *, says: str = "") -> None:
        self.world, self.remote, self.says = world, remote, says
        self.hidden_retries = False
        self.intent_asked = True

    # --- sending ------------------------------------------------------------------------------------------------

    def call(self, call: Call, *, timeout: float, attempt: Any, undo: bool = False) -> Observation:
        """Send once and wait for what comes back; the sender may die anywhere on the way (C07 to C12)."""
        world, began = self.world, self.world.now
        world.point("C07")
        if undo:
            world.point("C23")
        exchange = self._leave(call, attempt)
        world.note(f"{call.tool} leaves, try {call.attempt}, as {exchange.fate}")
        self._on_the_way(exchange, timeout, undo)
        ready = _reply_due(exchange)
        until = began + timeout if ready is None else min(began + timeout, max(ready, world.now))
        world.sleep(max(0.01, until - world.now))
        reply = self.remote.reply(exchange, world.now)
        seen = shop.observed(exchange, reply, world.now - began, says=self.says)
        if self.hidden_retries and seen.kind != "reply":
            self._leave(call, attempt)
        world.point("C12")
        return seen

    def _leave(self, call: Call, attempt: Any) -> Exchange:
        """A byte leaves only under a committed intent of exactly this call (I3)."""
        if self.intent_asked:
            _intended(self.world, call, attempt)
        world = self.world
        if world.waits_for("C08") or (world.waits_for("C07") and world.crash and world.crash.mode == "after"):
            cut = replace(self.remote.script.fate(call.tool, self.remote.rng, write=call.write), cut=_is_cut(world))
            self.remote.script.told.setdefault(call.tool, []).insert(0, cut)
        exchange = self.remote.send(call, world.now)
        self._await_job(exchange)
        return exchange

    def _await_job(self, exchange: Exchange) -> None:
        """An accepted job ends by itself, whether or not anybody asks."""
        fate = exchange.fate
        if fate.answer == "accepted" and fate.arrives is not None:
            ends = fate.arrives + (fate.fails if fate.fails is not None else fate.commits or 0.0)
            self.world.spawn("job", lambda: self.remote.advance(self.world.now), after=ends + 0.001)

    def _on_the_way(self, exchange: Exchange, timeout: float, undo: bool) -> None:
        """The moments between the first byte and the reply, for an episode in which somebody dies in one of them."""
        world, fate = self.world, exchange.fate
        world.point("C07", "after")
        world.point("C08")
        world.point("C08", "after")
        world.point("C09")
        if undo:
            world.point("C23", "after")
        if fate.arrives is None or world.crash is None or world.crashed:
            return
        arrives = exchange.sent_at + fate.arrives
        commits = arrives + (fate.commits or 0.0)
        ready = _reply_due(exchange)
        moments = [("C09", "after", commits - 0.001), ("C10", "before", commits + 0.001)]
        moments += [("C10", "after", commits + 0.002)]
        if ready is not None:
            moments += [("C11", "before", max(commits, ready - 0.002)), ("C11", "after", max(commits, ready - 0.001))]
        for name, side, at in moments:
            if world.waits_for(name) and at <= exchange.sent_at + timeout:
                world.sleep(at - world.now)
                world.point(name, side)

    # --- looking ------------------------------------------------------------------------------------------------

    def fetch(self, question: Question, look: Any) -> tuple[Any, bool]:
        """What `recovery.connectors.http` would have fetched: every effect under our reference."""
        world = self.world
        world.sleep(LOOK_SECONDS / 2)
        found = self.remote.look(question.action_id, world.now)
        world.note(f"a look sees {len(found) if found is not None else 'nothing answers'}")
        world.point("C20", "after")
        if world.doomed:
            raise Killed("every worker dies in its look")
        world.sleep(LOOK_SECONDS / 2)
        world.point("C21")
        if found is None:
            raise Unusable("The look-up answered 503.")
        return shop.listed(found), False

    def transmit(self, outgoing: Outgoing) -> Observation:
        """What `recovery.work.sending` would have sent: a poll, an undo, a call of the worker's own."""
        if outgoing.tool == "export_status":
            return self._poll(str(outgoing.arguments.get("job")))
        undoes = str(outgoing.arguments.get("effect", ""))
        call = Call(
            outgoing.tool,
            outgoing.action_id,
            outgoing.key,
            outgoing.arguments,
            attempt=outgoing.attempt,
            undoes=undoes,
        )
        undo = outgoing.tool in ("void", "recall")
        return self.call(call, timeout=outgoing.timeout_seconds, attempt=None, undo=undo)

    def _poll(self, name: str) -> Observation:
        self.world.sleep(LOOK_SECONDS)
        job = self.remote.poll(name, self.world.now)
        if job is None:
            return Observation(kind="timeout", bytes_sent=90)
        text = shop.json.dumps(shop.job_told(job))
        return Observation(kind="reply", status=200, body=text, body_bytes=len(text))


def _is_cut(world: World) -> bool:
    """Whether the request breaks off on its way out: its sender dies before its last byte."""
    crash = world.crash
    return crash is not None and (crash.point, crash.mode) in (
        ("C07", "after"),
        ("C08", "before"),
        ("C08", "exception"),
    )


def _reply_due(exchange: Exchange) -> float | None:
    """When its reply will be here, as far as the story of the request alone tells."""
    fate = exchange.fate
    if not exchange.left:
        return exchange.sent_at
    if fate.arrives is None or fate.replies is None or fate.cut:
        return None
    waits = fate.commits if fate.commits is not None and fate.answer != "accepted" and exchange.call.write else 0.0
    return exchange.sent_at + fate.arrives + max(fate.replies, waits) + 0.001


def _through_its_circuit(world: World, call: Call, row: Any) -> None:
    """I19: nothing leaves under a permit given while its circuit was open, and only trials while it is half open."""
    for circuit in world.memory.rows(Circuit):
        later = circuit["name"] == row["circuit"] and row["dispatched_at"] > circuit["since"]
        if later and circuit["state"] in ("open", "held_open"):
            raise Broken("I19", f"{call.tool} leaves through a circuit that is {circuit['state']}")
        if later and circuit["state"] == "half_open" and not row["trial"]:
            raise Broken("I19", f"{call.tool} leaves through a half-open circuit and is no trial")


def _intended(world: World, call: Call, attempt: Any) -> None:
    if world.memory.in_atomic_block:
        raise Broken("I3", f"{call.tool} leaves inside a transaction")
    rows = world.memory.rows(Attempt)
    actions = world.memory.tables.get(Attempt.action.field.related_model, {})
    for row in rows:
        if actions[row["action_id"]]["action_id"] == call.reference and row["number"] == call.attempt:
            return _through_its_circuit(world, call, row)
    raise Broken("I3", f"{call.tool} leaves without a committed permit for its try {call.attempt}")
