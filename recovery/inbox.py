"""Verified messages of providers: kept once each, and brought together with the call that they name (FAULTS D).

A message names a call by our own id or key, or by the provider's id as our call got it in its accepted reply. The
second kind may come before that reply: then it waits here.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Func, JSONField, Value
from steadyhand.manifest import Callback

from recovery.models import InboxMessage
from recovery.rules import foreign, told
from runs import definitions, record, redact, vault
from runs.models import Action, Effect, Tenant, Workflow


@dataclass(frozen=True)
class Letter:
    """A message that was verified. `payload` is its body, read so that it can be kept."""

    tenant_id: uuid.UUID
    source: str
    message_id: str
    sent_at: datetime
    payload: dict[str, Any]


@dataclass(frozen=True)
class Named:
    """What a letter may name, by all contracts that listen to its source: our references, and the provider's ids."""

    references: frozenset[str]
    identities: frozenset[str]
    sensitive: frozenset[str]

    @property
    def identity(self) -> str:
        return min(self.identities, default="")


class JustArrived(Exception):
    """While this letter was being put aside, the reply that brings its call's id was recorded: look again."""


def named(letter: Letter) -> Named:
    """Read the letter with the eyes of every contract that listens to its source."""
    references, identities, sensitive = set(), set(), set()
    for tool in _listening(letter.source):
        callback = Callback.model_validate(tool["callback"])
        references.add(told.word_at(letter.payload, callback.reference))
        identities.add(identity_in(letter, callback))
        sensitive |= set(tool.get("sensitive_fields", ()))
    return Named(frozenset(references - {""}), frozenset(identities - {""}), frozenset(sensitive))


def keep(letter: Letter, found: Named) -> InboxMessage | None:
    """The letter's row, `waiting`; None if this message was taken before: whoever sends it again changes nothing."""
    tenant = Tenant.objects.get(pk=letter.tenant_id)
    try:
        with transaction.atomic():
            return InboxMessage.objects.create(
                tenant=tenant,
                source=letter.source,
                message_id=letter.message_id,
                sent_at=letter.sent_at,
                reference=redact.clean_text(min(found.references, default=""), 200),
                external_id=found.identity,
                raw=redact.redact(letter.payload, sensitive=found.sensitive),
                sealed_body=vault.seal(vault.keys(tenant.pk, tenant.sealed_key), letter.payload),
            )
    except IntegrityError:
        return None


def put_away(message: InboxMessage, state: str, action: Action | None) -> None:
    InboxMessage.objects.filter(pk=message.pk).update(state=state, action=action)


def call_of(letter: Letter, found: Named) -> Action | None:
    """The one write that the letter names, as its own contract reads it; None for none, and for several."""
    for candidates in (_by_reference(found.references), _by_identity(letter.source, found.identities)):
        ours = [action for action in candidates if _listens(action, letter)]
        open_ones = [action for action in ours if action.settled_at is None]
        if ours:
            chosen = open_ones or ours
            return chosen[0] if len(chosen) == 1 else None
    return None


def wait_for(letter: Letter, found: Named) -> None:
    """Let the letter wait for the reply that brings its call's id. Raises JustArrived if that came meanwhile."""
    hold_identity(letter.tenant_id, letter.source, found.identity)
    if call_of(letter, found) is not None:
        raise JustArrived


def hold_identity(tenant_id: uuid.UUID, source: str, external_id: str) -> None:
    """Until this transaction ends nobody else brings letters and calls of this id together: none is missed."""
    record.lock_name(f"{tenant_id} {source} {external_id}")


def waiting_for(action: Action, source: str) -> Iterable[tuple[InboxMessage, Letter]]:
    """The letters that waited for this call's id, in the order in which they were sent."""
    tenant = Tenant.objects.get(pk=action.tenant_id)
    keys = vault.keys(tenant.pk, tenant.sealed_key)
    kept = InboxMessage.objects.filter(source=source, external_id=action.external_id, state="waiting")
    for message in kept.order_by("sent_at", "id"):
        payload = vault.unseal(keys, message.sealed_body)
        yield message, Letter(tenant.pk, source, message.message_id, message.sent_at, payload)


def _listening(source: str) -> list[dict[str, Any]]:
    """Every tool, in whatever version of a workflow, that listens to this source; each form once."""
    listening = Workflow.objects.filter(manifest__tools__contains=[{"callback": {"source": source}}])
    each = Func(F("manifest"), Value("$.tools[*]"), function="jsonb_path_query", output_field=JSONField())
    tools = listening.annotate(each=each).values_list("each", flat=True).distinct()
    return [tool for tool in tools if (tool.get("callback") or {}).get("source") == source]


def _by_reference(references: frozenset[str]) -> list[Action]:
    """By our own id; else by the key that the provider got from us, first among the runs that are still open."""
    writes = Action.objects.filter(effect="write")
    keyed = writes.filter(tries__idempotency_key__in=references).distinct()
    for found in (writes.filter(action_id__in=references), keyed.filter(run__ended_at__isnull=True), keyed):
        if references and (actions := list(found)):
            return actions
    return []


def _by_identity(source: str, identities: frozenset[str]) -> list[Action]:
    """By the provider's id, as an open call, a proven effect, or an earlier message of this source holds it."""
    known = Effect.objects.filter(external_id__in=identities).values_list("action_id", flat=True)
    met = InboxMessage.objects.filter(source=source, external_id__in=identities, action__isnull=False)
    ids = {*known, *met.values_list("action_id", flat=True)}
    waiting = Action.objects.filter(external_id__in=identities, settled_at__isnull=True, effect="write")
    return [*waiting, *Action.objects.filter(pk__in=ids).exclude(pk__in=[action.pk for action in waiting])]


def _listens(action: Action, letter: Letter) -> bool:
    """Whether the call's own contract reads this source, and finds the call named there."""
    callback = callback_of(action)
    if callback is None or callback.source != letter.source:
        return False
    reference = told.word_at(letter.payload, callback.reference)
    if reference and reference in (action.action_id, *action.tries.values_list("idempotency_key", flat=True)):
        return True
    identity = identity_in(letter, callback)
    return bool(identity) and identity == action.external_id


def callback_of(action: Action) -> Callback | None:
    return definitions.of_run(action.run).tools[action.tool].callback


def identity_in(letter: Letter, callback: Callback) -> str:
    """The provider's id in a letter, in the form in which an accepted reply's is kept."""
    return foreign.name(told.word_at(letter.payload, callback.identity))
