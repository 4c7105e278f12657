"""No class of error frees a write to be sent again, unless its library raises it before anything has left (I1).

Every exception class that the usual libraries can raise is made, raised, observed and classified.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache

import pytest
from steadyhand import observe
from steadyhand.manifest import Tool

from recovery.rules.classify import Classified, classify

NOW = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
MODULES = ("httpx", "httpcore", "h11", "anyio", "requests", "aiohttp", "aiohttp.http_exceptions", "http.client",
           "urllib3", "urllib.error", "botocore.exceptions", "mcp", "grpc", "grpc.aio", "ssl", "socket", "asyncio",
           "concurrent.futures", "json", "zlib", "encodings", "builtins")  # fmt: skip
RAISED_WHILE_CONNECTING = {
    "httpx.ConnectError", "httpx.ConnectTimeout", "httpx.PoolTimeout", "httpcore.ConnectError",
    "httpcore.ConnectTimeout", "httpcore.PoolTimeout", "requests.exceptions.ConnectTimeout",
    "urllib3.exceptions.NewConnectionError", "urllib3.exceptions.NameResolutionError",
    "urllib3.exceptions.ConnectTimeoutError", "aiohttp.client_exceptions.ClientConnectorError",
    "aiohttp.client_exceptions.ClientConnectorDNSError", "aiohttp.client_exceptions.ClientConnectorSSLError",
    "aiohttp.client_exceptions.ClientConnectorCertificateError", "aiohttp.client_exceptions.ClientSSLError",
    "aiohttp.client_exceptions.ClientProxyConnectionError", "aiohttp.client_exceptions.ConnectionTimeoutError",
    "aiohttp.client_exceptions.UnixClientConnectorError", "socket.gaierror", "builtins.ConnectionRefusedError",
}  # fmt: skip
PLAIN = Tool.model_validate({"name": "t", "effect": "write"})
KEYED = Tool.model_validate(
    {
        "name": "t",
        "effect": "write",
        "idempotency": {"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"},
        "credential": "refreshable",
        "not_executed_statuses": [500, 503],
    }
)


def below(kind: type[BaseException]) -> Iterator[type[BaseException]]:
    for child in kind.__subclasses__():
        yield child
        yield from below(child)


@cache
def every_class() -> list[type[BaseException]]:
    """Every exception class of these libraries that exists once they are imported."""
    packages = {importlib.import_module(name).__name__.partition(".")[0] for name in MODULES}
    found = {kind for kind in below(BaseException) if kind.__module__.partition(".")[0] in packages}
    return sorted(found, key=lambda kind: (kind.__module__, kind.__qualname__))


GUESSES: tuple[tuple[object, ...], ...] = (
    ("broken",), ("broken", None), ("broken", None, None), (), ({}, "broken"), (500, "broken"), (2, "broken", (), ""),
)  # fmt: skip


def made(kind: type[BaseException]) -> BaseException:
    """An instance, built as a library would where that can be guessed, else without its constructor."""
    for arguments in GUESSES:
        try:
            return kind(*arguments)
        except BaseException:  # each class wants something else
            continue
    exc = kind.__new__(kind, "broken", [ValueError()]) if issubclass(kind, BaseExceptionGroup) else kind.__new__(kind)
    exc.args = ("broken",)
    return exc


def raised(exc: BaseException) -> BaseException:
    try:
        raise exc
    except BaseException as caught:
        return caught


def read(exc: BaseException, tool: Tool, *, left: bool) -> Classified:
    seen = observe.from_exception(raised(exc), left=left)
    return classify(seen, tool, clock=lambda: NOW, breach=lambda result: None)


def test_there_are_many_classes_to_try() -> None:
    libraries = {kind.__module__.partition(".")[0] for kind in every_class()}
    assert len(every_class()) > 250, "the libraries are installed, and all their classes were found"
    assert {"httpx", "requests", "aiohttp", "http", "urllib3", "botocore", "mcp", "grpc", "builtins"} <= libraries


@pytest.mark.parametrize("tool", [PLAIN, KEYED], ids=["plain", "keyed"])
def test_I1_no_exception_frees_a_write_once_something_has_left(tool: Tool) -> None:
    freed = [kind for kind in every_class() if read(made(kind), tool, left=True).observed != "unknown"]
    assert freed == []


@pytest.mark.parametrize("tool", [PLAIN, KEYED], ids=["plain", "keyed"])
def test_I1_an_exception_frees_a_write_only_where_it_is_raised_while_connecting(tool: Tool) -> None:
    ends = {
        f"{kind.__module__}.{kind.__qualname__}": read(made(kind), tool, left=False).observed
        for kind in every_class()
    }
    assert {name: end for name, end in ends.items() if end != "unknown"} == dict.fromkeys(
        sorted(RAISED_WHILE_CONNECTING & ends.keys()), "not_sent"
    )
    assert len(RAISED_WHILE_CONNECTING & ends.keys()) > 15


def test_I1_an_error_that_nobody_mapped_is_unknown_whatever_it_says() -> None:
    class OurOwn(Exception):
        """Raised by a tool's own code."""

    for text in ("not executed, honestly", "connection refused", "429", "HTTP 401 Unauthorized", "rolled back"):
        assert read(OurOwn(text), KEYED, left=False).observed == "unknown"
