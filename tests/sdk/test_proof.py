"""Only an exception that proves that nothing left may say so; every other one leaves the outcome unknown."""

from __future__ import annotations

import http.client
import importlib
import inspect
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import requests
import urllib3
from hypothesis import given
from hypothesis import strategies as st
from steadyhand import observe
from steadyhand.proof import nothing_left

from tests.sdk.counting_server import counting, cut, drop, plainly

PROVEN = {
    "httpx": {"ConnectError", "ConnectTimeout", "PoolTimeout"},
    "requests.exceptions": {"ConnectTimeout"},
    "urllib3.exceptions": {"NewConnectionError", "NameResolutionError", "ConnectTimeoutError"},
    "aiohttp.client_exceptions": {
        "ClientConnectorError",
        "ClientConnectorDNSError",
        "ClientConnectorSSLError",
        "ClientConnectorCertificateError",
        "ClientProxyConnectionError",
        "ClientSSLError",
        "ConnectionTimeoutError",
        "UnixClientConnectorError",
    },
    "http.client": set(),
    "ssl": set(),
    "socket": {"gaierror"},
    "asyncio": set(),
    "urllib.error": set(),
    "builtins": {"ConnectionRefusedError"},
}


def exceptions_of(module: str) -> list[type[BaseException]]:
    try:
        found = vars(importlib.import_module(module)).values()
    except ImportError:  # a library that this environment lacks proves nothing either way
        return []
    return sorted(
        {kind for kind in found if inspect.isclass(kind) and issubclass(kind, Exception)}, key=lambda k: k.__name__
    )


def made(kind: type[BaseException]) -> BaseException:
    """An instance without its constructor, for many want arguments that say nothing here."""
    exc = kind.__new__(kind, "broken", [ValueError()]) if _is_group(kind) else kind.__new__(kind)
    exc.args = ("broken",)
    return exc


def _is_group(kind: type[BaseException]) -> bool:
    return any(base.__name__ == "BaseExceptionGroup" for base in kind.__mro__)


EVERY = [(module, kind) for module in PROVEN for kind in exceptions_of(module)]


@pytest.mark.parametrize(("module", "kind"), EVERY, ids=lambda value: getattr(value, "__name__", value))
def test_F023_only_proven_classes_are_not_sent(module: str, kind: type[BaseException]) -> None:
    home = kind.__module__
    proven = kind.__name__ in PROVEN.get(module, set()) | PROVEN.get(home, set())
    observation = observe.from_exception(made(kind))
    assert (observation.kind == "not_sent") == proven, f"{home}.{kind.__name__} gave {observation.kind}"


@pytest.mark.parametrize("kind", [httpx.ConnectError, ConnectionRefusedError, socket.gaierror])
def test_no_proof_stands_against_a_request_that_is_known_to_have_left(kind: type[Exception]) -> None:
    assert observe.from_exception(kind("refused"), left=True).kind != "not_sent"


@given(st.sampled_from([kind for _, kind in EVERY]), st.text(max_size=50))
def test_a_class_of_ones_own_proves_nothing_by_its_name(kind: type[BaseException], name: str) -> None:
    mine = type(kind.__name__, (Exception,), {"__module__": "mine"})
    assert not nothing_left(mine(name))
    inherited = type(kind.__name__, (kind,), {"__module__": "mine", "__new__": kind.__new__})
    assert not nothing_left(made(inherited))


def test_what_an_exception_was_raised_from_is_no_proof() -> None:
    wrapped = RuntimeError("the credit failed")
    wrapped.__cause__ = httpx.ConnectError("refused")
    assert observe.from_exception(wrapped).kind == "exception"


