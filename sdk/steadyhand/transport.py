"""The wire to Steadyhand: one request, one answer, no second try (DESIGN 2, rule 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from steadyhand.errors import Problem, Unavailable

M = TypeVar("M", bound=BaseModel)
PREFIX = "/api/v1"
PROBLEM = "application/problem+json"


class Line(Protocol):
    """A client that sends; see blocking.py and looping.py."""

    async def request(self, method: str, path: str, **content: Any) -> httpx.Response: ...

    async def close(self) -> None: ...


def options(url: str, token: str, timeout: float) -> dict[str, Any]:
    """How a line's HTTP client is made. It follows no redirect, and its transport retries nothing (F107)."""
    return {
        "base_url": url.rstrip("/").removesuffix(PREFIX) + PREFIX,
        "headers": {"authorization": f"Bearer {token}", "accept": "application/json"},
        "timeout": timeout,
        "follow_redirects": False,
    }


class Transport:
    """Sends contract messages. Raises Problem for a refused request, Unavailable for no usable answer."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def post(self, path: str, message: BaseModel | None, answer: type[M]) -> M:
        body = message.model_dump_json().encode() if message else None
        return _parsed(await self._send("POST", path, content=body), answer)

    async def post_json(self, path: str, body: bytes, answer: type[M]) -> M:
        return _parsed(await self._send("POST", path, content=body), answer)

    async def get(self, path: str, answer: type[M], **params: Any) -> M:
        asked = {name: value for name, value in params.items() if value is not None}
        return _parsed(await self._send("GET", path, params=asked), answer)

    async def put(self, path: str, document: Any) -> dict[str, Any]:
        answer = await self._send("PUT", path, json=document)
        try:
            return dict(answer.json())
        except (ValueError, TypeError) as broken:
            raise Unavailable("Steadyhand's answer could not be read.") from broken

    async def close(self) -> None:
        await self._line.close()

    async def _send(self, method: str, path: str, **content: Any) -> httpx.Response:
        headers = {"content-type": "application/json"} if content.get("content") is not None else None
        try:
            response = await self._line.request(method, path, headers=headers, **content)
        except httpx.HTTPError as lost:
            raise Unavailable(f"Steadyhand cannot be reached ({type(lost).__name__}).") from lost
        if response.is_success:
            return response
        if response.is_client_error and response.status_code not in (408, 425, 429):
            raise _problem(response)
        raise Unavailable(f"Steadyhand answered {response.status_code}.")


def _parsed(response: httpx.Response, answer: type[M]) -> M:
    try:
        return answer.model_validate_json(response.content)
    except ValidationError as broken:
        raise Unavailable("Steadyhand's answer could not be read.") from broken


def _problem(response: httpx.Response) -> Problem | Unavailable:
    """The refusal that Steadyhand wrote; a client error in other words comes from something in between."""
    if not response.headers.get("content-type", "").startswith(PROBLEM):
        return Unavailable(f"Something that is not Steadyhand answered {response.status_code}.")
    try:
        document = response.json()
    except ValueError:
        document = None
    known: Mapping[str, Any] = document if isinstance(document, dict) else {}
    faults = [fault for fault in known.get("errors") or [] if isinstance(fault, dict)]
    title = str(known.get("title") or response.reason_phrase)
    return Problem(response.status_code, title, str(known.get("detail") or ""), faults)
