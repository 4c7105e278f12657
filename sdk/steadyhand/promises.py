"""Whether what a manifest promises fits together: each fault with its place and a sentence (DECISIONS 5). Pure.

Read from the plain document, before it is a model, so that these faults are told beside all others in one answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Place = tuple[str | int, ...]
Broken = tuple[Place, str]


def broken(tool: dict[str, Any]) -> list[Broken]:
    """What one tool promises and cannot keep."""
    look = _dict(tool, "reconcile")
    bounded = None not in (look.get("max_in_flight_seconds"), look.get("max_visibility_lag_seconds"))
    effect, proof = tool.get("effect"), tool.get("proof")
    currency = tool.get("currency") or tool.get("currency_field")
    checks: list[tuple[object, Place, str]] = [
        (proof == "look" and not look, ("proof",), "proof look needs a reconcile look-up"),
        (
            proof == "look_final" and not (look and bounded),
            ("proof",),
            "proof look_final needs both reconcile bounds",
        ),
        (tool.get("compensate") and tool.get("irreversible"), ("irreversible",), "has a compensate: choose one"),
        (
            _dict(tool, "compensate").get("returned") and not tool.get("value_field"),
            ("compensate", "returned"),
            "says how much came back: declare the value_field that it is compared with",
        ),
        (tool.get("value_field") and not currency, ("value_field",), "needs currency or currency_field beside it"),
        (effect == "read" and tool.get("compensate"), ("compensate",), "a read has nothing to compensate"),
        (effect == "write" and tool.get("fallback"), ("fallback",), "a write takes no fallback"),
        (effect == "read" and tool.get("batch"), ("batch",), "only a write is taken apart into items"),
        (effect == "read" and tool.get("absent_is_success"), ("absent_is_success",), "says something of writes only"),
        (
            tool.get("completes_by") == "callback" and not tool.get("callback"),
            ("completes_by",),
            "needs a callback that says how its messages are read",
        ),
        (tool.get("dispatch") == "host" and not tool.get("send"), ("dispatch",), "dispatch host needs a send"),
        (
            _dict(tool, "send").get("method") == "GET" and _dict(tool, "send").get("body") is not None,
            ("send", "body"),
            "a GET has no body",
        ),
    ]
    return [(place, sentence) for is_broken, place, sentence in checks if is_broken]


def loose(manifest: dict[str, Any]) -> list[Broken]:
    """What the parts of a manifest promise about each other and do not keep."""
    tools = [tool for tool in _list(manifest, "tools") if isinstance(tool, dict)]
    names = [tool.get("name") for tool in tools]
    faults: list[Broken] = []
    for index, tool in enumerate(tools):
        if names.index(tool.get("name")) < index:
            faults.append((("tools", index, "name"), f"{tool.get('name')} is declared twice"))
        found = [*_connector_faults(manifest, tool), *_unnamed(tool, names), *_unfit(tool, tools)]
        faults += [(("tools", index, *place), text) for place, text in found]
    for field in ("required_effects", "compensation_order"):
        listed = enumerate(_list(manifest, field))
        faults += [((field, index), f"{name} is not a declared tool") for index, name in listed if name not in names]
    return faults


def _unnamed(tool: dict[str, Any], names: list[Any]) -> list[Broken]:
    return [(place, f"{other} is not a declared tool") for place, other in _named_tools(tool) if other not in names]


def _connector_faults(manifest: dict[str, Any], tool: dict[str, Any]) -> Iterator[Broken]:
    """A look-up and a send name their connector, and its kind can do what they ask of it."""
    connectors = _dict(manifest, "connectors")
    for part in ("reconcile", "send"):
        asked = _dict(tool, part)
        name = asked.get("connector")
        if not asked or not isinstance(name, str):
            continue
        if name not in connectors:
            yield (part, "connector"), f"connector {name} is not declared"
            continue
        yield from (
            _look_faults(tool, asked, _kind(connectors[name]))
            if part == "reconcile"
            else _send_faults(asked, _kind(connectors[name]))
        )


def _kind(connector: Any) -> Any:
    return connector.get("kind", "http") if isinstance(connector, dict) else None


def _look_faults(tool: dict[str, Any], rule: dict[str, Any], kind: Any) -> Iterator[Broken]:
    if kind == "http" and not rule.get("look"):
        yield ("reconcile", "look"), "an http connector needs look"
    if kind == "http" and rule.get("match"):
        yield ("reconcile", "match"), "an http connector says this in look"
    if kind in ("webhook", "python", "manual") and rule.get("look"):
        yield ("reconcile", "look"), f"a {kind} connector takes no look: it is asked as it is"
    if kind != "manual":
        return
    if tool.get("proof") in ("look", "look_final"):
        yield ("proof",), "a manual connector is never asked, so no look-up can prove this"
    for field in ("match", "max_in_flight_seconds", "max_visibility_lag_seconds"):
        if rule.get(field):
            yield ("reconcile", field), "a manual connector is never asked"


def _send_faults(send: dict[str, Any], kind: Any) -> Iterator[Broken]:
    if kind == "http" and not send.get("path"):
        yield ("send", "path"), "an http connector needs path"
    if kind == "manual":
        yield ("send", "connector"), "nothing can be sent through a manual connector"
    if kind in ("webhook", "python"):
        for field in ("path", "query", "body", "method"):
            if send.get(field):
                yield ("send", field), f"a {kind} connector gets the whole call: only its name is needed"


def _unfit(tool: dict[str, Any], tools: list[dict[str, Any]]) -> Iterator[Broken]:
    """Tools that another one counts on, and that cannot do what it counts on."""
    poll = _tool(tools, _dict(tool, "poll").get("tool"))
    if poll is not None and not (poll.get("effect") == "read" and poll.get("send")):
        yield ("poll", "tool"), "the worker polls by itself: name a read that has a send"
    undo = _tool(tools, _dict(tool, "compensate").get("tool"))
    if undo is not None and undo.get("effect") == "read":
        yield ("compensate", "tool"), "a read takes nothing back"
    instead = _tool(tools, _dict(tool, "fallback").get("tool"))
    if instead is not None and instead.get("effect") == "write":
        yield ("fallback", "tool"), "only a read may stand in for a read"
    ends = any(tool.get(part) for part in ("poll", "callback", "reconcile"))
    if tool.get("async_statuses") and not ends:
        yield ("async_statuses",), "say how an accepted call ends: poll, callback or reconcile"


def _tool(tools: list[dict[str, Any]], name: Any) -> dict[str, Any] | None:
    return next((tool for tool in tools if isinstance(name, str) and tool.get("name") == name), None)


def _named_tools(tool: dict[str, Any]) -> Iterator[tuple[Place, Any]]:
    for index, name in enumerate(_list(tool, "after")):
        yield ("after", index), name
    if tool.get("precondition_read") is not None:
        yield ("precondition_read",), tool["precondition_read"]
    for part in ("poll", "compensate", "fallback"):
        other = _dict(tool, part).get("tool")
        if other is not None:
            yield (part, "tool"), other
    for index, condition in enumerate(_list(tool, "preconditions")):
        if isinstance(condition, dict):
            yield ("preconditions", index, "tool"), condition.get("tool")


def _dict(data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _list(data: dict[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else []
