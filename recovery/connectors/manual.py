"""A system that no request reaches: a person looks there, and attests what they saw with a reference."""

from __future__ import annotations

from steadyhand import observe
from steadyhand.contract import Observation

from recovery.connectors.base import Finding, Outgoing, Question, failed

BY_HAND = "Nobody can be asked here; a person looks and attests it."


def reconcile(_question: Question) -> Finding:
    return failed(BY_HAND)


def send(_outgoing: Outgoing) -> Observation:
    return observe.not_sent("Nothing can be sent here; a person does it by hand.")
