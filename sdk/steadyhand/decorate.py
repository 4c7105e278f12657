"""Decorated tools: a function with ordinary parameters, called as usual, through the run whose block it is in."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypedDict, get_type_hints

from steadyhand.calls import Call, Refresh, Tool, ToolFunction, is_async
from steadyhand.current import current

_UNNAMED = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL}
_OPEN = {*_UNNAMED, inspect.Parameter.VAR_KEYWORD}


class Promises(TypedDict, total=False):
    """What may be said of a decorated tool: its name in the manifest, and what Tool takes."""

    name: str
    refresh: Refresh | None
    heartbeat: bool


def decorator(function: Callable[..., Any] | None, promises: Promises, kind: type[Any]) -> Any:
    """The decorated function, or, given promises only, what decorates one."""
    if function is None:
        return lambda given: _decorated(given, promises, kind)
    return _decorated(function, promises, kind)


def call_parameter(function: Callable[..., Any]) -> str | None:
    """The name of the parameter that is annotated `Call` and filled in here.

    Raises TypeError where the others could not be passed by name then.
    """
    parameters, hints = inspect.signature(function).parameters, _hints(function)
    name = next((name for name in parameters if hints.get(name) in (Call, "Call", "steadyhand.Call")), None)
    if name is not None and any(parameter.kind in _UNNAMED for parameter in parameters.values()):
        raise TypeError(f"{function.__name__} takes a Call, so all its parameters need names.")
    return name


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations; as they are written where one of them names what exists for type checkers only."""
    try:
        return get_type_hints(function)
    except NameError:
        return dict(function.__annotations__)


def _decorated(function: Callable[..., Any], promises: Promises, kind: type[Any]) -> Any:
    name = promises.get("name") or function.__name__
    takes, takes_all = call_parameter(function), _takes_all(function)
    body = function if takes_all else _by_name(function, takes)
    tool = Tool(name, body, promises.get("refresh"), promises.get("heartbeat", False))

    @functools.wraps(function)
    def called(*positional: Any, **named: Any) -> Any:
        """Its arguments by name, as the function declares them."""
        run = current.get()
        if not isinstance(run, kind):
            raise RuntimeError(f"Call {name} inside the block of a run, or pass it to run.call.")
        given = named if takes_all else _arguments(function, takes, positional, named)
        return run.call(tool, given)

    called.tool = tool  # type: ignore[attr-defined]
    return called


def _takes_all(function: Callable[..., Any]) -> bool:
    """Whether it is a tool's function already: `(arguments, call)`. Raises TypeError for parameters without names."""
    parameters = inspect.signature(function).parameters
    if any(parameter.kind in _OPEN for parameter in parameters.values()):
        raise TypeError(f"{function.__name__} is a tool, so all its parameters need names.")
    return list(parameters)[:1] == ["arguments"]


def _by_name(function: Callable[..., Any], takes: str | None) -> ToolFunction:
    def body(arguments: dict[str, Any], call: Call) -> Any:
        return function(**arguments, **({takes: call} if takes else {}))

    async def awaited(arguments: dict[str, Any], call: Call) -> Any:
        return await body(arguments, call)

    return awaited if is_async(function) else body


def _arguments(function: Callable[..., Any], takes: str | None, positional: tuple[Any, ...], named: Any) -> Any:
    """All arguments by name, defaults included, for they are a part of what is recorded. Raises TypeError."""
    signature = inspect.signature(function)
    parameters = [parameter for name, parameter in signature.parameters.items() if name != takes]
    bound = signature.replace(parameters=parameters).bind(*positional, **named)
    bound.apply_defaults()
    return dict(bound.arguments)
