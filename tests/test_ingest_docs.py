"""docs/ingest.md describes every field of every record with its default, and its example is a batch of records."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo
from steadyhand.contract import Record, Recorded

BASE = Path(__file__).resolve().parent.parent
PAGE = (BASE / "docs" / "ingest.md").read_text()
KINDS: dict[str, type[Recorded]] = {
    get_args(model.model_fields["kind"].annotation)[0]: model for model in get_args(get_args(Record)[0])
}


def lines_of(text: str) -> dict[str, str]:
    return dict(re.findall(r"^\| `(\w+)` \| (.+?) \| \S", text, re.M))


def default_of(field: FieldInfo) -> str:
    """A default as the page writes it."""
    if field.is_required():
        return "required"
    value: Any = field.get_default(call_default_factory=True)
    if value is None:
        return "–"
    return "`{…}`" if isinstance(value, BaseModel) else f"`{json.dumps(value)}`"


def test_the_fields_that_every_record_has_are_told_first() -> None:
    assert set(lines_of(PAGE.partition("\n## ")[0])) == {"kind", *Recorded.model_fields}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_record_has_its_line_with_its_default(kind: str) -> None:
    section = re.search(rf"^## {kind}\n(.*?)(?=^## )", PAGE, re.M | re.S)
    assert section is not None
    own = {name: field for name, field in KINDS[kind].model_fields.items() if name not in Recorded.model_fields}
    assert lines_of(section[1]) == {name: default_of(field) for name, field in own.items() if name != "kind"}


def test_the_example_is_a_batch_of_records() -> None:
    [example] = re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S)
    records = TypeAdapter(list[Record]).validate_json(example)
    assert len({one.id for one in records}) == len(records) > 5


def test_the_sdks_example_is_one_too() -> None:
    """The first thing that is tried is copied from there: it has to be taken as it stands."""
    [example] = re.findall(r"boundary\.ingest\(\s*(\[.*?\])\s*\)\n", (BASE / "sdk" / "README.md").read_text(), re.S)
    assert TypeAdapter(list[Record]).validate_json(re.sub(r",(\s*[\]}])", r"\1", example))
