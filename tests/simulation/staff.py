"""Who works inside: workers that are told by a broker, two sweeps, and callbacks that come in."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from recovery import callbacks
from recovery.models import Decision, HumanTask
from recovery.work import sweep, worker
from runs.models import Action, Attempt, Run
from runs.states import RUN_OPEN, TASK_OPEN
from tests.simulation import shop
from tests.simulation.remote import Job
from tests.simulation.world import EPOCH, Fault, Killed, World

SWEEP_EVERY = 5.0
AGENTS_TURN = ("planning", "executing", "recovering")


@dataclass
class Broker:
    """Messages that carry an id: lost, doubled, late and out of order, each in a share of all cases."""

    world: World
    loses: float = 0.05
    doubles: float = 0.1
    delays: float = 0.1
    dies: float = 0.0
    gone: tuple[float, float] = (0.0, 0.0)
    rung: int = 0

    def ring(self, decision_id: uuid.UUID) -> None:
        world = self.world
        world.point("C16")
        self.rung += 1
        if self.gone[0] <= world.now < self.gone[1]:
            raise ConnectionError("the broker is not there")
        if world.rng.random() < self.loses:
            return
        for _ in range(2 if world.rng.random() < self.doubles else 1):
            late = world.rng.uniform(60.0, 7200.0) if world.rng.random() < self.delays else 0.0
            world.spawn(
                f"worker {self.rung}", lambda: self.work(decision_id), after=late + world.rng.uniform(0.01, 0.3)
            )
        world.point("C16", "after")

    def work(self, decision_id: uuid.UUID) -> None:
        """One message in one worker; whatever breaks in it leaves the row as it was."""
        world = self.world
        world.doomed = world.rng.random() < self.dies
        try:
            worker.execute(decision_id)
            world.point("C25", "after")
        except Fault as wrong:
            world.note(f"a worker failed: {wrong}")
        except Killed:
            if not self.dies and world.rng.random() < 0.5:  # the broker gives it to the next one
                world.spawn("worker", lambda: self.work(decision_id), after=1.0)
            raise


@dataclass
class Sweeps:
    """Two schedulers: by turns, and often both at once. They look when something is due, and not in between."""

    world: World
    broker: Broker
    last: float = -SWEEP_EVERY
    off: tuple[float, float] = (0.0, 0.0)
    _seen: int = -1
    _due: float | None = None

    def next_at(self) -> float | None:
        """When the next sweep finds something: looked for again whenever something was committed."""
        if self._seen != self.world.memory.commits:
            self._seen, self._due = self.world.memory.commits, self._earliest()
        if self._due is None:
            return None
        at = max(self._due + 0.001, self.last + SWEEP_EVERY)
        return self.off[1] if self.off[0] <= at < self.off[1] else at

    def sweep(self) -> None:
        self.last = self.world.now
        for _ in range(2 if self.world.rng.random() < 0.3 else 1):
            self._one()
        self._seen = -1

    def _one(self) -> None:
        """One pass; a scheduler that dies in it is started again for the next."""
        try:
            sweep.sweep(ring=self.broker.ring)
        except (Killed, Fault) as dead:
            self.world.note(f"a sweep died: {dead}")

    def _earliest(self) -> float | None:
        memory, found = self.world.memory, []
        found += [row["lease_until"] for row in memory.rows(Attempt) if row["ended_at"] is None]
        found += [row["due_at"] for row in memory.rows(Action) if row["due_at"] is not None]
        for row in memory.rows(Decision):
            if row["state"] == "requested":
                found.append(row["nudged_at"] + sweep.NUDGE_AGAIN)
            elif row["state"] == "running" and row["lease_until"] is not None:
                found.append(max(row["lease_until"], row["nudged_at"] + sweep.NUDGE_AGAIN))
        found += [row["claimed_until"] for row in memory.rows(HumanTask) if row["state"] == "claimed"]
        for row in memory.rows(HumanTask):
            if row["state"] in TASK_OPEN:
                found += [row[name] for name in ("remind_at", "near_at", "snoozed_until")]
                if row["breached_at"] is None and row["paused_at"] is None:
                    found.append(row["due_at"])
        for row in memory.rows(Run):
            if row["state"] in AGENTS_TURN and row["state"] in RUN_OPEN:
                found.append(min(filter(None, (row["elapses_at"], row["deadline_at"]))))
        told = [at for at in found if at is not None]
        return (min(told) - EPOCH).total_seconds() if told else None


@dataclass
class Postman:
    """The provider's own messages about jobs that ended: lost, late and more than once."""

    world: World
    loses: float = 0.0
    doubles: float = 0.2
    delays: float = 0.2
    only: tuple[str, ...] = ("notify",)
    sent: int = 0

    def told(self, job: Job, at: float) -> None:
        if job.call.tool in self.only and self.world.rng.random() >= self.loses:
            self.post(json.loads(json.dumps(shop.job_told(job))))

    def post(self, payload: dict[str, Any], *, after: float | None = None) -> None:
        self.sent += 1
        name, rng = f"msg-{self.sent}", self.world.rng
        late = rng.uniform(30.0, 1500.0) if rng.random() < self.delays else 0.2
        for _ in range(2 if rng.random() < self.doubles else 1):
            wait = (late if after is None else after) + rng.uniform(0.0, 0.2)
            self.world.spawn(f"callback {name}", lambda: self.deliver(name, payload), after=wait)

    def deliver(self, name: str, payload: dict[str, Any]) -> None:
        sent_at = self.world.clock() - timedelta(seconds=1)
        try:
            callbacks.take(shop.TENANT, source="shop", message_id=name, sent_at=sent_at, payload=payload)
        except (Killed, Fault):
            self.world.spawn(f"callback {name}", lambda: self.deliver(name, payload), after=10.0)
