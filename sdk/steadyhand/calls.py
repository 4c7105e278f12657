"""One permitted call of a tool: what the function is told, and a way to send HTTP that leaves no doubt."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from steadyhand import observe
from steadyhand.contract import Observation
from steadyhand.errors import OutcomeUnknown, refused_input
from steadyhand.identity import BadInput, check

log = logging.getLogger("steadyhand")
MAX_READ_BYTES = 1024 * 1024
_STARTED = ".send_request_headers.started"


@dataclass
class Call:
    """What a tool's function needs to know about the call it makes.

    `idempotency_key` goes to the provider unchanged; `timeout_seconds` is the contract's, `deadline` its end on
    the monotonic clock. The ids are empty where a read was let through without a record.
    """

    run_id: str
    tool: str
    step: str
    timeout_seconds: float
    deadline: float
    idempotency_key: str | None = None
    action_id: str | None = None
    attempt_id: str | None = None
    attempt: int = 1
    left: bool = False
    traced: bool = False
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    beat: Callable[[], None] | None = field(default=None, repr=False)

    def remaining(self) -> float:
        """Seconds until the deadline, never less than a millisecond."""
        return max(0.001, self.deadline - self.clock())

    def heartbeat(self) -> None:
        """Extend the lease of a long call. Raises Problem once the lease is lost: stop before any side effect."""
        if self.beat is not None:
            self.beat()

    @property
    def bytes_sent(self) -> int | None:
        """0 where the client's own trace proves that no request was begun, else None: not known."""
        return 0 if self.traced and not self.left else None

    def trace(self, event: str, _info: Mapping[str, Any]) -> None:
        """httpx's trace hook."""
        self.traced = True
        self.left = self.left or event.endswith(_STARTED)


ToolFunction = Callable[[dict[str, Any], Call], Any]


@dataclass(frozen=True)
class Tool:
    """A tool of the manifest by name, and the function `(arguments, call) -> result` that performs it.

    The function returns JSON or an HTTP response, or raises. It is called once per permit, and may retry nothing.
    """

    name: str
    function: ToolFunction


def as_tool(tool: Tool | ToolFunction) -> Tool:
    """A Tool as it is; a callable under its own `name` or `__name__`."""
    if isinstance(tool, Tool):
        return tool
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    if not callable(tool) or not isinstance(name, str) or name == "<lambda>":
        raise TypeError("Pass Tool(name, function), or a function whose name is the tool's name in the manifest.")
    return Tool(name, tool)


def recordable(arguments: dict[str, Any]) -> dict[str, Any]:
    """A copy that nobody changes between two tries. Raises Refused for what cannot be recorded."""
    try:
        check(arguments)
    except BadInput as bad:
        raise refused_input(bad.field, bad.remedy) from bad
    return copy.deepcopy(arguments)


def perform(tool: Tool, arguments: dict[str, Any], call: Call) -> tuple[Observation, BaseException | None]:
    """Call the function exactly once. The second value is an interrupt (Ctrl-C) to raise after the report."""
    started = call.clock()
    try:
        value = tool.function(copy.deepcopy(arguments), call)
    except BaseException as error:
        return _seen(error, call, started), None if isinstance(error, Exception) else error
    return _seen(value, call, started), None


def _seen(what: Any, call: Call, started: float) -> Observation:
    """The observation; where even that fails, that the call was made and nothing more."""
    took = max(0, round((call.clock() - started) * 1000))
    try:
        if isinstance(what, BaseException):
            return observe.from_exception(what, latency_ms=took, bytes_sent=call.bytes_sent, left=call.left)
        return observe.from_result(what, latency_ms=took)
    except Exception:
        log.exception("run %s: what %s answered could not be read", call.run_id, call.tool)
        return Observation(kind="exception", exc_type="AnswerNotReadable", latency_ms=took)


def http_call(
    call: Call,
    client: httpx.Client,
    method: str,
    url: str,
    *,
    json: Any = None,
    params: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> httpx.Response:
    """Send one request within the call's deadline: no redirects, at most 1 MiB of answer (F039, F040).

    Raises httpx's own errors, which the boundary reads, and OutcomeUnknown for an answer without end.
    """
    request = client.build_request(
        method, url, json=json, params=params, headers=headers,
        timeout=call.remaining(), extensions={"trace": call.trace},
    )  # fmt: skip
    response = client.send(request, stream=True, follow_redirects=False)
    try:
        content = _read(response, call)
    finally:
        response.close()
    passed_on = [(name, value) for name, value in response.headers.multi_items() if name not in _DESCRIBE_TRANSFER]
    return httpx.Response(response.status_code, headers=passed_on, content=content, request=request)


_DESCRIBE_TRANSFER = {"content-encoding", "transfer-encoding", "content-length"}


def _read(response: httpx.Response, call: Call) -> bytes:
    content = bytearray()
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > MAX_READ_BYTES:
            raise OutcomeUnknown(f"The answer is longer than {MAX_READ_BYTES} bytes.")
        if call.clock() > call.deadline:
            raise httpx.ReadTimeout("The answer took longer than the call may last.", request=response.request)
    return bytes(content)
