"""Play a scenario through the real code: the harness is model, runtime, provider, clock and people.

Events of the world happen at their time. What the product plans itself (tries, looks, polls) happens when it plans
it, and the scripted answers move with it. A play ends when nothing is due any more (ruling 12).
"""

from __future__ import annotations

import heapq
import itertools
import uuid
from collections import deque
from collections.abc import Callable
from datetime import datetime

from django.db import transaction
from steadyhand.contract import OpenRun, Scope
from steadyhand.manifest import Budgets

from recovery import clients, intake
from recovery.clients import Credentials
from recovery.scenarios import callers, plugs, seen, telling, terms
from recovery.scenarios.format import AGENTS, OTHERS, Event, Scenario
from recovery.scenarios.manifest import manifest_of
from recovery.scenarios.people import People
from recovery.scenarios.players import Agent
from recovery.scenarios.seen import Moment, Seen
from recovery.scenarios.world import Clock, World
from recovery.work import sweep
from runs import vault, wall
from runs.ids import new_id
from runs.models import Tenant

MAX_STEPS = 3000
HOLD_THE_END = ("cancel", "crash", "recovery", "resume", "approval", "subagent_started")
"""Events that find the run still open, so the agent has not finished before them."""


class _Undone(Exception):
    """Raised to roll a play back: it leaves nothing behind."""


def play(scenario: Scenario, *, inspect: Callable[[Play], None] | None = None) -> Seen:
    """Play it in one transaction that is rolled back, and say what the record held at the end."""
    found: list[Seen] = []
    try:
        with transaction.atomic():
            one = Play(scenario)
            found.append(one.run())
            if inspect is not None:
                inspect(one)
            raise _Undone
    except _Undone:
        return found[0]


