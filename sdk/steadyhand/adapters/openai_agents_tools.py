"""FunctionTools whose calls pass the boundary.

The framework turns a tool's exception into text for the model. So the boundary calls the plain function itself, in a
thread, and sees what it raised; what stops a run is raised through the framework's loop.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast, get_type_hints
from weakref import WeakKeyDictionary

from agents import FunctionTool, ModelBehaviorError  # type: ignore[import-not-found]
from agents.function_schema import FuncSchema, function_schema  # type: ignore[import-not-found]
from pydantic import ValidationError

from steadyhand.adapters.arguments import parsed
from steadyhand.calls import Call, Tool
from steadyhand.decorate import call_parameter
from steadyhand.errors import InvalidInput, Refused
from steadyhand.run import Run

Body = Callable[[Any, dict[str, Any], Call, asyncio.AbstractEventLoop], Any]
_flights: WeakKeyDictionary[Run, set[asyncio.Future[Any]]] = WeakKeyDictionary()


def guarded_tools(
    run: Run, functions: Iterable[Callable[..., Any]], *, steps: Mapping[str, str] | None = None
) -> list[Any]:
    """FunctionTools of plain functions (sync or async), each called through the boundary under its own name.

    A parameter annotated `Call` is filled in here and hidden from the model: its `idempotency_key` goes to the
    provider. `steps` names the step of a tool; without it the server derives one.
    """
    return [_guarded(run, function, (steps or {}).get(function.__name__)) for function in functions]


def guard(run: Run, tool: Any, *, name: str | None = None, step: str | None = None) -> Any:
    """A copy of a FunctionTool whose calls pass the boundary under `name` (default: the tool's own name).

    What `function_tool` made is unwrapped, or its error texts would pass for results. Raises TypeError for a tool
    that hides its errors and cannot be unwrapped (an agent as a tool).
    """
    return dataclasses.replace(
        tool,
        on_invoke_tool=_invoker(run, name or tool.name, step, _body_of(tool)),
        timeout_seconds=None,  # the contract's timeout rules; a tool cut off here would pass for answered
    )


async def landed(run: Run) -> None:
    """Wait for calls still in the air: the framework drops them when a sibling fails, but they were sent."""
    while flights := _flights.get(run):
        await asyncio.wait(set(flights))


def _guarded(run: Run, function: Callable[..., Any], step: str | None) -> Any:
    plain, takes = _without_call(function)
    schema = function_schema(plain, strict_json_schema=True)
    return FunctionTool(
        name=schema.name,
        description=schema.description or "",
        params_json_schema=schema.params_json_schema,
        on_invoke_tool=_invoker(run, schema.name, step, _calling(function, schema, takes)),
        strict_json_schema=True,
    )


def _without_call(function: Callable[..., Any]) -> tuple[Callable[..., Any], str | None]:
    """The function as the model sees it, and the name of its `Call` parameter."""
    name = call_parameter(function)
    if name is None:
        return function, None
    hints = get_type_hints(function, include_extras=True)

    @functools.wraps(function)
    def shown(*_args: Any, **_kwargs: Any) -> None:
        """Only its signature is read."""

    signature = inspect.signature(function)
    kept = [parameter for parameter in signature.parameters.values() if parameter.name != name]
    shown.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    shown.__annotations__ = {key: kind for key, kind in hints.items() if key != name}
    return shown, name


def _body_of(tool: Any) -> Body:
    function = getattr(tool, "__wrapped__", None)
    if function is not None:
        return _calling(function, function_schema(function, strict_json_schema=tool.strict_json_schema), None)
    if hasattr(tool.on_invoke_tool, "__agents_bind_function_tool__"):
        raise TypeError(f"{tool.name} turns its errors into text. Pass the plain function to guarded_tools.")
    return lambda ctx, arguments, call, loop: _finished(tool.on_invoke_tool(ctx, json.dumps(arguments)), call, loop)


def _calling(function: Callable[..., Any], schema: FuncSchema, takes: str | None) -> Body:
    def body(ctx: Any, arguments: dict[str, Any], call: Call, loop: asyncio.AbstractEventLoop) -> Any:
        positional, named = _bound(schema, arguments)
        if takes is not None:  # its place among the others is the function's own affair: all by name
            names = list(schema.signature.parameters)[int(schema.takes_context) :]
            positional, named = [], {**dict(zip(names, positional, strict=False)), **named, takes: call}
        context = [ctx] if schema.takes_context else []
        return _finished(function(*context, *positional, **named), call, loop)

    return body


def _bound(schema: FuncSchema, arguments: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The function's own parameters. Raises InvalidInput, and nothing was sent (F081)."""
    try:
        bound = schema.to_call_args(schema.params_pydantic_model.model_validate(arguments))
    except ValidationError as wrong:
        fault = wrong.errors()[0]
        raise InvalidInput(fault["msg"], field=".".join(map(str, fault["loc"]))) from wrong
    except ModelBehaviorError as wrong:
        raise InvalidInput(str(wrong)) from wrong
    return cast(tuple[list[Any], dict[str, Any]], bound)


def _finished(value: Any, call: Call, loop: asyncio.AbstractEventLoop) -> Any:
    """The value, awaited on the agent's own loop if it is awaitable, no longer than the call may last."""
    if not inspect.isawaitable(value):
        return value
    future = asyncio.run_coroutine_threadsafe(_awaited(value), loop)
    try:
        return future.result(call.remaining())
    except BaseException:
        future.cancel()
        raise


async def _awaited(value: Any) -> Any:
    return await value


def _invoker(run: Run, name: str, step: str | None, body: Body) -> Callable[[Any, str], Any]:
    async def invoke(ctx: Any, raw: str) -> str:
        if run.halted is not None:
            raise run.halted
        loop = asyncio.get_running_loop()
        tool = Tool(name, lambda arguments, call: body(ctx, arguments, call, loop))
        try:
            result = await _flying(run, lambda: run.call(tool, parsed(raw), step=step))
        except Refused as refused:
            return refused.for_model()
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)

    return invoke


async def _flying(run: Run, work: Callable[[], Any]) -> Any:
    """The work in a thread. If the framework drops the call, the thread still reports what came of it."""
    flight = asyncio.ensure_future(asyncio.to_thread(work))
    flights = _flights.setdefault(run, set())
    flights.add(flight)
    flight.add_done_callback(flights.discard)
    flight.add_done_callback(lambda done: done.cancelled() or done.exception())  # read, so that asyncio is content
    return await asyncio.shield(flight)
