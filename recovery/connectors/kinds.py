"""Which module speaks for which kind of connector: one request each, and no retry in any of them (F107)."""

from __future__ import annotations

from steadyhand.contract import Observation

from recovery.connectors import calls, http, manual, python, webhook
from recovery.connectors.base import Finding, Outgoing, Question

_LOOKS = {
    "http": http.reconcile,
    "webhook": webhook.reconcile,
    "python": python.reconcile,
    "manual": manual.reconcile,
}
_SENDS = {"http": calls.send, "webhook": webhook.send, "python": python.send, "manual": manual.send}


def reconcile(question: Question) -> Finding:
    """Put the question to its connector, once."""
    return _LOOKS[question.connector.kind](question)


def send(outgoing: Outgoing) -> Observation:
    """Have its connector make the call, once."""
    return _SENDS[outgoing.connector.kind](outgoing)
