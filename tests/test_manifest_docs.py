"""docs/manifest.md describes every field of a manifest with its default, and its examples are manifests."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic.fields import FieldInfo
from steadyhand import manifest
from steadyhand.manifest import Manifest, Part

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "manifest.md").read_text()
PARTS: dict[str, type[Part]] = {
    name: part
    for name, part in vars(manifest).items()
    if inspect.isclass(part) and issubclass(part, Part) and part is not Part
}
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)


def lines_of(page: str, part: str) -> dict[str, str]:
    """What a page says in the section of this part: field → default."""
    section = re.search(rf"^## {part}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    return dict(re.findall(r"^\| `(\w+)` \| (.+?) \| \S", section[1], re.M)) if section else {}


def default_of(field: FieldInfo) -> str:
    """A default as the page writes it."""
    if field.is_required():
        return "required"
    value: Any = field.get_default(call_default_factory=True)
    if value is None:
        return "–"
    return "`{…}`" if isinstance(value, Part) else f"`{json.dumps(value)}`"


@pytest.mark.parametrize("part", PARTS)
def test_every_field_has_its_line_with_its_default(part: str) -> None:
    assert lines_of(PAGE, part) == {name: default_of(field) for name, field in PARTS[part].model_fields.items()}


def test_a_field_without_a_line_and_a_wrong_default_are_told() -> None:
    page = "## Look\n\n| field | default | meaning |\n|---|---|---|\n| `path` | required | where |\n\n## Send\n"
    assert lines_of(page, "Look") == {"path": "required"}
    assert lines_of(page, "Send") == lines_of(page, "Poll") == {}


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_a_manifest(example: str) -> None:
    assert Manifest.model_validate(yaml.safe_load(example)).tools


def test_the_examples_show_what_takes_more_than_a_word() -> None:
    shown = {word for example in EXAMPLES for word in re.findall(r"(\w+):", example)}
    assert {"poll", "callback", "batch", "send", "once_per", "fallback", "preconditions", "rate_limit",
            "compensate"} <= shown  # fmt: skip
