"""One episode: a seed and what is to go wrong, played to its end over the real code, with every invariant watched."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from recovery import circuits, inbox, intake, permissions, reports, settle, tasks
from recovery.connectors import http
from recovery.permissions import ROLES as ABILITIES
from recovery.work import sending
from runs import definitions, vault
from runs.models import AgentClient, Person, Tenant, Workflow
from tests.simulation import crashes, shop
from tests.simulation.agents import Agent, ConnectionLost, Plan, Server, Temper
from tests.simulation.fates import CALM, Fate, Script, Weather
from tests.simulation.installing import installed
from tests.simulation.outside import Outside
from tests.simulation.patches import Patches
from tests.simulation.people import ROLES, People
from tests.simulation.remote import Outage, Remote
from tests.simulation.shop import AMOUNT, Flavour
from tests.simulation.staff import Broker, Postman, Sweeps
from tests.simulation.truth import Truth
from tests.simulation.world import Crash, World

CLIENT = shop.uuid.UUID(int=(7 << 76) | (2 << 62) | 0xC11E)
SECRET = b"s" * 32
WHO = intake.Credentials(shop.TENANT, CLIENT, SECRET)
READ = (("find", {"invoice": "INV-1"}),)
CREDIT = (("credit", {"account": "acct_1", "amount": AMOUNT}),)
SHIP = (("ship", {"order": "ord_1", "amount": 900}),)
PLAIN: Plan = (READ, CREDIT, SHIP)


@dataclass
class Setup:
    """What one episode is made of. Everything that is left open follows from the seed."""

    seed: int
    crash: Crash | None = None
    flavour: Flavour = field(default_factory=Flavour)
    plan: Plan = PLAIN
    weather: Weather = CALM
    told: dict[str, list[Fate]] = field(default_factory=dict)
    temper: Temper = field(default_factory=Temper)
    tempers: tuple[Temper, ...] = ()
    people: dict[str, Any] | None = None
    broker: dict[str, Any] = field(default_factory=lambda: {"loses": 0.02, "doubles": 0.05, "delays": 0.02})
    postman: dict[str, Any] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)
    outages: list[Outage] = field(default_factory=list)
    looks_fail: float = 0.0
    sweeps_off: tuple[float, float] = (0.0, 0.0)
    later: list[tuple[float, Callable[[Stage], None]]] = field(default_factory=list)
    faults: tuple[str, ...] = ()
    calm: bool = False
    workers_die: float = 0.0
    skew: float = 0.0
    says: str = ""


@dataclass
class Stage:
    """An episode that is being played, or was: all that a test may want to ask afterwards."""

    setup: Setup
    world: World
    remote: Remote
    outside: Outside
    agents: list[Agent]
    broker: Broker
    sweeps: Sweeps
    postman: Postman
    people: People
    truth: Truth

    def arrivals(self, tool: str) -> int:
        return sum(one.call.tool == tool for one in self.remote.arrivals)

    def effects(self, tool: str) -> int:
        return sum(one.call.tool == tool and not one.undone_by for one in self.remote.ledger)

    def rows(self, model: type[Any], **named: Any) -> list[Any]:
        return list(model.objects.filter(**named).order_by("pk"))


_stage: list[Stage] = []


def stage() -> Stage:
    """The episode that is being played."""
    return _stage[-1]


@contextmanager
def theatre() -> Iterator[Patches]:
    """The real code on the simulator's stage, for as many episodes as are played inside."""
    with installed(lambda: stage().world.memory) as patches:
        _quiet(patches)
        patches.attribute(intake, "_quickly", lambda *a, **k: None)
        patches.attribute(reports, "quickly", lambda *a, **k: None)
        patches.attribute(http, "_answer", lambda question, look: stage().outside.fetch(question, look))
        patches.attribute(sending, "transmit", lambda outgoing: stage().outside.transmit(outgoing))
        patches.everywhere(tasks.ring, lambda decision_id: stage().broker.ring(decision_id))
        patches.attribute(permissions, "grants", _grants)
        patches.attribute(permissions, "people", _people)
        patches.attribute(inbox, "_listening", _listening)
        patches.attribute(settle, "random", _Chance())
        patches.attribute(circuits, "random", _Chance())
        patches.attribute(sending, "time", _Monotonic())
        crashes.tie(patches, lambda: stage().world)
        yield patches


def _quiet(patches: Patches) -> None:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    patches._undo.append(lambda: logging.disable(before))


class _Chance:
    """The record's own dice, from the episode's seed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(stage().world.rng, name)


class _Monotonic:
    """A process's own clock."""

    @staticmethod
    def monotonic() -> float:
        return stage().world.now + stage().setup.skew


def _grants(person: Person) -> Any:
    return {shop.TENANT: frozenset(ABILITIES[ROLES[person.name.lower()]])} if person.is_active else {}


def _people(tenant_id: Any, ability: str) -> list[Person]:
    return [one for one in Person.objects.order_by("name") if permissions.may(one, ability, tenant_id)]


