"""The shapes in which HTTP clients, MCP and gRPC hand over what came back, known without importing any of them.

Pure. A shape that nobody knows is no answer: then the value itself is what the tool returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from steadyhand.proof import may_follow_another, names

_SAFE_TO_FOLLOW = {"GET", "HEAD"}
_TELLS_A_STATUS = re.compile(r"(HTTP|Http|Status|Response|API|Api)\w*(Error|Exception)$")
_STATUS_NAMES = frozenset((
    "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
))  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """An HTTP answer: `content` is None where nobody read the body.

    `unlike` names why it may answer another request than the one that was sent first: a redirect that was followed,
    or a try of the client's own (F039, F107).
    """

    status: int
    headers: Any
    content: bytes | None
    encoding: str | None = None
    unlike: str = ""


def answer_of(value: object) -> Answer | None:
    """The answer in a response of httpx, requests, urllib3, http.client or aiohttp; None for anything else."""
    headers, kind = attribute(value, "headers"), type(value)
    if not (isinstance(headers, Mapping) or hasattr(type(headers), "items")):
        return None
    status = attribute(
        value, "status_code" if hasattr(kind, "status_code") or _has(value, "status_code") else "status"
    )
    if not isinstance(status, int) or isinstance(status, bool) or not 100 <= status <= 999:
        return None
    if not any(hasattr(kind, name) for name in ("content", "data", "read")):
        return None
    return Answer(status, headers, _content(value), _text(attribute(value, "encoding")), _unlike(value))


def answer_in(exc: BaseException) -> Answer | None:
    """The refusal that an exception carries: as a response, as AWS's own error, or as a bare status."""
    response = attribute(exc, "response")
    if isinstance(response, dict):
        return None
    carried = answer_of(response)
    if carried is not None:
        return carried if carried.status >= 300 else None
    status = _bare_status(exc)
    return None if status is None else Answer(status, attribute(exc, "headers"), None)


def aws_error(exc: BaseException) -> tuple[int, dict[str, Any]] | None:
    """(status, error) of a botocore ClientError that answers the first and only request; None else.

    botocore tries again by itself: what an earlier try did is not known from the last one's refusal.
    """
    response = attribute(exc, "response")
    if not isinstance(response, dict) or "ClientError" not in names(type(exc)):
        return None
    about, error = response.get("ResponseMetadata"), response.get("Error")
    if not isinstance(about, dict) or not isinstance(error, dict) or about.get("RetryAttempts"):
        return None
    status = about.get("HTTPStatusCode")
    plain = {"code": str(error.get("Code", "")), "message": str(error.get("Message", ""))}
    return (status, plain) if isinstance(status, int) and 300 <= status <= 599 else None


def rpc_error(exc: BaseException) -> dict[str, Any] | None:
    """The error object of a JSON-RPC answer, as MCP's client raises it; its subclasses are raised by our own side."""
    error = attribute(exc, "error")
    code, message = attribute(error, "code"), attribute(error, "message")
    if type(exc).__name__ not in ("MCPError", "McpError") or not isinstance(code, int):
        return None
    data = attribute(error, "data")
    return {"code": code, "message": str(message)} | ({} if data is None else {"data": data})


def status_name(exc: BaseException) -> str | None:
    """The gRPC status that an exception carries by name: `exc.code().name`.

    An answer that our own side found too long has one too, and was an answer: the call was carried out.
    """
    if not callable(getattr(type(exc), "code", None)):
        return None
    try:
        name, details = exc.code().name, str(exc.details())  # type: ignore[attr-defined]
    except Exception:  # anything may stand behind a foreign attribute; then it is no gRPC status
        return None
    if name == "RESOURCE_EXHAUSTED" and "larger than max" in details:
        return None
    return name if isinstance(name, str) and name in _STATUS_NAMES else None


def attribute(thing: object, name: str) -> Any:
    """An attribute of a foreign object, which may raise anything on the way; None then."""
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def _has(value: object, name: str) -> bool:
    return attribute(value, name) is not None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _content(value: object) -> bytes | None:
    """The body as bytes, if it was read: reading it now could wait, or break."""
    for name in ("content", "data", "_body"):
        content = attribute(value, name)
        if isinstance(content, (bytes, bytearray)):
            return bytes(content)
    return None


def _unlike(value: object) -> str:
    if any(_may_act(hop) for hop in _list(attribute(value, "history"))):
        return "RedirectFollowed"
    raw = attribute(value, "raw")
    retries = attribute(value, "retries") or attribute(raw, "retries")
    return "RetriedByClient" if any(_may_act(hop) for hop in _list(attribute(retries, "history"))) else ""


def _may_act(hop: object) -> bool:
    """Whether an earlier request of the same call may have changed something."""
    method = attribute(attribute(hop, "request"), "method") or attribute(hop, "method")
    return str(method or "").upper() not in _SAFE_TO_FOLLOW


def _list(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _bare_status(exc: BaseException) -> int | None:
    """The status in an exception that says by its name that it tells one, and carries no response."""
    if not any(_TELLS_A_STATUS.search(name) for name in names(type(exc))):
        return None
    found = (attribute(exc, name) for name in ("status_code", "status", "http_status"))
    status = next((one for one in found if isinstance(one, int) and not isinstance(one, bool)), None)
    followed = bool(attribute(exc, "history")) or may_follow_another(exc)
    return status if status is not None and 400 <= status <= 599 and not followed else None
