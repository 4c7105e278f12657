"""The examples of the SDK's README, run as they stand against a scripted Steadyhand and a scripted provider."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.sdk.fake_server import RUN, FakeServer

README = Path(__file__).resolve().parents[2] / "sdk" / "README.md"


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


class World:
    """Both hosts of the examples, by name, whatever client asks; `paid` lists what reached the provider."""

    def __init__(self, server: FakeServer, patch: pytest.MonkeyPatch) -> None:
        self.server = server
        self.paid: list[str] = []
        patch.setattr(httpx.HTTPTransport, "handle_request", lambda _transport, request: self.answer(request))

        async def later(_transport: object, request: httpx.Request) -> httpx.Response:
            await request.aread()
            return self.answer(request)

        patch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", later)

    def answer(self, request: httpx.Request) -> httpx.Response:
        request.read()
        if request.url.host == "console.example.org":
            return self.server.answer(request)
        assert request.url.host == "payments.example.org"
        self.paid.append(f"{request.method} {request.url.path} {request.headers.get('idempotency-key', '-')}")
        return httpx.Response(201, json={"id": "cr_1"})

    def names(self, **more: Any) -> dict[str, Any]:
        return {"token": "sh_a_b_c", "run_id": RUN, **more}