def _listening(source: str) -> list[dict[str, Any]]:
    """What `inbox` asks PostgreSQL in its own words: every tool that listens to this source."""
    tools = [tool for workflow in Workflow.objects.all() for tool in workflow.manifest["tools"]]
    return [tool for tool in tools if (tool.get("callback") or {}).get("source") == source]


# --- playing --------------------------------------------------------------------------------------------------


def play(setup: Setup, *, tracing: bool = False, watch: bool = True) -> Stage:
    """Play one episode to its end. Raises Broken if something does not hold, and whatever the code raises; both carry
    the line that plays it again, and the trace."""
    made = _set_up(setup, tracing)
    _stage[:] = [made]
    try:
        _furnish(made)
        _begin(made)
        if watch:
            made.world.after_event = made.truth.check
        made.world.run()
        if watch:
            made.truth.settle()
    except Exception as broken:
        broken.add_note(replay_line(setup))
        broken.add_note("\n".join(made.world.trace))
        raise
    return made


def replay_line(setup: Setup) -> str:
    """The command that plays exactly this episode again."""
    crash = f" --crash {setup.crash}" if setup.crash else ""
    faults = "".join(f" --fault {fault}" for fault in setup.faults)
    calm = " --calm" if setup.calm else ""
    return f"python -m tests.simulation --seed {setup.seed}{crash if not calm else ''}{faults}{calm}"


def _set_up(setup: Setup, tracing: bool) -> Stage:
    world = World(setup.seed, setup.crash, tracing)
    script = Script(setup.weather, {tool: list(fates) for tool, fates in setup.told.items()})
    flavour = setup.flavour
    remote = Remote(
        random.Random(setup.seed + 1), script, keys=flavour.keyed, retention=flavour.retention,
        outages=list(setup.outages), looks_fail=setup.looks_fail,
    )  # fmt: skip
    outside = Outside(world, remote, says=setup.says)
    broker = Broker(world, dies=setup.workers_die, **setup.broker)
    sweeps = Sweeps(world, broker, off=setup.sweeps_off)
    postman = Postman(world, **setup.postman)
    people = People(world, broker, remote, **(setup.people or {}))
    truth = Truth(world, remote, flavour, people.vouched)
    remote.told = postman.told
    world.timer, world.tick = sweeps.next_at, sweeps.sweep
    return Stage(setup, world, remote, outside, [], broker, sweeps, postman, people, truth)


def _furnish(made: Stage) -> None:
    """A tenant, its people, its agent's credentials and its workflow."""
    definitions._by_run.clear()
    memory, (workflow_id, manifest) = made.world.memory, shop.manifest_of(made.setup.flavour)
    memory.insert(Tenant, {"id": shop.TENANT, "slug": "northwind", "name": "Northwind", "sealed_key": _sealed_key()})
    for name in ROLES:
        memory.insert(Person, {"email": f"{name}@people.example", "name": name.capitalize(), "password": ""})
    memory.insert(
        AgentClient,
        {"id": CLIENT, "tenant_id": shop.TENANT, "name": "billing-agent", "secret_hash": SECRET, "workflows": [],
         "expires_at": made.world.clock() + timedelta(days=90)},
    )  # fmt: skip
    memory.insert(
        Workflow,
        {"id": workflow_id, "tenant_id": shop.TENANT, "name": "billing-case", "version": 1, "manifest": manifest,
         "manifest_hash": ""},
    )  # fmt: skip
    memory._log.clear()


_KEYS: list[bytes] = []


def _sealed_key() -> bytes:
    """The same key in every process, so that the same seed gives the same ids everywhere."""
    if not _KEYS:
        _KEYS.append(vault._installation().encrypt(b"simulated tenant key, 32 bytes!!"))
    return _KEYS[0]


def _begin(made: Stage) -> None:
    setup, world = made.setup, made.world
    server = Server(world, **setup.server)
    workflow_id, _ = shop.manifest_of(setup.flavour)
    for number, temper in enumerate((setup.temper, *setup.tempers)):
        agent = Agent(
            world, server, made.outside, WHO, "billing-case", workflow_id, setup.plan, temper, f"ref-{number}"
        )  # fmt: skip
        made.agents.append(agent)
        world.spawn(f"agent {agent.ref}", agent.live, after=number * 0.5)
        _wish(world, agent)
    if setup.people is not None:
        made.people.begin()
    for at, happen in setup.later:
        world.spawn("later", lambda happen=happen: happen(made), after=at)


def _wish(world: World, agent: Agent) -> None:
    """What somebody else asks for in the middle of the run."""
    for at, ask in ((agent.temper.cancels_at, agent.cancel), (agent.temper.rolls_back_at, agent.roll_back)):
        if at is not None:
            world.spawn("wish", lambda ask=ask: _asked(agent, ask), after=at)


def _asked(agent: Agent, ask: Callable[[], None]) -> None:
    for _ in range(3):
        try:
            if agent.run_id is not None:
                ask()
            return
        except ConnectionLost:
            agent.world.sleep(5.0)
