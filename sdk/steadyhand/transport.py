"""The wire to Steadyhand: one request, one answer, no second try (DESIGN 2, rule 6)."""

from __future__ import annotations

from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from steadyhand.errors import Problem, Unavailable

M = TypeVar("M", bound=BaseModel)
PREFIX = "/api/v1"


class Transport:
    """Sends contract messages. Raises Problem for a refused request, Unavailable for no usable answer."""

    def __init__(self, url: str, token: str, *, timeout: float, transport: httpx.BaseTransport | None) -> None:
        base = url.rstrip("/").removesuffix(PREFIX) + PREFIX
        self._client = httpx.Client(
            base_url=base,
            headers={"authorization": f"Bearer {token}", "accept": "application/json"},
            timeout=timeout,
            transport=transport or httpx.HTTPTransport(retries=0),
            follow_redirects=False,
        )

    def post(self, path: str, message: BaseModel | None, answer: type[M]) -> M:
        return _parsed(self._send("POST", path, content=message.model_dump_json() if message else None), answer)

    def tell(self, path: str, message: BaseModel) -> None:
        """Send a message whose answer says nothing more than that it arrived."""
        self._send("POST", path, content=message.model_dump_json())

    def get(self, path: str, answer: type[M], **params: Any) -> M:
        asked = {name: value for name, value in params.items() if value is not None}
        return _parsed(self._send("GET", path, params=asked), answer)

    def put(self, path: str, document: Any) -> dict[str, Any]:
        answer = self._send("PUT", path, json=document)
        try:
            return dict(answer.json())
        except (ValueError, TypeError) as broken:
            raise Unavailable("Steadyhand's answer could not be read.") from broken

    def close(self) -> None:
        self._client.close()

    def _send(self, method: str, path: str, **content: Any) -> httpx.Response:
        headers = {"content-type": "application/json"} if content.get("content") is not None else None
        try:
            response = self._client.request(method, path, headers=headers, **content)
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


def _problem(response: httpx.Response) -> Problem:
    try:
        document = response.json()
    except ValueError:
        document = None
    known = document if isinstance(document, dict) else {}
    faults = [fault for fault in known.get("errors") or [] if isinstance(fault, dict)]
    title = str(known.get("title") or response.reason_phrase)
    return Problem(response.status_code, title, str(known.get("detail") or ""), faults)
