"""What the usual libraries hand over, made by themselves: responses, errors and statuses (F031 to F037, F099)."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import grpc
import httpx
import mcp
import pytest
import requests
import urllib3
from botocore.exceptions import ClientError
from grpc.aio import AioRpcError, Metadata
from mcp.types import CallToolResult, TextContent
from requests.adapters import HTTPAdapter
from steadyhand import observe
from steadyhand.errors import CredentialsRejected

from tests.sdk.counting_server import counting, plainly

BODY = b'{"id": "cr_1", "note": "\\u0000"}'


def by_httpx(url: str) -> object:
    return httpx.post(url, timeout=2)


def by_requests(url: str) -> object:
    return requests.post(url, timeout=2)


def by_urllib3(url: str) -> object:
    return urllib3.PoolManager().request("POST", url, timeout=2, retries=False)


def by_aiohttp(url: str) -> object:
    return asyncio.run(_post(url, lambda response: response.read()))


async def _post(url: str, use: Callable[[aiohttp.ClientResponse], Awaitable[object]]) -> aiohttp.ClientResponse:
    async with aiohttp.ClientSession() as session, session.post(url) as response:
        await use(response)
        return response


@pytest.mark.parametrize("send", [by_httpx, by_requests, by_urllib3, by_aiohttp])
def test_F031_a_response_is_a_reply_with_its_status_headers_and_body(send: Callable[[str], object]) -> None:
    with counting(answer=plainly(429, {"Retry-After": "7", "Set-Cookie": "s=1"}, BODY)) as counted:
        seen = observe.from_result(send(counted.url))
    assert (seen.kind, seen.status, seen.headers["retry-after"]) == ("reply", 429, "7")
    assert "set-cookie" not in seen.headers
    assert json.loads(seen.body or "") == {"id": "cr_1", "note": "\\u0000"}
    assert (seen.altered, seen.body_bytes) == (True, len(BODY))


def test_an_aiohttp_answer_that_nobody_read_is_not_taken_for_whole() -> None:
    async def nothing(_: aiohttp.ClientResponse) -> None:
        """Leaves the body where it is."""

    with counting(answer=plainly(200, body=BODY)) as counted:
        seen = observe.from_result(asyncio.run(_post(counted.url, nothing)))
    assert (seen.kind, seen.status, seen.body, seen.altered) == ("reply", 200, None, True)


def raised_by(use: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        use()
    return caught.value


SECRET_URL = "/lists?api_key=FAKEKEY-77aa"


def httpx_refusal(url: str) -> object:
    return httpx.post(url, timeout=2).raise_for_status()


def requests_refusal(url: str) -> object:
    return requests.post(url, timeout=2).raise_for_status()


def urllib_refusal(url: str) -> object:
    return urllib.request.urlopen(urllib.request.Request(url, data=b"{}", method="POST"), timeout=2)


def aiohttp_refusal(url: str) -> object:
    async def refuse(response: aiohttp.ClientResponse) -> None:
        response.raise_for_status()

    return asyncio.run(_post(url, refuse))


REFUSALS = [httpx_refusal, requests_refusal, urllib_refusal, aiohttp_refusal]


@pytest.mark.parametrize("send", REFUSALS)
def test_F037_F099_a_401_that_is_raised_is_the_reply_and_takes_no_secret_along(send: Callable[[str], object]) -> None:
    with counting(answer=plainly(401, body=b"{}")) as counted:
        seen = observe.from_exception(raised_by(lambda: send(counted.url + SECRET_URL)))
    assert (seen.kind, seen.status, seen.message) == ("reply", 401, None)
    assert "FAKEKEY" not in seen.model_dump_json()


def test_F099_an_http_error_of_ones_own_is_read_by_its_status_and_not_by_its_text() -> None:
    class HTTPError(Exception):
        status = 401

    seen = observe.from_exception(HTTPError("401 for url https://api.example.net?api_key=FAKEKEY-77aa"))
    assert (seen.kind, seen.status, seen.message) == ("reply", 401, None)
    odd = type("Oddity", (Exception,), {"status": 401})
    assert observe.from_exception(odd("no HTTP at all")).status is None


def test_F036_a_conflict_that_is_raised_without_its_body_says_too_little() -> None:
    class HTTPError(Exception):
        status = 409

    assert observe.from_exception(HTTPError()).kind == "exception"


# --- a second request of the client's own -------------------------------------------------------------------


def test_F107_the_refusal_of_a_second_try_says_nothing_about_the_first() -> None:
    answers = iter([plainly(503), plainly(404)])
    retry = urllib3.Retry(total=1, status_forcelist=[503], allowed_methods=None, backoff_factor=0)
    with counting(answer=lambda handler: next(answers)(handler)) as counted, requests.Session() as session:
        session.mount("http://", HTTPAdapter(max_retries=retry))
        seen = observe.from_result(session.post(counted.url, timeout=2))
    assert (counted.arrivals, seen.kind, seen.exc_type) == (2, "exception", "RetriedByClient")


def test_F039_aiohttps_answer_behind_a_redirect_is_not_ours() -> None:
    answers = iter([plainly(302, {"location": "/elsewhere"}), plainly(404)])
    with counting(answer=lambda handler: next(answers)(handler)) as counted:
        seen = observe.from_result(by_aiohttp(counted.url))
    assert (seen.kind, seen.exc_type) == ("exception", "RedirectFollowed")


# --- AWS, gRPC, MCP -----------------------------------------------------------------------------------------


def aws(status: int, code: str, tries: int = 0) -> ClientError:
    about = {"HTTPStatusCode": status, "RetryAttempts": tries, "RequestId": "r_1"}
    return ClientError({"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": about}, "PutItem")  # type: ignore[arg-type]


def test_F035_an_aws_error_is_a_reply_with_its_code() -> None:
    seen = observe.from_exception(aws(400, "ThrottlingException"))
    assert (seen.kind, seen.status) == ("reply", 400)
    assert json.loads(seen.body or "") == {"error": {"code": "ThrottlingException", "message": "no"}}


def test_F107_an_aws_error_after_tries_of_botocores_own_is_unknown() -> None:
    assert observe.from_exception(aws(400, "ThrottlingException", tries=4)).kind == "exception"


def grpc_error(code: grpc.StatusCode, details: str = "no") -> AioRpcError:
    return AioRpcError(code, Metadata(), Metadata(), details=details)


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_F033_a_grpc_status_is_a_reply_by_its_name(code: grpc.StatusCode) -> None:
    seen = observe.from_exception(grpc_error(code, "token FAKE-TOKEN-0001"))
    assert (seen.kind, seen.code, seen.message) == ("reply", code.name, None)


def test_F026_an_answer_that_was_too_long_for_us_was_an_answer() -> None:
    long = grpc_error(grpc.StatusCode.RESOURCE_EXHAUSTED, "Received message larger than max (5000000 vs. 4194304)")
    assert (observe.from_exception(long).kind, observe.from_exception(long).code) == ("exception", None)


def test_what_only_looks_like_a_status_is_none() -> None:
    class Odd(Exception):
        def code(self) -> Any:
            raise ValueError

        def details(self) -> str:
            return ""

    assert observe.from_exception(Odd()).kind == "exception"


def test_F085_an_mcp_result_is_reported_whole() -> None:
    told = CallToolResult(
        content=[TextContent(type="text", text="No refund was made.")],
        structuredContent={"code": "REFUND_WINDOW_EXPIRED", "retryable": False},
        isError=True,
    )
    body = json.loads(observe.from_result(told).body or "")
    assert (body["isError"], body["structuredContent"]["code"]) == (True, "REFUND_WINDOW_EXPIRED")


def test_F085_an_mcp_error_is_the_envelope_that_carried_it() -> None:
    seen = observe.from_exception(mcp.MCPError(-32602, "Unknown tool", data={"name": "x"}))
    error = {"code": -32602, "message": "Unknown tool", "data": {"name": "x"}}
    assert json.loads(seen.body or "") == {"jsonrpc": "2.0", "id": None, "error": error}
    assert (seen.kind, seen.status) == ("reply", None)


def test_F037_a_tool_may_say_that_its_credential_was_rejected() -> None:
    seen = observe.from_exception(CredentialsRejected("expired"))
    assert (seen.kind, seen.declared) == ("exception", "credentials_rejected")


def test_an_object_that_is_no_json_is_no_json_in_the_report_either() -> None:
    seen = observe.from_result(object())
    assert (seen.body, seen.altered) == ("<object>", True)
    with pytest.raises(ValueError):  # noqa: PT011
        json.loads(seen.body or "")
