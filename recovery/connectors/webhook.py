"""The host product's own endpoint: one signed message that asks it to look, to do or to undo, and its answer.

Signed like a callback (Standard Webhooks), with the secret of this connector alone. The message says what is asked in
`ask` and whom it is for; the answer to a look-up is a verdict, to anything else whatever the tool would have said.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import Any

import httpx
from steadyhand.connector import Ask, Unclear, answer_in
from steadyhand.contract import Observation
from steadyhand.manifest import Connector

from recovery.connectors import guard, line
from recovery.connectors.base import Finding, Outgoing, Question, Whom, failed, read
from recovery.connectors.calls import observed
from recovery.connectors.http import Unusable, document_of
from recovery.rules import signatures


def reconcile(question: Question) -> Finding:
    """Ask once. Every failure to ask or to understand is `probe_failed`, with a sentence."""
    try:
        return read(answer_in(document_of(look(question))[0]), question)
    except guard.Forbidden as refused:
        return failed(str(refused))
    except Unusable as wrong:
        return failed(str(wrong), fault=wrong.fault)
    except Unclear as wrong:
        return failed(f"The endpoint's answer cannot be used: {wrong}.")
    except httpx.TimeoutException:
        return failed("The look-up did not answer in time.", fault=True)
    except httpx.HTTPError as wrong:
        return failed(f"The look-up could not be made: {type(wrong).__name__}.", fault=True)


def send(outgoing: Outgoing) -> Observation:
    """Have the host product make the call, or the undo, once; what it answers is an observation like any other."""
    what = "compensate" if outgoing.undoes else "execute"
    asked = _asking(outgoing.whom, outgoing.ask())
    seconds = outgoing.timeout_seconds
    return observed(lambda: _exchange(what, outgoing.connector, outgoing.whom, asked, seconds))


def look(question: Question) -> line.Reply:
    """Have the endpoint look, once. Raises Forbidden and httpx.HTTPError."""
    asked = _asking(question.whom, question.ask())
    return _exchange("reconcile", question.connector, question.whom, asked, question.connector.timeout_seconds)


def fetch(what: str, connector: Connector, whom: Whom, asked: dict[str, Any]) -> Any:
    """The JSON of the endpoint's answer. Raises Forbidden, Unusable and httpx.HTTPError."""
    return document_of(_exchange(what, connector, whom, asked, connector.timeout_seconds))[0]


def _asking(whom: Whom, ask: Ask) -> dict[str, Any]:
    return {"connector": whom.name, **asdict(ask)}


def _exchange(what: str, connector: Connector, whom: Whom, asked: dict[str, Any], seconds: float) -> line.Reply:
    if not whom.secrets:
        raise guard.Forbidden(f"The connector {whom.name} has no secret to sign with; make one first.")
    target = guard.check(connector.base_url or "", allow_hosts=connector.allow_hosts)
    body = json.dumps({"ask": what, **asked}, separators=(",", ":"), ensure_ascii=False).encode()
    return line.exchange("POST", target, headers=_signed(what, asked, whom, body), timeout_seconds=seconds,
                         content=body)  # fmt: skip


def _signed(what: str, asked: dict[str, Any], whom: Whom, body: bytes) -> dict[str, str]:
    """One signature for each valid secret, so that the endpoint may change to the new one at its own time (F078).

    The time is that of the real clock, for it is compared with one; a rehearsal's clock is nobody else's.
    """
    stamp = str(int(time.time()))
    message = f"{what}.{asked.get('action_id', whom.name)}.{asked.get('attempt', 1)}.{stamp}"
    made = [signatures.sign(secret, message, stamp, body) for secret in whom.secrets]
    return {
        "content-type": "application/json",
        "webhook-id": message,
        "webhook-timestamp": stamp,
        "webhook-signature": " ".join(made),
    }
