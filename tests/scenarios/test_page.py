"""docs/scenarios.md names every event, and its example plays; a broken file is told in words, not in Python's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from console.management.commands.run_cases import played
from recovery.scenarios import format
from recovery.scenarios.format import BadScenario

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "scenarios.md").read_text()
[EXAMPLE] = re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S)


def test_every_event_has_its_word_on_the_page() -> None:
    section = PAGE.partition("## Events")[2].partition("## What is expected")[0]
    rows = re.findall(r"^\| (`[^|]+`) \|", section, re.M)
    assert {word for row in rows for word in re.findall(r"`(\w+)`", row)} == set(format.KNOWN)


def test_the_example_plays_as_it_says(db: None, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(EXAMPLE)
    assert played(tmp_path / "one.json")["differences"] == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"events": None}, "events is missing: add a list of events"),
        ({"events": {}}, "events has to be a list of events"),
        ({"events": [7]}, "events.0 has to be an object"),
        ({"events": [{"type": "model_turn"}]}, "events.0.t has to be a number of seconds"),
        ({"events": [{"t": 0, "type": "teleport"}]}, "events.0.type teleport is not known: use one of model_turn"),
        ({"started_at": "yesterday"}, "yesterday is no time: write it like"),
        ({"tenant": None}, "tenant is missing"),
        ({"budget": 3}, "has a field of another form"),
    ],
)
def test_a_broken_file_is_told_in_words(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    plain = {name: value for name, value in (json.loads(EXAMPLE) | changes).items() if value is not None}
    (tmp_path / "one.json").write_text(json.dumps(plain))
    with pytest.raises(BadScenario) as wrong:
        format.load(tmp_path / "one.json")
    assert str(wrong.value).startswith("one.json")
    assert sentence in str(wrong.value)
    assert "Error" not in str(wrong.value)
