"""What a provider tells by itself: verified, taken in once, and used as evidence about the call that it names.

A callback is as strong as the provider's own reply. It settles a call whose outcome is open, waits for the reply
while the call's lease still runs, and moves nothing that is closed: there it agrees, or a person is asked (FAULTS D).
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, Literal, cast

import structlog
from steadyhand.manifest import Callback

from recovery import callback_secrets, inbox, settle
from recovery.inbox import JustArrived, Letter, Named
from recovery.models import InboxMessage
from recovery.rules import foreign, signatures, told
from recovery.rules.signatures import Signed
from runs import definitions, record, redact, vault, wall
from runs.models import Action, Event, Run, Tenant
from runs.querysets import read_clock
from runs.record import Actor

log = structlog.get_logger(__name__)

Status = Literal["used", "waiting", "duplicate", "ignored"]
STRENGTH = 4
NOBODY = uuid.UUID(int=0)
REFUSALS_KEPT = 20
REPEATS_KEPT = 10
# What is compared where there is no secret: a stranger shall not learn from the time whether there is one (F076).
_NO_SECRET = bytes(signatures.SECRET_BYTES)
_EVIDENCE = {"present": "present", "job_failed": "job_failed", "processing": "processing", "conflict": "conflict"}
_SENTENCES = {
    "overtaken": "came after a later state, and changes nothing",
    "unheard": "is a state that the contract does not name, and changes nothing",
    "conflict": "does not fit what is recorded about this call",
}


class NotVerified(Exception):
    """The message is not what it claims to be. Nobody is told why."""


class Unreadable(Exception):
    """The message is genuine and no JSON object."""


def receive(slug: str, source: str, signed: Signed, body: bytes, *, request_id: str) -> Status:
    """Take a message from the outside. Raises NotVerified and Unreadable; a message sent twice is a duplicate."""
    tenant_id = wall.tenant_of_slug(slug) or NOBODY
    with wall.within(tenant_id):
        genuine, sent_at = _verify(tenant_id, source, signed, body)
        if genuine and sent_at is None:
            _note_refusal(tenant_id, source, signed, request_id)
    if not genuine or sent_at is None:
        log.warning("callback refused", source=source[:80], request_id=request_id)
        raise NotVerified
    payload = foreign.parse_bytes(body)
    if not isinstance(payload, dict):
        raise Unreadable
    return take(
        tenant_id,
        source=source,
        message_id=signed.message_id,
        sent_at=sent_at,
        payload=payload,
        request_id=request_id,
    )


def take(
    tenant_id: uuid.UUID,
    *,
    source: str,
    message_id: str,
    sent_at: datetime,
    payload: dict[str, Any],
    request_id: str = "",
) -> Status:
    """What happens to a message once it is verified: one transaction, the run that it names locked."""
    letter = Letter(tenant_id, source, message_id, sent_at, payload)
    actor = Actor("connector", source, request_id)
    try:
        return _take(letter, actor)
    except JustArrived:
        return _take(letter, actor)


def use_waiting(run: Run, action: Action) -> None:
    """Use what came before the accepted reply, now that this has brought the provider's id. The run is locked."""
    callback = inbox.callback_of(action)
    if callback is None or callback.identity is None or not action.external_id:
        return
    inbox.hold_identity(run.tenant_id, callback.source, action.external_id)
    for message, letter in inbox.waiting_for(action, callback.source):
        _use(run, action, message, letter, Actor("connector", letter.source))
        action.refresh_from_db()


# --- verifying ----------------------------------------------------------------------------------------------


def _verify(tenant_id: uuid.UUID, source: str, signed: Signed, body: bytes) -> tuple[bool, datetime | None]:
    """Whether a holder of a valid secret sent this, and when; None for the time if that is out of the window."""
    now = read_clock()
    tenant = Tenant.objects.filter(pk=tenant_id).first()
    ours = source.startswith(callback_secrets.OF_CONNECTOR)
    held = [] if ours else list(callback_secrets.valid(source.replace("\0", ""), now))
    secrets = callback_secrets.unsealed(tenant, held) if tenant else []
    genuine = signatures.holds(signed, body, secrets or [_NO_SECRET]) and bool(secrets)
    sent_at = signatures.sent_at(signed)
    return genuine, sent_at if signatures.is_fresh(sent_at, now) else None


def _note_refusal(tenant_id: uuid.UUID, source: str, signed: Signed, request_id: str) -> None:
    """A genuine message outside its window is worth a line of the audit, but not thousands: it may be a replay."""
    latest = (
        Event.objects.filter(run=None).order_by(*Event.NEWEST_FIRST).values_list("kind", flat=True)[:REFUSALS_KEPT]
    )
    if len(latest) == REFUSALS_KEPT and set(latest) == {"callback_refused"}:
        return
    data = {"source": source, "message": signed.message_id, "sent": signed.timestamp[:20]}
    actor = Actor("connector", source, request_id)
    record.write_event(
        None, "callback_refused", actor, tenant_id=tenant_id, data=data,
        reason="It was signed outside the five minutes in which a message counts.",
    )  # fmt: skip


# --- using --------------------------------------------------------------------------------------------------


