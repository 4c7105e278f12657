"""A run as far as somebody has told what happened in it elsewhere, and what a record of it may speak about."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from steadyhand.contract import OpenRun, Proposal, RecordedCall, RunOpened

from recovery.proposal import Prepared, prepare
from recovery.rules.classify import Classified
from runs import definitions
from runs.models import Action, AgentClient, Run
from runs.record import Actor
from runs.states import RUN_OPEN

Opener = Callable[[OpenRun], RunOpened]
ORIGIN = "ingest"


class Bad(Exception):
    """A record that cannot be taken in: the field at fault and what its sender should do."""

    def __init__(self, field: str, remedy: str) -> None:
        super().__init__(f"{field}: {remedy}")
        self.field = field
        self.remedy = remedy


@dataclass
class Story:
    """One run as far as it is told. `asked` holds the calls that the table has to be asked about, with what came back
    last; `run` is locked."""

    client: AgentClient
    actor: Actor
    opener: Opener
    now: datetime
    run: Run | None = None
    asked: dict[uuid.UUID, Classified | None] = field(default_factory=dict)

    def at(self, told: datetime) -> datetime:
        """The time that a record gives, never in the future."""
        return min(told, self.now)


def run_of(story: Story) -> Run:
    if story.run is None:
        raise Bad("run", "send the record of this run first")
    if story.run.origin != ORIGIN:
        raise Bad("run", "this run goes through the boundary: propose and report its calls there")
    return story.run


def open_run_of(story: Story) -> Run:
    run = run_of(story)
    if run.state not in RUN_OPEN:
        raise Bad("run", "this run has ended: tell what came after it as a run of its own")
    return run


def call_of(run: Run, step: str) -> Action:
    action = run.actions.filter(step=step, role="call").order_by("-id").first()
    if action is None:
        raise Bad("step", "send the call of this step first")
    return action


def prepared(run: Run, told: RecordedCall) -> Prepared:
    facts = definitions.learn(run)
    if told.tool not in facts.definition.tools:
        raise Bad("tool", "declare this tool in the workflow first")
    asked = Proposal(workflow_id=str(facts.definition.id), tool=told.tool, arguments=told.arguments, step=told.step)
    return prepare(facts, run.pk, asked)
