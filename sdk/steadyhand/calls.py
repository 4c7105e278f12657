"""One permitted call of a tool: what its function is told, and what is seen of what it did."""

from __future__ import annotations

import contextlib
import copy
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from steadyhand import observe
from steadyhand.contract import Leased, Observation
from steadyhand.errors import NotSent, OutcomeUnknown, refused_input
from steadyhand.identity import BadInput, check
from steadyhand.repeats import SentTwice, guarded

log = logging.getLogger("steadyhand")
_STARTED = ".send_request_headers.started"
BUGS = (TypeError, NameError, AttributeError, LookupError, ArithmeticError, ImportError, AssertionError, SyntaxError)
"""What code raises about itself; a provider that fails raises something else."""
Request = tuple[str, str, bytes]


async def _no_pulse() -> None:
    """A call without a record has no lease."""


@dataclass
class Call:
    """What a tool's function needs to know about the call it makes.

    `idempotency_key` goes to the provider unchanged; `timeout_seconds` is the contract's, `deadline` its end on
    the monotonic clock. The ids are empty where a read was let through without a record. `refresh_credential`:
    the last try's credential was rejected, so this one needs a new one. `extra_sends` counts repeats of a request
    that were stopped.
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
    is_read: bool = False
    refresh_credential: bool = False
    left: bool = False
    traced: bool = False
    lost: bool = False
    extra_sends: int = 0
    begin_by: float | None = field(default=None, repr=False)
    sent: dict[Request, Any] = field(default_factory=dict, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    pulse: Callable[[], Coroutine[Any, Any, Leased | None]] = field(default=_no_pulse, repr=False)
    waiter: Callable[[Coroutine[Any, Any, Any]], Any] | None = field(default=None, repr=False)

    def remaining(self) -> float:
        """Seconds until the deadline, never less than a millisecond."""
        return max(0.001, self.deadline - self.clock())

    def heartbeat(self) -> Any:
        """Extend the lease of a long call; returns Leased. An async function awaits it.

        Raises Problem once the lease is lost (stop before any side effect), and Cancelled in a read whose run is
        being cancelled: let it through, and the call ends at once.
        """
        return self.waiter(self.pulse()) if self.waiter is not None else None

    @property
    def bytes_sent(self) -> int | None:
        """0 where the client's own trace proves that no request was begun, else None: not known."""
        return 0 if self.traced and not self.left else None

    def trace(self, event: str, _info: Mapping[str, Any]) -> None:
        """httpx's trace hook."""
        self.traced = True
        self.left = self.left or event.endswith(_STARTED)

    def begin(self) -> None:
        """Raises NotSent where the permit has become too old on the way to the function."""
        if self.begin_by is not None and self.clock() > self.begin_by:
            raise NotSent("The permit was not used in time.")

    def sending(self, request: Request) -> None:
        """Note a request that is about to leave. Raises where it may not: too late (F059, F060), or sent before."""
        if request in self.sent:
            self.extra_sends += 1
            raise SentTwice("This request was sent already under this permit; it was not sent again.")
        if self.lost or self.clock() >= self.deadline:
            late = OutcomeUnknown if self.sent or self.left else NotSent
            raise late("The time or the lease of this call was over before the request left.")
        self.sent[request] = None


Arguments = dict[str, Any]
ToolFunction = Callable[[Arguments, Call], Any]
Refresh = Callable[[], Any]
Seen = tuple[Observation, BaseException | None]
"""What a call came to, and an interrupt (Ctrl-C, a cancelled task) that is raised once it is reported."""
Invoke = Callable[..., Awaitable[Any]]
"""`(is_async, function, *arguments)`: how the boundary's ground runs a function of the host."""


@dataclass(frozen=True)
class Tool:
    """A tool of the manifest by name, and the function `(arguments, call) -> result` that performs it.

    The function returns JSON or an HTTP response, or raises. It is called once per permit, and may retry nothing.
    `refresh` fetches a new credential when Steadyhand asks for it; `heartbeat` keeps the lease of a long call.
    """

    name: str
    function: ToolFunction
    refresh: Refresh | None = None
    heartbeat: bool = False

    @property
    def is_async(self) -> bool:
        return is_async(self.function)


def is_async(function: Any) -> bool:
    """Whether calling it gives a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def as_tool(tool: Any) -> Tool:
    """A Tool as it is, or of a decorated function; a callable under its own `name` or `__name__`."""
    tool = getattr(tool, "tool", tool)
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


async def perform(tool: Tool, arguments: dict[str, Any], call: Call, invoke: Invoke) -> Seen:
    """Call the function exactly once, and see what came of it. Never raises."""
    started = call.clock()
    with contextlib.nullcontext() if call.is_read else guarded() as sends:
        try:
            value = await invoke(tool.is_async, _on_time, tool.function, copy.deepcopy(arguments), call)
            interrupt = None
        except BaseException as error:
            value, interrupt = error, None if isinstance(error, Exception) else error
    call.extra_sends += sends.stopped if sends is not None else 0
    _tell_of_a_bug(value, call)
    return _seen(value, call, started), interrupt


def _tell_of_a_bug(value: Any, call: Call) -> None:
    """A mistake in the tool's own code is told here, once, with its place: the record keeps only what it was."""
    if isinstance(value, BUGS) and call.attempt == 1:
        log.error("run %s: %s broke off by a mistake in its own code", call.run_id, call.tool, exc_info=value)


def _on_time(function: ToolFunction, arguments: dict[str, Any], call: Call) -> Any:
    call.begin()
    return function(arguments, call)


def _seen(what: Any, call: Call, started: float) -> Observation:
    """The observation; where even that fails, that the call was made and nothing more."""
    took = max(0, round((call.clock() - started) * 1000))
    try:
        return _noting_repeats(_observed(_first_came_to(what, call), call, took), call)
    except Exception:
        log.exception("run %s: what %s answered could not be read", call.run_id, call.tool)
        return Observation(kind="exception", exc_type="AnswerNotReadable", latency_ms=took)


def _observed(what: Any, call: Call, took: int) -> Observation:
    if isinstance(what, BaseException):
        return observe.from_exception(what, latency_ms=took, bytes_sent=call.bytes_sent, left=call.left)
    return observe.from_result(what, latency_ms=took)


def _first_came_to(what: Any, call: Call) -> Any:
    """Behind a repeat that was stopped stands the one request that left: what that came to is what happened."""
    seen, error = set(), what
    while isinstance(error, BaseException) and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, SentTwice) and len(call.sent) == 1:
            first = next(iter(call.sent.values()))
            return what if first is None else first
        error = error.__cause__ or error.__context__
    return what


def _noting_repeats(observation: Observation, call: Call) -> Observation:
    if not call.extra_sends:
        return observation
    note = f"Repeats of a request inside the tool that were stopped: {call.extra_sends}."
    message = f"{note} {observation.message}" if observation.message else note
    return observation.model_copy(update={"message": message[: observe.MAX_MESSAGE]})