def _take(letter: Letter, actor: Actor) -> Status:
    with wall.within(letter.tenant_id, by="callback"):
        named = inbox.named(letter)
        message = inbox.keep(letter, named)
        if message is None:
            return _repeated(letter, actor)
        action = inbox.call_of(letter, named)
        if action is None:
            return _put_aside(message, letter, named, actor)
        run = cast(Run, record.lock_run(action.run_id))
        action.refresh_from_db()
        return _use(run, action, message, letter, actor)


def _repeated(letter: Letter, actor: Actor) -> Status:
    """Seen before: no effect, but the history counts how often it came, up to a bound."""
    first = InboxMessage.objects.get(source=letter.source, message_id=letter.message_id)
    if first.action is not None:
        repeats = Event.objects.filter(
            run=first.action.run, kind="callback_duplicate", data__message=letter.message_id
        )
        if repeats.count() < REPEATS_KEPT:
            _write(first.action.run, first.action, "callback_duplicate", actor, letter)
    return "duplicate"


def _put_aside(message: InboxMessage, letter: Letter, named: Named, actor: Actor) -> Status:
    """No call is known for it. It can wait only for an id that a reply may still bring."""
    status: Status = "waiting" if named.identity else "ignored"
    if status == "waiting":
        inbox.wait_for(letter, named)
    else:
        inbox.put_away(message, "ignored", None)
    kind = "callback_received" if status == "waiting" else "callback_ignored"
    record.write_event(
        None, kind, actor, tenant_id=letter.tenant_id, data={"message": letter.message_id},
        reason="No call that is recorded here is named in it.",
    )  # fmt: skip
    return status


def _use(run: Run, action: Action, message: InboxMessage, letter: Letter, actor: Actor) -> Status:
    """Keep what it says as evidence, and let the table decide where the call's outcome is open."""
    callback = cast(Callback, inbox.callback_of(action))
    state = told.word_at(letter.payload, callback.state)
    earlier = action.evidence.filter(kind="callback").values_list("raw__said", flat=True)
    says = told.meaning(callback, state, earlier)
    verdict = "conflict" if says == "present" and _is_another(action, callback, letter) else says
    status: Status = "ignored" if verdict in ("overtaken", "unheard") else "used"
    _add_evidence(run, action, callback, letter, state, verdict)
    inbox.put_away(message, status, action)
    _write(run, action, f"callback_{status}", actor, letter, said=_said(state))
    if status == "used":
        _consequence(run, action, actor)
    return status


def _consequence(run: Run, action: Action, actor: Actor) -> None:
    """While its lease runs a call is settled by its end; what is closed is contradicted at most, never reopened."""
    if action.settled_at is not None or action.attempts == 0:
        settle.ask_if_contradicted(run, action, actor)
    elif action.state != "permitted":
        settle.settle(run, action, actor)


def _is_another(action: Action, callback: Callback, letter: Letter) -> bool:
    """An effect of a call that never left, or a second one beside the one that is recorded."""
    identity = inbox.identity_in(letter, callback)
    second = bool(identity and action.external_id and action.settled_at) and identity != action.external_id
    return action.attempts == 0 or second


def _add_evidence(run: Run, action: Action, callback: Callback, letter: Letter, state: str, verdict: str) -> None:
    definition = definitions.of_run(run)
    tool = definition.tools[action.tool]
    told_more = _SENTENCES.get(verdict, "")
    record.add_evidence(
        action,
        run=run,
        kind="callback",
        verdict=_EVIDENCE.get(verdict, "none") if _counts(tool.completes_by, verdict) else "none",
        count={"present": 1, "conflict": 2 if action.attempts else 1}.get(verdict),
        source=letter.source,
        strength=STRENGTH,
        fact=redact.clean_text(f"The provider's signed message says {state or 'nothing'}. {told_more}".strip(), 400),
        raw={
            "message": letter.message_id,
            "said": _said(state),
            "payload": redact.redact(letter.payload, sensitive=tool.sensitive_fields),
        },
        sealed_record=_result(run, action, letter),
        external_id=inbox.identity_in(letter, callback) or action.external_id,
        started_at=letter.sent_at,
    )


def _said(state: str) -> str:
    """The state as it may be kept and shown: a provider may put anything in its place."""
    return redact.clean_text(state, 80)


def _counts(completes_by: str, verdict: str) -> bool:
    """Progress says something only about a call that a callback completes; to others their own reply speaks."""
    return verdict != "processing" or completes_by == "callback"


def _result(run: Run, action: Action, letter: Letter) -> bytes | None:
    """What the tool returned: the message if it is what the contract promises, else the reply that was accepted."""
    definition = definitions.of_run(run)
    tool = definition.tools[action.tool]
    if tool.output_schema is not None and definition.check_result(tool, letter.payload) is None:
        return vault.seal(definition.keys, letter.payload)
    return bytes(action.sealed_result) if action.sealed_result else None


def _write(run: Run, action: Action, kind: str, actor: Actor, letter: Letter, **more: str) -> None:
    data = {"step": action.step, "tool": action.tool, "message": letter.message_id, **more}
    record.write_event(run, kind, actor, action=action, from_state=action.state, to_state=action.state, data=data)
