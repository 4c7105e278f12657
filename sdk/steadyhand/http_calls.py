"""HTTP that leaves no doubt: one request per permit, within its time, with a trace of whether it left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypedDict

import httpx

from steadyhand.calls import Call, Request
from steadyhand.errors import OutcomeUnknown

if TYPE_CHECKING:
    from typing_extensions import Unpack

MAX_READ_BYTES = 1024 * 1024
_DESCRIBE_TRANSFER = {"content-encoding", "transfer-encoding", "content-length"}


class Content(TypedDict, total=False):
    """What a request carries, as httpx names it."""

    json: Any
    params: Mapping[str, Any] | None
    headers: Mapping[str, str] | None


def http_call(call: Call, client: httpx.Client, method: str, url: str, **content: Unpack[Content]) -> httpx.Response:
    """Send one request within the call's deadline: no redirects, at most 1 MiB of answer (F039, F040).

    The same request a second time under one permit is somebody's own retry: it is stopped (F107). Raises httpx's own
    errors, which the boundary reads, and OutcomeUnknown for an answer without end.
    """
    request = client.build_request(method, url, timeout=call.remaining(), extensions={"trace": call.trace}, **content)
    with _sending(call, request) as answer:
        response = client.send(request, stream=True, follow_redirects=False)
        try:
            for chunk in response.iter_bytes():
                answer.take(chunk)
        finally:
            response.close()
        return answer.of(response)


async def async_http_call(
    call: Call, client: httpx.AsyncClient, method: str, url: str, **content: Unpack[Content]
) -> httpx.Response:
    """`http_call` for a client of an event loop."""

    async def trace(event: str, info: Mapping[str, Any]) -> None:
        call.trace(event, info)

    request = client.build_request(method, url, timeout=call.remaining(), extensions={"trace": trace}, **content)
    with _sending(call, request) as answer:
        response = await client.send(request, stream=True, follow_redirects=False)
        try:
            async for chunk in response.aiter_bytes():
                answer.take(chunk)
        finally:
            await response.aclose()
        return answer.of(response)


class _Answer:
    """What comes back of one request, read no further than the call may last."""

    def __init__(self, call: Call, request: httpx.Request) -> None:
        self._call = call
        self._request = request
        self._content = bytearray()

    def take(self, chunk: bytes) -> None:
        self._content += chunk
        if len(self._content) > MAX_READ_BYTES:
            raise OutcomeUnknown(f"The answer is longer than {MAX_READ_BYTES} bytes.")
        if self._call.clock() > self._call.deadline:
            raise httpx.ReadTimeout("The answer took longer than the call may last.", request=self._request)

    def of(self, response: httpx.Response) -> httpx.Response:
        """The answer as a response that is whole and decoded."""
        names = response.headers.multi_items()
        headers = [(name, value) for name, value in names if name not in _DESCRIBE_TRANSFER]
        content = bytes(self._content)
        whole = httpx.Response(response.status_code, headers=headers, content=content, request=self._request)
        self._call.sent[_named(self._request)] = whole
        return whole


@contextmanager
def _sending(call: Call, request: httpx.Request) -> Iterator[_Answer]:
    named = _named(request)
    call.sending(named)
    try:
        yield _Answer(call, request)
    except BaseException as error:
        call.sent[named] = error
        raise


def _named(request: httpx.Request) -> Request:
    return request.method, str(request.url), request.content