@contextmanager
def nobody_listening() -> Iterator[str]:
    """An address at which nothing listens while the block runs."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/credits"


def by_httpx(url: str) -> object:
    return httpx.post(url, json={}, follow_redirects=True, timeout=2)


def by_requests(url: str) -> object:
    return requests.post(url, json={}, timeout=2)


def by_urllib3(url: str) -> object:
    return urllib3.PoolManager().request("POST", url, body=b"{}", timeout=2)


def by_urllib3_put(url: str) -> object:
    return urllib3.PoolManager().request("PUT", url, body=b"{}", timeout=2)


def by_urllib(url: str) -> object:
    return urllib.request.urlopen(urllib.request.Request(url, data=b"{}", method="POST"), timeout=2)


def by_http_client(url: str) -> object:
    address = httpx.URL(url)
    connection = http.client.HTTPConnection(address.host, address.port, timeout=2)
    connection.request("POST", address.path, b"{}")
    return connection.getresponse().read()


ALL = [by_httpx, by_requests, by_urllib3, by_urllib, by_http_client]
FOLLOWING = [(send, status) for send in (by_httpx, by_requests, by_urllib3) for status in (302, 307)]


def observed(send: object, url: str) -> observe.Observation:
    try:
        return observe.from_result(send(url))  # type: ignore[operator]
    except Exception as error:
        return observe.from_exception(error)


@pytest.mark.parametrize("send", [by_httpx, by_requests, by_urllib, by_http_client])
def test_F023_a_refused_connection_is_not_sent(send: object) -> None:
    with nobody_listening() as url:
        assert observed(send, url).kind == "not_sent"


def test_a_client_that_tried_several_times_proves_nothing() -> None:
    """urllib3's own retries: that all of them failed to connect cannot be told from the last one alone."""
    with nobody_listening() as url:
        assert observed(by_urllib3, url).kind == "exception"


@pytest.mark.parametrize(("send", "status"), [*FOLLOWING, (by_urllib, 302)])
def test_F039_a_refused_connection_behind_a_redirect_is_unknown(send: object, status: int) -> None:
    """The write arrived and was answered; only the hop after it failed. A second send would double it."""
    with nobody_listening() as closed, counting(answer=plainly(status, {"location": closed})) as counted:
        assert observed(send, counted.url + "/credits").kind not in ("not_sent", "reply")
    assert counted.arrivals == 1


@pytest.mark.parametrize("send", [by_httpx, by_requests])
def test_F039_the_answer_behind_a_followed_redirect_is_not_ours(send: object) -> None:
    answers = iter([plainly(302, {"location": "/elsewhere"}), plainly(404)])
    with counting(answer=lambda handler: next(answers)(handler)) as counted:
        observation = observed(send, counted.url + "/credits")
    assert (observation.kind, observation.exc_type, observation.status) == ("exception", "RedirectFollowed", None)


@pytest.mark.parametrize("send", ALL)
def test_F026_a_connection_closed_after_the_request_is_unknown(send: object) -> None:
    with counting(answer=drop) as counted:
        assert observed(send, counted.url + "/credits").kind in ("connection_lost", "exception")
    assert counted.arrivals == 1


@pytest.mark.parametrize("send", [by_httpx, by_requests, by_http_client])
def test_F030_a_reply_that_was_cut_is_no_reply(send: object) -> None:
    with counting(answer=cut) as counted:
        assert observed(send, counted.url + "/credits").kind in ("connection_lost", "exception")


def test_F025_a_read_timeout_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/credits"
        seen = {observe.from_exception(_raised_by(url, send)).kind for send in (_quick_httpx, _quick_requests)}
    assert seen == {"timeout"}


def _quick_httpx(url: str) -> object:
    return httpx.post(url, timeout=0.1)


def _quick_requests(url: str) -> object:
    return requests.post(url, timeout=0.1)


def _raised_by(url: str, send: object) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        send(url)  # type: ignore[operator]
    return caught.value


def test_a_broken_handshake_proves_nothing_without_a_connecting_class() -> None:
    assert observe.from_exception(ssl.SSLError("handshake")).kind == "exception"


def test_F037_urllibs_own_refusal_is_a_reply_where_its_body_does_not_matter() -> None:
    with counting(status=429, answer=plainly(429, {"retry-after": "7"})) as limited:
        observation = observed(by_urllib, limited.url)
    assert (observation.status, observation.headers["retry-after"]) == (429, "7")
    with counting(answer=plainly(409, body=b'{"code": "already_done"}')) as conflict:
        assert observed(by_urllib, conflict.url).kind == "exception", "its meaning stood in a body nobody read"
