"""Operators as they are: they claim, press what is offered and now and then what is not, and vouch wrongly."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from recovery import panel
from recovery.models import HumanTask
from recovery.panel import Panel
from recovery.rules import policy
from recovery.work import decisions
from recovery.work.wishes import NoSuchTask, Order, Overtaken, ReasonMissing, Refused, Unusable
from runs import wall
from runs.models import Person
from runs.states import TASK_OPEN
from tests.simulation import shop
from tests.simulation.remote import Remote
from tests.simulation.staff import Broker
from tests.simulation.world import Fault, Killed, World

TURNED_DOWN = (NoSuchTask, Refused, Overtaken, ReasonMissing, Unusable)
ROLES = {"alice": "support", "omar": "oncall", "ada": "admin", "bob": "viewer"}
MOST_ACTS = 25


@dataclass
class People:
    """Everybody in front of the queue. `pressed` tells what was done, `vouched` what was said of which call."""

    world: World
    broker: Broker
    remote: Remote
    verbs: tuple[str, ...] = ("claim", "reconcile", "retry", "resume", "cancel", "compensate", "approve", "attest")
    wrong: float = 0.0
    forbidden: float = 0.1
    every: tuple[float, float] = (60.0, 900.0)
    acts: int = MOST_ACTS
    pressed: list[tuple[str, str]] = field(default_factory=list)
    vouched: dict[str, str] = field(default_factory=dict)
    known: dict[str, Person] = field(default_factory=dict)

    def begin(self) -> None:
        self.known = {name: Person.objects.get(name=name.capitalize()) for name in ROLES}
        self.world.spawn("people", self._shift, after=self.world.rng.uniform(*self.every))

    def _shift(self) -> None:
        while self.acts > 0:
            self.acts -= 1
            tasks = list(HumanTask.objects.filter(state__in=TASK_OPEN).order_by("id"))
            if tasks:
                self._act(self.world.rng.choice(tasks))
            self.world.sleep(self.world.rng.uniform(*self.every))

    def _act(self, task: HumanTask) -> None:
        who = self.known[self.world.rng.choice(("alice", "omar", "omar", "ada"))]
        with wall.within(shop.TENANT):
            seen = panel.read(HumanTask.objects.get(pk=task.pk), who)
        verb = self._chosen(seen)
        if verb is None:
            return
        self.world.sleep(self.world.rng.choice((0.0, 1.0, 45.0)))  # a page lies open for a while
        self.press(verb, seen, who)

    def _chosen(self, seen: Panel) -> str | None:
        if self.world.rng.random() < self.forbidden:
            return self.world.rng.choice(self.verbs)
        offered = [one.name for one in seen.verbs if one.allowed and one.name in self.verbs]
        return self.world.rng.choice(offered) if offered else None

    def press(self, verb: str, seen: Panel, who: Person, *, outcome: str = "") -> str:
        """One click; the word for what it came to."""
        said = outcome or self._truth(seen)
        order = Order(
            task_id=seen.task.pk, by=who, reason="Looked into it with the provider",
            evidence_hash=seen.evidence_hash, version=seen.task.version, key=uuid.UUID(int=self._click()).hex,
            outcome=said, reference="prov-1",
        )  # fmt: skip
        try:
            self._send(verb, order)
        except TURNED_DOWN as no:
            self.pressed.append((verb, f"no: {type(no).__name__}"))
            return "no"
        except (Killed, Fault):
            self.pressed.append((verb, "lost"))
            return "lost"
        if verb == "attest" and seen.task.action is not None:
            self.vouched[seen.task.action.action_id] = said
        self.pressed.append((verb, "done"))
        self.world.note(f"{who} chose {verb} {said if verb == 'attest' else ''}")
        return "done"

    def _send(self, verb: str, order: Order) -> None:
        act = getattr(decisions, verb)
        if verb == "reconcile":
            act(order, ring=self.broker.ring)
        else:
            act(order)

    def _truth(self, seen: Panel) -> str:
        """What the provider's own people would say, unless this one is mistaken."""
        if seen.task.action is None:
            return "present"
        there = bool(self.remote.standing(seen.task.action.action_id))
        mistaken = self.world.rng.random() < self.wrong
        return "present" if there != mistaken else "absent"

    def _click(self) -> int:
        return self.world.rng.getrandbits(120)


def offered(seen: Iterable[policy.Verb]) -> list[str]:
    return [one.name for one in seen if one.allowed]
