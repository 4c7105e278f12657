"""One guarded tool call: through the core in this process, and over HTTP with the SDK."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable
from typing import Any

from steadyhand import Boundary, Call, Tool
from steadyhand.blocking import Blocking, now
from steadyhand.contract import Proposal, Report, Strict
from steadyhand.identity import canonical
from steadyhand.transport import Transport, options

from benchmarks.scenery import SCOPE, TOOL, WORKFLOW, Scenery, arguments, observation, reply
from recovery import intake
from runs import definitions, vault

numbers = itertools.count(1)


class Pong(Strict):
    ok: bool


def core(scenery: Scenery, run: uuid.UUID) -> None:
    """Propose, do nothing, report: validation, authentication, scope, budget, identity, both commits, both events."""
    number = next(numbers)
    proposal = Proposal(
        workflow_id=str(scenery.workflow_id), tool=TOOL, arguments=arguments(number), step=f"credit-{number}"
    )
    permit = intake.propose(scenery.who, run, proposal, request_id="bench")
    told = Report(
        attempt_id=permit.attempt_id or "", tool=TOOL, fence=permit.fence or 0, observation=observation(number)
    )
    answer = intake.report(scenery.who, run, told, request_id="bench")
    if answer.answer != "result":
        raise RuntimeError(f"the call was not ordinary: {permit.answer}, {answer.answer}")


def permitted(scenery: Scenery, run: uuid.UUID) -> None:
    """A call that is granted; nobody reports it."""
    number = next(numbers)
    proposal = Proposal(
        workflow_id=str(scenery.workflow_id), tool=TOOL, arguments=arguments(number), step=f"credit-{number}"
    )
    permit = intake.propose(scenery.who, run, proposal, request_id="bench")
    if permit.answer != "execute":
        raise RuntimeError(f"the call was not granted: {permit.answer}")


def checking(scenery: Scenery, run: uuid.UUID) -> Callable[[], None]:
    """Read a typical request, check it against its tool's schema and give it its identity; no database, no seal."""
    facts = definitions.facts(scenery.who.tenant_id, run)
    assert facts is not None
    definition, tool = facts.definition, facts.definition.tools[TOOL]
    asked = Proposal(workflow_id=str(scenery.workflow_id), tool=TOOL, arguments=arguments(1), step="credit-1")
    text = asked.model_dump_json()

    def check() -> None:
        proposal = Proposal.model_validate_json(text, strict=True)
        if definition.check_arguments(tool, proposal.arguments) is not None:
            raise RuntimeError("the typical request is not acceptable")
        vault.hash_arguments(definition.keys, canonical(proposal.arguments))

    return check


def over_http(boundary: Boundary) -> Callable[[], None]:
    """A new run over HTTP; the function makes its next call, as an agent's code would."""
    run = boundary.run(workflow=WORKFLOW, intent="Credit a customer.", scope=SCOPE)

    def credit(given: dict[str, Any], call: Call) -> dict[str, Any]:
        return reply(1)

    def call() -> None:
        number = next(numbers)
        run.call(Tool(TOOL, credit), arguments(number), step=f"credit-{number}")

    return call


def pinging(address: str, token: str) -> Callable[[], object]:
    """The way there and back by the SDK's own client, to an address that does nothing."""
    transport = Transport(Blocking(time.sleep).line(None, options(address, token, timeout=10)))
    return lambda: now(transport.get("/ping", Pong))
