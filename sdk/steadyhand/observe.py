"""What came back from a tool, as an observation that always fits the record (ruling 16, FAULTS B).

Pure. Nothing here decides what an answer means; in doubt an observation says that nothing is known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

import httpx
from pydantic_core import to_jsonable_python

from steadyhand.contract import MAX_REPLY_BYTES, Observation
from steadyhand.errors import ToolSignal
from steadyhand.proof import may_follow_another, names, nothing_left

MAX_MESSAGE = 2000
MAX_HEADER = 500
KEPT_HEADERS = {
    "age", "cache-control", "content-length", "content-type", "date", "etag", "idempotency-key",
    "idempotent-replayed", "last-modified", "location", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset",
    "request-id", "retry-after", "server", "x-correlation-id", "x-ratelimit-limit", "x-ratelimit-remaining",
    "x-ratelimit-reset", "x-request-id",
}  # fmt: skip
"""What helps a decision or a support case. Cookies and credentials never travel (SEC-36)."""

_TIMEOUTS = {"TimeoutError", "TimeoutException", "Timeout", "ServerTimeoutError"}
_LOST = {
    "ConnectionError", "NetworkError", "ProtocolError", "HTTPException", "ChunkedEncodingError", "BrokenPipeError",
    "ServerDisconnectedError", "ClientPayloadError", "ClientOSError", "URLError", "EOFError",
}  # fmt: skip
_STATUS_OF = {
    ("urllib.error", "HTTPError"): "code",
    ("aiohttp.client_exceptions", "ClientResponseError"): "status",
}
_PLAIN_REFUSALS = {401, 403, 404, 410, 429}
_SAFE_TO_FOLLOW = {"GET", "HEAD"}
_RAW = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]"
_UNFIT = re.compile(_RAW)
_UNFIT_IN_JSON = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # an escaped pair: whole, kept
    r"|(?P<unfit>\\u0000|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # an escaped NUL or half a pair: no text column holds it
    rf"|\\.|{_RAW}",  # any other escape: kept
    re.DOTALL,
)


def clean(text: str, limit: int | None = None) -> str:
    """The text with NUL, lone surrogates and control characters written out visibly, cut to `limit` characters."""
    return _UNFIT.sub(lambda found: f"\\u{ord(found.group()):04x}", text)[:limit]


def from_result(value: Any, *, latency_ms: int = 0) -> Observation:
    """What a tool returned: an HTTP response becomes a reply with its status, any other value a reply in JSON."""
    if _is_response(value):
        return _from_response(value, latency_ms)
    text, altered = _as_json(value)
    return _reply(text, len(text.encode("utf-8", "surrogatepass")), altered, latency_ms=latency_ms)


def from_exception(
    exc: BaseException, *, latency_ms: int = 0, bytes_sent: int | None = None, left: bool = False
) -> Observation:
    """What a tool raised. Only a proof that nothing left gives `not_sent`; anything nobody mapped stays unknown.

    `left` says that a request of this call is known to have started, which no exception can undo.
    """
    if isinstance(exc, ToolSignal):
        return _declared(exc, latency_ms)
    response = _attribute(exc, "response")
    if _is_response(response) and response.status_code >= 300:
        return _from_response(response, latency_ms)
    status = _bare_status(exc)
    if status is not None:
        return _without_body(status, _attribute(exc, "headers"), latency_ms)
    kind = "not_sent" if nothing_left(exc) and not left else _kind(exc)
    return _raised(kind, exc, latency_ms, bytes_sent=bytes_sent if kind == "connection_lost" else None)


def not_sent(why: str) -> Observation:
    """The boundary itself did not call the tool."""
    return Observation(kind="not_sent", declared="not_sent", message=clean(why, MAX_MESSAGE))


def _declared(signal: ToolSignal, latency_ms: int) -> Observation:
    asked = getattr(signal, "retry_after", None)
    return _raised(
        "not_sent" if signal.declared == "not_sent" else "exception",
        signal,
        latency_ms,
        declared=signal.declared,
        declared_field=clean(signal.field, 200) if signal.field else None,
        retry_after=clean(asked, 100) if asked else None,
    )


def _raised(kind: str, exc: BaseException, latency_ms: int, **more: Any) -> Observation:
    return Observation(
        kind=cast(Any, kind),
        exc_type=clean(f"{type(exc).__module__}.{type(exc).__qualname__}", 200),
        message=clean(_text_of(exc), MAX_MESSAGE),
        latency_ms=max(0, latency_ms),
        **more,
    )


def _kind(exc: BaseException) -> str:
    known = names(type(exc))
    if known & _TIMEOUTS:
        return "timeout"
    return "connection_lost" if known & _LOST else "exception"


def _text_of(exc: BaseException) -> str:
    try:
        return str(exc)
    except Exception:  # a foreign __str__ may do anything; the type is still reported
        return ""


def _bare_status(exc: BaseException) -> int | None:
    """The refusal in an exception that carries a status but no response: urllib's HTTPError, aiohttp's."""
    kind = (type(exc).__module__, type(exc).__name__)
    status = _attribute(exc, _STATUS_OF.get(kind, "."))
    followed = bool(_attribute(exc, "history")) or may_follow_another(exc)
    return status if isinstance(status, int) and 400 <= status <= 599 and not followed else None


def _from_response(response: Any, latency_ms: int) -> Observation:
    if _followed_from_a_write(response):
        return Observation(kind="exception", exc_type="RedirectFollowed", latency_ms=max(0, latency_ms))
    status = response.status_code
    try:
        text, altered = _decoded(response)
        size = len(response.content)
    except Exception:  # the body was never read, or broke while it was read: the status alone is known
        return _without_body(status, response.headers, latency_ms)
    return _reply(text, size, altered, latency_ms=latency_ms, status=status, headers=_headers(response.headers))


def _without_body(status: int, headers: Any, latency_ms: int) -> Observation:
    """A status whose body nobody read. A 409 may say "already done" in its body, so most refusals stay open."""
    if 400 <= status <= 499 and status not in _PLAIN_REFUSALS:
        return Observation(kind="exception", exc_type=f"BodyNotRead ({status})", latency_ms=max(0, latency_ms))
    return _reply(None, None, True, latency_ms=latency_ms, status=status, headers=_headers(headers))


def _followed_from_a_write(response: Any) -> bool:
    """A followed redirect answers another request than ours; what ours did, nobody read (F039)."""
    history = _attribute(response, "history") or []
    return any(str(getattr(hop.request, "method", "")).upper() not in _SAFE_TO_FOLLOW for hop in history)


def _decoded(response: Any) -> tuple[str, bool]:
    raw = cast(bytes, response.content)
    for encoding in ("utf-8", _attribute(response, "encoding")):
        try:
            return raw.decode(encoding or "utf-8"), False
        except (UnicodeDecodeError, LookupError):
            continue
    return raw.decode("utf-8", "backslashreplace"), True


def _reply(
    text: str | None,
    size: int | None,
    altered: bool,
    *,
    latency_ms: int,
    status: int | None = None,
    headers: dict[str, str] | None = None,
) -> Observation:
    body = None if text is None else _cut(_clean_json(text[:MAX_REPLY_BYTES]))
    changed = altered or (text is not None and body != text)
    return Observation(
        kind="reply",
        status=status,
        headers=headers or {},
        body=body,
        body_bytes=size,
        altered=changed,
        latency_ms=max(0, latency_ms),
    )


def _cut(text: str) -> str:
    return text.encode()[:MAX_REPLY_BYTES].decode("utf-8", "ignore")


def _clean_json(text: str) -> str:
    """As `clean`, so that the text parsed as JSON shows the same: what is escaped there is written out too."""
    return _UNFIT_IN_JSON.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    if found["unfit"]:
        return "\\" + found["unfit"]
    return found.group() if found.group()[0] == "\\" else f"\\\\u{ord(found.group()):04x}"


def _headers(headers: Any) -> dict[str, str]:
    pairs: Iterable[tuple[Any, Any]] = headers.items() if hasattr(headers, "items") else ()
    kept = {str(name).lower(): str(value) for name, value in pairs if str(name).lower() in KEPT_HEADERS}
    if "location" in kept:
        kept["location"] = kept["location"].partition("?")[0]
    return {name: clean(value, MAX_HEADER) for name, value in kept.items()}


def _is_response(value: Any) -> bool:
    """httpx's response, or one shaped like it (requests): a status, headers and content."""
    if isinstance(value, httpx.Response):
        return True
    shaped = isinstance(_attribute(value, "headers"), Mapping) and hasattr(type(value), "content")
    status = _attribute(value, "status_code")
    return shaped and isinstance(status, int) and 100 <= status <= 999


def _attribute(thing: object, name: str) -> Any:
    """An attribute of a foreign object, which may raise anything on the way; None then."""
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def _as_json(value: Any) -> tuple[str, bool]:
    """The value as JSON text; a value that is no JSON is named by its type only, and marked altered."""
    try:
        return json.dumps(value, ensure_ascii=False, default=to_jsonable_python), False
    except Exception:  # a foreign value may refuse in any way; what it was must still be reported
        return json.dumps(f"<{type(value).__qualname__}>"), True