class Play:
    """One scenario being played."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.clock = Clock(scenario.started_at)
        self.world = World(scenario, self.clock, self._happened)
        self.rules = terms.rules_of(scenario)
        self.tenants: dict[str, Tenant] = {}
        self.secrets: dict[str, str] = {}
        self.tenant = self.tenant_named(scenario.tenant)
        self._queue: list[tuple[datetime, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._just: list[Event] = []
        elsewhere = scenario.mode == "ingest"
        who = self._client()
        self.agents = {"": self._told(who) if elsewhere else self._open(who)}
        self.people = People(self.tenant, self.main.run_id)
        self.lines = deque(event for event in scenario.events if event.type in AGENTS and not elsewhere)
        others = [event for event in scenario.of_type(*OTHERS) if not elsewhere or event.type in telling.NOT_TOLD]
        self.script = deque(sorted(others, key=lambda event: (event.t, event.index)))
        self.moments: dict[int, Moment] = {}

    def everybody(self) -> list[Agent]:
        """Each agent once, whatever it is called."""
        return list({agent.run_id: agent for agent in self.agents.values()}.values())

    @property
    def main(self) -> Agent:
        return self.agents[""]

    def run(self) -> Seen:
        with plugs.heard() as lines, plugs.scripted(self.world, self.tenant.pk):
            for _ in range(MAX_STEPS):
                self._settle_down()
                if not self._act_now() and not self._move_on():
                    break
        return self._read(lines)

    def _read(self, lines: plugs.Lines) -> Seen:
        told = [text for agent in self.everybody() for text in agent.told]
        found = seen.read(self.main.run_id, self.tenant.pk, told)
        found.sends, found.sends_of_step = dict(self.world.sends), dict(self.world.sends_of_step)
        found.moments, found.unread = self.moments, self.rules.unread
        found.surfaces["logs"], found.faults = "\n".join(lines.texts), lines.faults
        checks = self.scenario.expect.get("checkpoints") or []
        found.checks = [[e.index for e in self.scenario.events if e.t == check["after_t"]] for check in checks]
        return found

    # --- who and what ---------------------------------------------------------------------------------------

    def tenant_named(self, name: str) -> Tenant:
        if name not in self.tenants:
            slug = f"{name[:20].lower().replace('_', '-')}-{uuid.uuid4().hex[:12]}"
            tenant = Tenant(pk=new_id(), slug=slug, name=name, sealed_key=vault.new_sealed_key())
            with wall.within(tenant.pk):
                tenant.save(force_insert=True)
            self.tenants[name] = tenant
        return self.tenants[name]

    def _client(self) -> Credentials:
        with wall.within(self.tenant.pk):
            _, token = clients.issue_client(tenant=self.tenant, name="scenario-agent", workflows=[])
        who = clients.parse_token(token)
        manifest = manifest_of(self.scenario)
        intake.register_workflow(who, self.scenario.workflow, manifest, request_id="scenario")
        # A sub-agent's own ceilings are the usual ones: those of the file bind the run that it works for.
        unbound = manifest.model_copy(update={"budgets": Budgets(), "required_effects": []})
        intake.register_workflow(who, self._sub_workflow, unbound, request_id="scenario")
        return who

    @property
    def _sub_workflow(self) -> str:
        return f"{self.scenario.workflow[:70]}-sub"

    def _open(self, who: Credentials, *, parent: Agent | None = None) -> Agent:
        request = OpenRun(
            workflow=self._sub_workflow if parent else self.scenario.workflow,
            client_ref=uuid.uuid4().hex,
            intent=self.scenario.intent[:2000],
            scope=Scope(**terms.scope_of(self.scenario, self.rules)),
            parent_run_id=str(parent.run_id) if parent else None,
            deadline_at=terms.deadline_of(self.scenario),
        )
        opened = intake.open_run(who, request, request_id="scenario")
        return Agent(self.scenario, who, uuid.UUID(opened.run_id), opened.workflow_id, self.world, self.schedule)

    def _told(self, who: Credentials) -> Agent:
        """A run that happened elsewhere: its records are told at once, and its agent is not here."""
        self.clock.move(self.clock.at(max(event.t for event in self.scenario.events) + 1))
        run_id = telling.tell(self.scenario, who, terms.scope_of(self.scenario, self.rules))
        return Agent(self.scenario, who, run_id, "", self.world, self.schedule, alive=False)

    def open_child(self, parent: Agent) -> Agent:
        return self._open(parent.who, parent=parent)

    def schedule(self, at: datetime, do: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (at, next(self._numbers), do))

    def agent_of(self, event: Event) -> Agent:
        """Whose line it is: a sub-agent's if it names one."""
        return next((self.agents[name] for name in callers.names_of(event) if name in self.agents), self.main)

    # --- time -----------------------------------------------------------------------------------------------

    def _act_now(self) -> bool:
        """Do one thing whose time has come: an answer that arrives, else the next line of the script."""
        if self._queue and self._queue[0][0] <= self.clock.now:
            heapq.heappop(self._queue)[2]()
        elif (event := self._line_due()) is not None:
            callers.act(self, event)
            self._happened(event)
        elif self._finishes():
            self.main.finish()
        else:
            return False
        self._note()
        return True

    def _line_due(self) -> Event | None:
        heads = [lines[0] for lines in (self.script, self.lines) if lines and self._ready(lines[0])]
        event = min(heads, key=lambda head: (head.t, head.index), default=None)
        if event is not None and self.clock.at(event.t) <= self.clock.now:
            (self.lines if event.type in AGENTS else self.script).popleft()
            return event
        return None

    def _ready(self, event: Event) -> bool:
        return event.type not in AGENTS or not callers.is_blocked(self, event)

    def _move_on(self) -> bool:
        """Move the clock to the next thing; at the end of everything, let a blocked agent go on."""
        times = [self.clock.at(lines[0].t) for lines in (self.script, self.lines) if lines and self._ready(lines[0])]
        times += [self._queue[0][0]] if self._queue else []
        times += [at for agent in self.everybody() if (at := agent.next_at()) is not None]
        times += self._due_times()
        ahead = [at for at in times if at > self.clock.now]
        if ahead:
            self._pass_checkpoints(min(ahead))
            self.clock.move(min(ahead))
            return True
        if self.lines:
            event = self.lines.popleft()
            callers.act(self, event)
            self._happened(event)
            self._note()
            return True
        return False

    def _due_times(self) -> list[datetime]:
        people_answer = not self.scenario.of_type("deadline")
        asked = [step for step, looks in self.world.looks.items() if looks]
        return plugs.due_times(self.tenant.pk, people_answer=people_answer, asked=asked)

    def _settle_down(self) -> None:
        """What the clock brings and what the worker finds to do, until both have nothing left at this moment."""
        for _ in range(20):
            if any(at <= self.clock.now for at in self._due_times()):
                sweep.sweep(ring=lambda decision_id: None)
                self._note()
            ordered = plugs.waiting(self.tenant.pk)
            for decision_id in ordered:
                plugs.work(decision_id)
                self._note()
            for agent in self.everybody():
                agent.poke()
            if not ordered:
                return

    def _finishes(self) -> bool:
        """Whether the agent would say that it is done: no lines left, nothing under way, and its run is its own."""
        agent = self.main
        ahead = any(event.type in HOLD_THE_END for event in self.script)
        waiting = [call for call in agent.calls if call.stage != "done"]
        if self.lines or ahead or not agent.alive or waiting:
            return False
        return agent.run().state in ("planning", "executing")

    # --- checkpoints ----------------------------------------------------------------------------------------

    def _happened(self, event: Event) -> None:
        self._just.append(event)

    def _note(self) -> None:
        """Keep how the run stands right after each event that a checkpoint names."""
        wanted = {check.get("after_t") for check in self.scenario.expect.get("checkpoints") or []}
        for event in self._just:
            if event.t in wanted:
                self.moments[event.index] = seen.moment(self.main.run(), self.clock.now)
        self._just.clear()

    def _pass_checkpoints(self, until: datetime) -> None:
        """A checkpoint whose event never came counts at its own time: kept under its number below zero."""
        for number, check in enumerate(self.scenario.expect.get("checkpoints") or []):
            at = self.clock.at(float(check["after_t"]))
            if at < until and -1 - number not in self.moments:
                self.moments[-1 - number] = seen.moment(self.main.run(), self.clock.now)
