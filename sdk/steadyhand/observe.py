"""What came back from a tool, as an observation that always fits the record (ruling 16, FAULTS B).

Pure. Nothing here decides what an answer means; in doubt an observation says that nothing is known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, cast

from pydantic_core import to_jsonable_python

from steadyhand.contract import MAX_REPLY_BYTES, Observation
from steadyhand.errors import ToolSignal
from steadyhand.proof import names, nothing_left
from steadyhand.shapes import Answer, answer_in, answer_of, aws_error, rpc_error, status_name

MAX_MESSAGE = 2000
MAX_HEADER = 500
KEPT_WHOLE = MAX_REPLY_BYTES * 3 // 4
"""Characters up to which an answer is kept as it came: written out, some become longer."""
KEPT_HEADERS = {
    "age", "cache-control", "content-length", "content-type", "date", "etag", "idempotency-key",
    "idempotent-replayed", "last-modified", "location", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset",
    "request-id", "retry-after", "retry-after-ms", "server", "x-correlation-id", "x-ratelimit-limit",
    "x-ratelimit-remaining", "x-ratelimit-reset", "x-request-id",
}  # fmt: skip
"""What helps a decision or a support case. Cookies and credentials never travel (SEC-36)."""

_TIMEOUTS = {"TimeoutError", "TimeoutException", "Timeout", "ServerTimeoutError"}
_LOST = {
    "ConnectionError", "NetworkError", "ProtocolError", "HTTPException", "ChunkedEncodingError", "BrokenPipeError",
    "ServerDisconnectedError", "ClientPayloadError", "ClientOSError", "URLError", "EOFError",
}  # fmt: skip
_PLAIN_REFUSALS = {401, 403, 404, 410, 429}
_RAW = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]"
_UNFIT = re.compile(_RAW)
_UNFIT_IN_JSON = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # an escaped pair: whole, kept
    r"|(?P<unfit>\\u0000|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # an escaped NUL or half a pair: no text column holds it
    rf"|\\(?P<bare>{_RAW})"  # a backslash before what no JSON text may hold: both are written out
    rf"|\\.|{_RAW}",  # any other escape: kept
    re.DOTALL,
)


def clean(text: str, limit: int | None = None) -> str:
    """The text with NUL, lone surrogates and control characters written out visibly, cut to `limit` characters."""
    return _UNFIT.sub(lambda found: f"\\u{ord(found.group()):04x}", text)[:limit]


def from_result(value: Any, *, latency_ms: int = 0) -> Observation:
    """What a tool returned: an HTTP response becomes a reply with its status, any other value a reply in JSON."""
    answer = answer_of(value)
    if answer is not None:
        return _from_answer(answer, latency_ms)
    return _in_json(value, latency_ms)


def from_exception(
    exc: BaseException, *, latency_ms: int = 0, bytes_sent: int | None = None, left: bool = False
) -> Observation:
    """What a tool raised. Only a proof that nothing left gives `not_sent`; anything nobody mapped stays unknown.

    `left` says that a request of this call is known to have started, which no exception can undo.
    """
    if isinstance(exc, ToolSignal):
        return _declared(exc, latency_ms)
    told = _told(exc, latency_ms)
    if told is not None:
        return told
    kind = "not_sent" if nothing_left(exc) and not left else _kind(exc)
    return _raised(kind, exc, latency_ms, bytes_sent=bytes_sent if kind == "connection_lost" else None)


def not_sent(why: str) -> Observation:
    """The boundary itself did not call the tool."""
    return Observation(kind="not_sent", declared="not_sent", message=clean(why, MAX_MESSAGE))


def _told(exc: BaseException, latency_ms: int) -> Observation | None:
    """The answer that an exception carries; its text stays out, for an answer says what there is to say."""
    answer = answer_in(exc)
    if answer is not None:
        return _from_answer(answer, latency_ms)
    aws, rpc, status = aws_error(exc), rpc_error(exc), status_name(exc)
    if aws is not None:
        return _in_json({"error": aws[1]}, latency_ms, status=aws[0])
    if rpc is not None:
        return _in_json({"jsonrpc": "2.0", "id": None, "error": rpc}, latency_ms)
    return None if status is None else Observation(kind="reply", code=status, latency_ms=max(0, latency_ms))


def _in_json(value: Any, latency_ms: int, *, status: int | None = None) -> Observation:
    text, altered = _as_json(value)
    return _reply(text, len(text.encode("utf-8", "surrogatepass")), altered, latency_ms=latency_ms, status=status)


def _declared(signal: ToolSignal, latency_ms: int) -> Observation:
    asked = getattr(signal, "retry_after", None)
    return _raised(
        "not_sent" if signal.declared == "not_sent" else "exception",
        signal,
        latency_ms,
        declared=signal.declared,
        code=clean(code, 80) if (code := getattr(signal, "code", None)) else None,
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


def _from_answer(answer: Answer, latency_ms: int) -> Observation:
    """A followed redirect, or a second try, answers another request than ours; what ours did, nobody read (F039)."""
    if answer.unlike:
        return Observation(kind="exception", exc_type=answer.unlike, latency_ms=max(0, latency_ms))
    if answer.content is None:
        return _without_body(answer.status, answer.headers, latency_ms)
    text, altered = _decoded(answer.content, answer.encoding)
    return _reply(
        text,
        len(answer.content),
        altered,
        latency_ms=latency_ms,
        status=answer.status,
        headers=_headers(answer.headers),
    )


def _without_body(status: int, headers: Any, latency_ms: int) -> Observation:
    """A status whose body nobody read. A 409 may say "already done" in its body, so most refusals stay open."""
    if 400 <= status <= 499 and status not in _PLAIN_REFUSALS:
        return Observation(kind="exception", exc_type=f"BodyNotRead ({status})", latency_ms=max(0, latency_ms))
    return _reply(None, None, True, latency_ms=latency_ms, status=status, headers=_headers(headers))


def _decoded(raw: bytes, declared: str | None) -> tuple[str, bool]:
    for encoding in ("utf-8", declared):
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
    body = None if text is None else _cut(_clean_json(_shortened(text)))
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


def _shortened(text: str) -> str:
    """An answer too long to keep: where that is enough, its long texts are cut, each with a mark that says so, and it
    stays JSON; else its beginning. A list is never cut short: what is missing from it would not be seen."""
    if len(text) <= KEPT_WHOLE:
        return text
    try:
        value = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return text[:MAX_REPLY_BYTES]
    for most in (10_000, 1_000, 100):
        made = json.dumps(_less(value, most), ensure_ascii=False)
        if len(made.encode("utf-8", "surrogatepass")) <= KEPT_WHOLE:
            return made
    return text[:MAX_REPLY_BYTES]


def _less(value: Any, most: int) -> Any:
    if isinstance(value, str) and len(value) > most:
        return f"{value[:most]} [cut: {len(value)} characters]"
    if isinstance(value, list):
        return [_less(item, most) for item in value]
    if isinstance(value, dict):
        return {name: _less(item, most) for name, item in value.items()}
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a field stands twice")
    return dict(pairs)


def _cut(text: str) -> str:
    return text.encode()[:MAX_REPLY_BYTES].decode("utf-8", "ignore")


def _clean_json(text: str) -> str:
    """As `clean`, so that the text parsed as JSON shows the same: what is escaped there is written out too."""
    return _UNFIT_IN_JSON.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    if found["unfit"]:
        return "\\" + found["unfit"]
    if found["bare"]:
        return f"\\\\\\\\u{ord(found['bare']):04x}"
    return found.group() if found.group()[0] == "\\" else f"\\\\u{ord(found.group()):04x}"


def _headers(headers: Any) -> dict[str, str]:
    pairs: Iterable[tuple[Any, Any]] = headers.items() if hasattr(headers, "items") else ()
    kept = {str(name).lower(): str(value) for name, value in pairs if str(name).lower() in KEPT_HEADERS}
    if "location" in kept:
        kept["location"] = kept["location"].partition("?")[0]
    return {name: clean(value, MAX_HEADER) for name, value in kept.items()}


def _as_json(value: Any) -> tuple[str, bool]:
    """The value as JSON text; one that is none is named by its type, in text that is no JSON, and marked altered."""
    try:
        return json.dumps(value, ensure_ascii=False, default=to_jsonable_python), False
    except Exception:  # a foreign value may refuse in any way; what it was must still be reported
        return f"<{type(value).__qualname__}>", True
