"""What differs between two versions of a workflow, field by field, and which differences make it less safe.

Pure. Compared is what holds, so that a default which was written out is no difference; tools are told by their name,
and their order says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from steadyhand.manifest import Manifest

from recovery.rules import weaker

Place = tuple[str, ...]
Of = Literal["workflow", "tool", "connector"]
Change = Literal["added", "removed", "changed"]


@dataclass(frozen=True)
class Difference:
    """One field that is not what it was; `old` and `new` are JSON values, None where there is none.

    `of` and `name` say whose field it is (a workflow has no name here), `path` which; it is empty for a whole tool or
    connector. `weaker` is a sentence where the difference takes some safety away.
    """

    of: Of
    name: str
    path: Place
    change: Change
    old: Any
    new: Any
    weaker: str = ""


def differences(old: Manifest, new: Manifest) -> list[Difference]:
    """Every difference: of the workflow itself, of each tool, of each connector, in the order of the new version."""
    before, after = old.model_dump(mode="json"), new.model_dump(mode="json")
    old_tools, new_tools = _by_name(before.pop("tools")), _by_name(after.pop("tools"))
    old_connectors, new_connectors = before.pop("connectors"), after.pop("connectors")
    return [
        *_told("workflow", "", before, after),
        *_each("tool", old_tools, new_tools),
        *_each("connector", old_connectors, new_connectors),
    ]


def _by_name(tools: list[dict[str, Any]]) -> dict[str, Any]:
    return {tool["name"]: tool for tool in tools}


def _each(of: Of, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    for name in [*new, *(name for name in old if name not in new)]:
        yield from _told(of, name, old.get(name), new.get(name))


def _told(of: Of, name: str, old: Any, new: Any) -> Iterator[Difference]:
    for path, was, now in _between(old, new, ()):
        change: Change = "added" if _is_nothing(was) else "removed" if _is_nothing(now) else "changed"
        yield Difference(of, name, path, change, _said(was), _said(now), weaker.sentence(of, path, was, now))


def _between(old: Any, new: Any, path: Place) -> Iterator[tuple[Place, Any, Any]]:
    """The deepest places that differ; a part that came or went is one place, with all that it says."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*new, *(name for name in old if name not in new)]:
            yield from _between(old.get(name), new.get(name), (*path, name))
    elif not (_is_nothing(old) and _is_nothing(new)) and not _same(old, new):
        yield path, old, new


def _same(old: Any, new: Any) -> bool:
    """JSON tells true from 1; Python does not."""
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


def _is_nothing(value: Any) -> bool:
    return value is None or value in ([], {}, "")


def _said(value: Any) -> Any:
    """A part as its author would write it: without what is not declared."""
    if isinstance(value, dict):
        return {name: _said(item) for name, item in value.items() if not _is_nothing(item)}
    if isinstance(value, list):
        return [_said(item) for item in value]
    return None if _is_nothing(value) else value
