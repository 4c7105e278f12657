"""The declarative look-up: one GET, described in the manifest, that counts effects and compares all their fields.

One request, no redirects, no retries, no proxies, a deadline and a size cap: what goes wrong is a failed look-up.
"""

from __future__ import annotations

from typing import Any

import httpx
from steadyhand import judging
from steadyhand.manifest import Look
from steadyhand.paths import MISSING
from steadyhand.templates import fill

from recovery.connectors import guard, line
from recovery.connectors.base import Finding, Question, failed, told
from recovery.connectors.templates import path_of, secret_of
from recovery.rules import foreign


def reconcile(question: Question) -> Finding:
    """Ask once. Every failure to ask or to understand is `probe_failed`, with a sentence."""
    if question.look is None:
        return failed("The manifest declares no look-up for this tool.")
    try:
        document, more = _answer(question, question.look)
    except guard.Forbidden as refused:
        return failed(str(refused))
    except httpx.TimeoutException:
        return failed("The look-up did not answer in time.", fault=True)
    except httpx.HTTPError as wrong:
        return failed(f"The look-up could not be made: {type(wrong).__name__}.", fault=True)
    except Unusable as wrong:
        return failed(str(wrong), fault=wrong.fault)
    return judge(document, question, question.look, more=more)


def judge(document: Any, question: Question, look: Look, *, more: bool = False) -> Finding:
    """Count what is ours and compare its fields. Pure, so that every answer can be tested without a network."""
    return told(judging.judge(document, question, look, more=more, name=foreign.name))


class Unusable(Exception):
    """An answer that is no usable list; `fault`: because whoever was asked is broken."""

    def __init__(self, sentence: str, *, fault: bool = False) -> None:
        super().__init__(sentence)
        self.fault = fault


def document_of(reply: line.Reply) -> tuple[Any, bool]:
    """The JSON of a plain success, and whether its headers name a next page. Raises Unusable."""
    response = reply.response
    if response.status_code != 200:
        raise Unusable(f"The look-up answered {response.status_code}.", fault=response.status_code >= 500)
    if reply.cut:
        raise Unusable("The look-up's answer is too large.")
    more = any("next" in (rel or "").lower().split() for rel in response.links)
    return json_of(response.content), more


def json_of(body: bytes) -> Any:
    document = foreign.parse_bytes(body)
    if document is MISSING:
        raise Unusable("The look-up's answer is not JSON.")
    return document


def _answer(question: Question, look: Look) -> tuple[Any, bool]:
    """The answer, and whether its headers name a next page."""
    return document_of(fetch(question, look))


def fetch(question: Question, look: Look) -> line.Reply:
    """Make the request of a look-up, once. Raises Forbidden and httpx.HTTPError."""
    base = (question.connector.base_url or "").rstrip("/")
    target = guard.check(base + path_of(look.path, question), allow_hosts=question.connector.allow_hosts)
    query = {name: str(fill(value, question)) for name, value in look.query.items()}
    seconds = question.connector.timeout_seconds
    return line.exchange("GET", target, headers=secret_of(question.connector), timeout_seconds=seconds, params=query)
