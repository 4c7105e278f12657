"""Whether a connector can be asked at all: one harmless question, and what stood in its way, in plain words.

It asks for the connector's health where it says how, else for something that cannot exist: an answer that finds it is
not to be believed. Nothing is written and nothing is tried twice.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import httpx
from steadyhand.connector import Unclear, answer_in, checked

from recovery.connectors import guard, http, line, python, webhook
from recovery.connectors.base import Finding, Question, read
from recovery.connectors.templates import path_of, secret_of

Outcome = Literal[
    "answers", "credential", "address", "refused", "tls", "late", "unreachable", "broken", "busy", "wrong", "shape",
    "believed", "abandoned",
]  # fmt: skip


@dataclass(frozen=True)
class Reached:
    """What came of it: a word, a sentence, the status where there was one, and how long it took."""

    outcome: Outcome
    fact: str
    status: int | None = None
    latency_ms: int = 0


class Failed(Exception):
    """It answered, and not in a way that can be used."""

    def __init__(self, outcome: Outcome, fact: str, status: int | None = None) -> None:
        super().__init__(fact)
        self.reached = Reached(outcome, fact, status)


def ask(question: Question) -> Reached:
    """Ask once, within the connector's own deadline; whatever goes wrong is an answer too."""
    started = time.monotonic()
    reached = _tried(question)
    took = int((time.monotonic() - started) * 1000)
    return Reached(reached.outcome, reached.fact, reached.status, took)


def _tried(question: Question) -> Reached:
    try:
        return _ASKS["health" if question.connector.health else question.connector.kind](question)
    except Failed as failed:
        return failed.reached
    except (guard.Forbidden, python.Unavailable) as refused:
        return Reached("address", str(refused))
    except (TimeoutError, httpx.TimeoutException):
        return Reached("late", f"No answer came within {question.connector.timeout_seconds:g} seconds.")
    except httpx.ConnectError as wrong:
        return _unconnected(wrong)
    except httpx.HTTPError as wrong:
        return Reached("unreachable", f"The exchange broke off: {type(wrong).__name__}.")
    except (Unclear, http.Unusable) as wrong:
        return Reached("shape", f"It answered, and the answer cannot be used: {str(wrong).rstrip('.')}.")
    except Exception as wrong:
        # Somebody else's code: its class is kept, its text may hold anything.
        return Reached("broken", f"The connector broke: {type(wrong).__name__}.")


def _health(question: Question) -> Reached:
    connector = question.connector
    url = (connector.base_url or "").rstrip("/") + path_of(connector.health or "", question)
    target = guard.check(url, allow_hosts=connector.allow_hosts)
    seconds = connector.timeout_seconds
    status = _status(line.exchange("GET", target, headers=secret_of(connector), timeout_seconds=seconds), most=399)
    return Reached("answers", f"Its health read answered {status}.", status)


def _over_http(question: Question) -> Reached:
    look = question.look
    assert look is not None  # noqa: S101  (a connector without a look-up is not asked)
    reply = http.fetch(question, look)
    status = _status(reply, most=200)
    document, more = http.document_of(reply)
    return _empty(http.judge(document, question, look, more=more), status)


def _over_webhook(question: Question) -> Reached:
    reply = webhook.look(question)
    status = _status(reply, most=200)
    return _empty(read(answer_in(http.document_of(reply)[0]), question), status)


def _in_a_package(question: Question) -> Reached:
    seconds = question.connector.timeout_seconds
    answer = python.call(question.connector, question.whom, "reconcile", question.ask(), seconds=seconds)
    return _empty(read(checked(answer), question), None)


_ASKS: dict[str, Callable[[Question], Reached]] = {
    "health": _health,
    "http": _over_http,
    "webhook": _over_webhook,
    "python": _in_a_package,
}


def _status(reply: line.Reply, *, most: int) -> int:
    """The status of an answer that may be read on. Raises Failed."""
    status = reply.response.status_code
    if status in (401, 403, 407):
        raise Failed("credential", f"It answered {status}: the credential is missing or not accepted.", status)
    if status == 429:
        raise Failed("busy", "It answered 429: it is there, and asks for a pause.", status)
    if status >= 500:
        raise Failed("broken", f"It answered {status}: it is there, and in trouble.", status)
    if status > most:
        raise Failed("wrong", f"It answered {status}: the address or the path may be wrong.", status)
    return status


def _empty(finding: Finding, status: int | None) -> Reached:
    """What cannot exist must not be found."""
    if finding.verdict == "absent":
        return Reached("answers", "It answered that it has nothing under a reference that does not exist.", status)
    if finding.verdict in ("probe_failed", "failed"):
        return Reached("shape", f"It answered, and the answer cannot be used: {finding.fact}", status)
    found = "It claims to know a reference that does not exist: its look-ups are not to be believed."
    return Reached("believed", found, status)


def _unconnected(wrong: httpx.ConnectError) -> Reached:
    causes = list(_causes(wrong))
    if any(isinstance(one, ssl.SSLError) for one in causes):
        return Reached("tls", "Its certificate is not accepted, or it does not speak TLS.")
    if any(isinstance(one, ConnectionRefusedError) for one in causes):
        return Reached("refused", "The connection was refused: nothing listens there.")
    return Reached("unreachable", "No connection could be made.")


def _causes(wrong: BaseException) -> Iterator[BaseException]:
    at: BaseException | None = wrong
    for _ in range(10):
        if at is None:
            return
        yield at
        at = at.__cause__ or at.__context__
