"""A proposed call, checked and prepared before anything is written: arguments, scope, identity, keys."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

from steadyhand.contract import Proposal
from steadyhand.identity import canonical
from steadyhand.manifest import Tool
from steadyhand.paths import MISSING, dig

from recovery import crashpoints
from recovery.rules import circuit, scope
from recovery.rules.scope import currency_of
from runs import redact, vault
from runs.definitions import Definition, RunFacts
from runs.ids import new_id
from runs.models import Action, Run
from runs.querysets import read_clock

LEASE_GRACE_SECONDS = 15.0


@dataclass(frozen=True)
class Refusal:
    """Why a proposal may not become a call; `suggested` is what to do instead, where that is not the reason's own."""

    reason: str
    field: str = ""
    sentence: str = ""
    suggested: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """Everything about a proposal that does not depend on the run's present state."""

    run_id: uuid.UUID
    facts: RunFacts
    tool: Tool
    step: str
    layer: str
    action_id: str
    arguments_hash: str
    redacted: Any
    sealed: bytes
    value_minor: int | None
    currency: str
    refusal: Refusal | None
    arguments: dict[str, Any]
    business_key: str

    @property
    def lease_seconds(self) -> float:
        """Longer than the call may take: a lease that ends first would call a running call unknown."""
        return self.tool.timeout_seconds + LEASE_GRACE_SECONDS

    @property
    def circuit(self) -> str:
        """The circuit that this call goes through."""
        return circuit.of_call(self.tool)

    def key(self, generation: int = 1) -> str:
        return vault.remote_key(self.facts.definition.keys, self.action_id, generation)


def prepare(facts: RunFacts, run_id: uuid.UUID, proposal: Proposal) -> Prepared:
    """Check and identify a proposal. Raises BadInput for arguments that cannot be recorded at all."""
    definition = facts.definition
    declared = definition.tools.get(proposal.tool)
    named = redact.clean_text(proposal.tool, 120)
    tool = declared or Tool.model_construct(name=named, effect="write")
    own_key = tool.idempotency.field
    plain = canonical(proposal.arguments, without=frozenset([own_key]) if own_key else frozenset())
    step = proposal.step or proposal.tool
    arguments_hash = vault.hash_arguments(definition.keys, plain)
    business_key = _business_key(definition, tool, proposal.arguments)
    refusal = Refusal("unsupported_operation", sentence=f"There is no tool {named}.")
    return Prepared(
        run_id=run_id,
        facts=facts,
        tool=tool,
        step=redact.clean_text(step, 120),
        layer=proposal.layer,
        action_id=vault.action_id(
            definition.keys,
            run_id=run_id,
            step=step,
            tool=proposal.tool,
            tool_version=tool.version,
            arguments_hash=arguments_hash,
        ),
        arguments_hash=arguments_hash,
        redacted=redact.redact(proposal.arguments, sensitive=tool.sensitive_fields),
        sealed=vault.seal(definition.keys, json.loads(plain)),
        value_minor=_value(tool, proposal.arguments),
        currency=currency_of(tool, proposal.arguments),
        refusal=_refusal(facts, declared, proposal) if declared else refusal,
        arguments=proposal.arguments,
        business_key=business_key,
    )


def _business_key(definition: Definition, tool: Tool, arguments: dict[str, Any]) -> str:
    """What `once_per` names, as one hash; a field that is left out counts with the others as left out."""
    if not tool.once_per or tool.effect == "read":
        return ""
    named = {path: value for path in tool.once_per if (value := dig(arguments, path)) is not MISSING}
    return vault.hash_arguments(definition.keys, canonical({"tool": tool.name, "of": named}))


def _refusal(facts: RunFacts, tool: Tool, proposal: Proposal) -> Refusal | None:
    """The first reason not to make this call: its shape, then its scope, whose end alone needs the clock."""
    if proposal.unreadable is not None:
        return Refusal(proposal.unreadable, sentence="The arguments cannot be read as JSON.")
    arguments = proposal.arguments
    shape = facts.definition.check_arguments(tool, arguments)
    if shape is not None:
        return Refusal("invalid_arguments", field=shape[0], sentence=f"{shape[0] or 'arguments'} {shape[1]}.")
    crashpoints.point("C01")
    outside = scope.breach(facts.scope, tool, arguments, read_clock)
    return Refusal("policy_denied", field=outside[0], sentence=f"{outside[1].capitalize()}.") if outside else None


def item_hash(definition: Definition, item: Any) -> str:
    """The identity of one item of a batch: the hash that its own action carries (F049)."""
    return vault.hash_arguments(definition.keys, canonical(item if isinstance(item, dict) else {"item": item}))


def _value(tool: Tool, arguments: dict[str, Any]) -> int | None:
    value = dig(arguments, tool.value_field) if tool.value_field else None
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62 else None


def write_action(run: Run, prepared: Prepared, state: str, **more: Any) -> Action:
    """The prepared call as a row; `more` replaces what it would say by itself."""
    own: dict[str, Any] = {
        "action_id": prepared.action_id,
        "step": prepared.step,
        "tool": prepared.tool.name,
        "tool_version": prepared.tool.version,
        "effect": prepared.tool.effect,
        "turn": run.turns,
        "arguments_hash": prepared.arguments_hash,
        "arguments": prepared.redacted,
        "sealed_arguments": prepared.sealed,
        "value_minor": prepared.value_minor,
        "currency": prepared.currency,
        "idempotency_key": prepared.key(),
        "business_key": prepared.business_key,
        "state": state,
    }
    return Action.objects.create(pk=new_id(), tenant_id=run.tenant_id, run=run, **(own | more))
