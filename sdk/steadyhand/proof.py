"""Which exceptions prove that nothing left this machine (F023, F024).

Known by package and class name, so that no HTTP library has to be installed. A wrong "nothing left" sends a write
twice; a wrong "unknown" costs one look-up. So only classes raised while connecting count, and not even those once
an earlier request of the same call may have left: a redirect that was followed, or a try of the client's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import FrameType, TracebackType

_HTTPX = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})
_NOTHING_LEFT: dict[str, frozenset[str]] = {
    "httpx": _HTTPX,
    "httpcore": _HTTPX,
    "httpx2": _HTTPX,
    "httpcore2": _HTTPX,
    "aiohttp": frozenset({"ClientConnectorError", "ConnectionTimeoutError"}),
    "requests": frozenset({"ConnectTimeout"}),
    "urllib3": frozenset({"NewConnectionError", "NameResolutionError", "ConnectTimeoutError"}),
    "socket": frozenset({"gaierror"}),
    "builtins": frozenset({"ConnectionRefusedError"}),
}
_WRAPPERS = {
    ("requests", "ConnectionError"),
    ("requests", "ConnectTimeout"),
    ("urllib3", "MaxRetryError"),
    ("urllib", "URLError"),
}
_RESENT_BY_AIOHTTP = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})


def nothing_left(exc: BaseException) -> bool:
    """True only where the exception proves that no byte of any request of this call was sent."""
    chain = list(_unwrapped(exc))
    return _while_connecting(chain[-1]) and not any(may_follow_another(link) for link in chain)


def names(kind: type) -> set[str]:
    """The class names an exception type answers to."""
    return {base.__name__ for base in kind.__mro__}


def _while_connecting(exc: BaseException) -> bool:
    proven = _NOTHING_LEFT.get(_package(type(exc)), frozenset())
    return bool(proven & names(type(exc)))


def _unwrapped(exc: BaseException) -> Iterator[BaseException]:
    """The exception, and inside a known wrapper the one that tells why."""
    yield exc
    if (_package(type(exc)), type(exc).__name__) not in _WRAPPERS:
        return
    inner = getattr(exc, "reason", None) or (exc.args[0] if exc.args else None)
    if isinstance(inner, BaseException):
        yield from _unwrapped(inner)


def may_follow_another(exc: BaseException) -> bool:
    """Whether the library had already sent a request of this call when it raised: a redirect, or a second try."""
    entries: Counter[str] = Counter()
    for frame in _frames(exc.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        if _second_hop(module, frame):
            return True
        if frame.f_code.co_name == "urlopen":
            entries[module] += 1
    return any(count > 1 for count in entries.values())  # urllib3 repeats and redirects by calling itself


def _second_hop(module: str, frame: FrameType) -> bool:
    name = frame.f_code.co_name
    if module == "requests.sessions":
        return name == "resolve_redirects"
    if module == "urllib.request":
        return name.startswith("http_error_3")
    if module.startswith(("httpx", "aiohttp.")) and frame.f_locals.get("history"):
        return True
    # aiohttp sends an idempotent request a second time when a kept connection breaks.
    again = frame.f_locals.get("retry_persistent_connection") is False
    return module == "aiohttp.client" and again and str(frame.f_locals.get("method")).upper() in _RESENT_BY_AIOHTTP


def _frames(traceback: TracebackType | None) -> Iterator[FrameType]:
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]
