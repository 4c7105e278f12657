"""The health read of a connector: one GET that says whether it answers again. Nothing else is read from it."""

from __future__ import annotations

import httpx

from recovery.connectors import guard, line
from recovery.connectors.base import Finding, Question, failed
from recovery.connectors.templates import path_of, secret_of


def read(question: Question, path: str) -> Finding:
    """Ask once. Whoever answers without saying that it is broken is there, whatever it thinks of the request."""
    connector = question.connector
    try:
        url = (connector.base_url or "").rstrip("/") + path_of(path, question)
        target = guard.check(url, allow_hosts=connector.allow_hosts)
        answered = line.exchange(
            "GET", target, headers=secret_of(connector), timeout_seconds=connector.timeout_seconds
        )  # fmt: skip
    except guard.Forbidden as refused:
        return failed(str(refused), fault=True)
    except httpx.HTTPError as wrong:
        return failed(f"The health read could not be made: {type(wrong).__name__}.", fault=True)
    status = answered.response.status_code
    if status >= 500:
        return failed(f"The health read answered {status}.", fault=True)
    return Finding("absent", f"The health read answered {status}.")
