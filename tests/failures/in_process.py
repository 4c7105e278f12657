"""The SDK against the real API, intake and database of this test, without a socket between them."""

from __future__ import annotations

from typing import Any

import httpx
from django.test import Client
from steadyhand import Boundary

from tests.factories import Agent, advance_clock


class InProcess(httpx.BaseTransport):
    """Hands each request to Django's own test client."""

    def __init__(self) -> None:
        self._client = Client()
        self.arrived: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.arrived.append(request.url.path)
        answered = self._client.generic(
            request.method,
            request.url.raw_path.decode(),
            request.read(),
            request.headers.get("content-type", "application/json"),
            headers={"authorization": request.headers["authorization"]},
        )
        return httpx.Response(answered.status_code, headers=dict(answered.headers), content=answered.content)


def boundary_of(agent: Agent, **ways: Any) -> Boundary:
    """A boundary of this agent for whom waiting moves the database's clock."""
    ways = {"sleep": lambda seconds: advance_clock(seconds=seconds), "transport": InProcess(), **ways}
    return Boundary("http://testserver", agent.token, **ways)
