"""Messages of the provider: signed as the file says, and delivered at the front door like any other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from recovery import callback_secrets, callbacks
from recovery.rules import signatures
from recovery.scenarios.format import Event
from recovery.scenarios.manifest import SOURCE
from runs import wall
from runs.models import Action
from runs.querysets import read_clock

if TYPE_CHECKING:
    from recovery.scenarios.runner import Play

NOBODYS_SECRET = b"\x00" * signatures.SECRET_BYTES
OWN_KEYS = ("action_key", "action_id", "idempotency_key", "reference")


def deliver(play: Play, event: Event) -> None:
    """One message; `signature` other than valid is made with a secret that nobody issued."""
    name = str(event.get("tenant") or play.scenario.tenant)
    tenant = play.tenant_named(name)
    if name not in play.secrets:
        with wall.within(tenant.pk):
            play.secrets[name] = callback_secrets.create(tenant, SOURCE)
    body = json.dumps(_payload(play, event)).encode()
    genuine = str(event.get("signature", "valid")) == "valid"
    stamp, message_id = int(_sent_at(event)), str(event.get("event_id", event.index))
    secret = signatures.read(play.secrets[name]) if genuine else NOBODYS_SECRET
    signature = signatures.sign(secret, message_id, str(stamp), body)
    if str(event.get("signature")) in ("missing", "none"):
        signature = ""
    try:
        signed = signatures.Signed(message_id, str(stamp), signature)
        callbacks.receive(tenant.slug, SOURCE, signed, body, request_id="scenario")
    except (callbacks.NotVerified, callbacks.Unreadable) as refused:
        play.people.turned_down.append(("callback", message_id, type(refused).__name__))


def _sent_at(event: Event) -> float:
    """Each delivery carries its own time, unless the file has an old one replayed."""
    now = read_clock().timestamp()
    return now - float(event.get("age_seconds", 0))


def _payload(play: Play, event: Event) -> dict[str, Any]:
    """The file speaks of its own action keys; the provider would send back what it was given: our id."""
    payload = dict(event.get("payload") or {})
    for name in OWN_KEYS:
        if name in payload:
            payload["action_key" if name == "action_key" else name] = _our_id(play, str(payload[name]))
    return payload


def _our_id(play: Play, key: str) -> str:
    call = next((line for line in play.scenario.of_type("tool_call") if line.get("action_key") == key), None)
    if call is None:
        return key
    with wall.within(play.tenant.pk):
        found = Action.objects.filter(run_id=play.main.run_id, step=call.step).values_list("action_id", flat=True)
        return found.first() or key
