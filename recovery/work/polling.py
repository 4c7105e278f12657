"""Preparing the poll of an accepted job from its manifest and from what the provider said when it took the job."""

from __future__ import annotations

from steadyhand.contract import Observation
from steadyhand.manifest import Tool
from steadyhand.paths import MISSING, dig

from recovery.connectors.base import Polling
from recovery.rules.classify import Classified, classify
from recovery.work import sending
from runs import vault
from runs.definitions import Definition
from runs.models import Action
from runs.querysets import read_clock


def about(definition: Definition, tool: Tool, action: Action) -> Polling:
    """How to ask whether this action's job has ended; the tool declares a poll."""
    assert tool.poll is not None  # noqa: S101  (assembly.polled)
    asked = definition.tools[tool.poll.tool]
    accepted = vault.unseal(definition.keys, action.sealed_result) if action.sealed_result else None
    values = {field: dig(accepted, path) for field, path in tool.poll.arguments.items()}
    lacks = next((tool.poll.arguments[field] for field, value in values.items() if value is MISSING), "")

    def read(observation: Observation) -> Classified:
        return classify(
            observation, asked, clock=read_clock, breach=lambda result: definition.check_result(asked, result)
        )

    return Polling(
        poll=tool.poll,
        outgoing=None if lacks else sending.outgoing(definition, asked, action, arguments=values),
        lacks=lacks,
        accepted_id=action.external_id,
        classify=read,
        fits=lambda answer: definition.check_result(tool, answer) is None,
    )
