"""The poll of an accepted job: its declared read, sent by the worker, and what its answer says about the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from steadyhand.contract import Observation
from steadyhand.paths import MISSING, dig, word

from recovery.connectors.base import Finding, Outgoing, Polling, failed
from recovery.rules import circuit, foreign
from recovery.rules.classify import Classified

Transmit = Callable[[Outgoing], Observation]


def ask(polling: Polling, transmit: Transmit) -> Finding:
    """Send the poll once and read it. Every failure to ask or to understand is `probe_failed`."""
    if polling.outgoing is None:
        return failed(f"The accepted reply lacks {polling.lacks}, by which its end could be asked for.")
    observed = transmit(polling.outgoing)
    found = polling.classify(observed)
    if found.observed != "ok_valid":
        detail = f"The poll did not answer as its contract says. {found.detail}".rstrip()
        return failed(detail, fault=circuit.is_fault(observed, found))
    return judge(found, polling)


def judge(found: Classified, polling: Polling) -> Finding:
    """What a valid answer says: the job has ended well, has failed, or goes on. Pure."""
    poll, answer = polling.poll, found.result
    state = dig(answer, poll.state)
    if state is MISSING:
        return failed(f"The poll's answer has no {poll.state}.", raw=answer)
    said = foreign.name(state)
    if _among(state, poll.failed):
        return Finding("failed", f"The job has failed: {said}.", external_id=polling.accepted_id, raw=answer)
    if not _among(state, poll.succeeded):
        return Finding("processing", f"The job goes on: {said}.", external_id=polling.accepted_id, raw=answer)
    record = answer if polling.fits(answer) else None
    return Finding("present", f"The job has ended: {said}.", 1, _identity(answer, polling), record, answer)


def _identity(answer: Any, polling: Polling) -> str:
    named = word(dig(answer, polling.poll.external_id)) if polling.poll.external_id else ""
    return foreign.name(named) or polling.accepted_id


def _among(state: Any, values: Sequence[str | int | bool]) -> bool:
    """1 is not true."""
    return any(type(state) is type(value) and state == value for value in values)
