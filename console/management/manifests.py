"""Reads a workflow's manifest from a YAML or JSON file as strictly as the API reads one from the wire (SEC-16)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from steadyhand.contract import MAX_BODY_BYTES, Manifest

from console.api import remedies
from console.api.parsing import Fault
from console.embedded.errors import Trouble


class _Plain(yaml.SafeLoader):
    """YAML without what JSON cannot say: no aliases (they could unfold for ever), no field that stands twice."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            place = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="write it out in full: aliases are not followed", problem_mark=place)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"'{key.value[:80]}' stands twice", problem_mark=key.start_mark)
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else id(key))
        return super().construct_mapping(node, deep)


# `2026-01-01` and the like stay text: JSON has no dates, and neither has a manifest.
_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(path: Path) -> Manifest:
    """The manifest in `path`. Trouble with every fault, each with its path in the document."""
    text = _text(path)
    value = _from_json(text, path) if path.suffix == ".json" else _from_yaml(text, path)
    try:
        plain = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Trouble(
            f"{path} holds something that JSON cannot say ({error}): use text and finite numbers."
        ) from error
    if "\\u0000" in plain:
        raise Trouble(f"{path} holds a NUL character: remove it.")
    try:
        return Manifest.model_validate_json(plain, strict=True)
    except ValidationError as wrong:
        raise told(path, remedies.faults(wrong, value)) from wrong


def told(path: Path, faults: list[Fault]) -> Trouble:
    """All faults as one message, a line for each."""
    lines = [f"  {fault.field}: {fault.remedy}" for fault in faults]
    number = "1 fault" if len(lines) == 1 else f"{len(lines)} faults"
    return Trouble("\n".join([f"{path} is not a manifest yet, it has {number}:", *lines]))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BODY_BYTES + 1)
        text = data.decode()
    except OSError as error:
        raise Trouble(f"{path} cannot be read ({error.strerror}): name a YAML or JSON file.") from error
    except UnicodeDecodeError as error:
        raise Trouble(f"{path} is not UTF-8 at byte {error.start}: save it as UTF-8.") from error
    if len(data) > MAX_BODY_BYTES:
        raise Trouble(f"{path} is longer than {MAX_BODY_BYTES // 1024} KiB: make the manifest shorter.")
    return text


def _from_json(text: str, path: Path) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise Trouble(f"{path} is not JSON: it breaks at line {error.lineno}, column {error.colno}.") from error
    except (RecursionError, ValueError) as error:
        raise Trouble(f"{path} is not JSON that can be read ({str(error)[:200]}).") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
    if twice:
        raise ValueError(f"'{twice[0][:80]}' stands twice")
    return dict(pairs)


def _from_yaml(text: str, path: Path) -> Any:
    try:
        return yaml.load(text, Loader=_Plain)  # noqa: S506 - a SafeLoader, and stricter
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise Trouble(f"{path} is not YAML{place}: {error.problem}.") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Trouble(f"{path} is not YAML that can be read ({type(error).__name__}).") from error
