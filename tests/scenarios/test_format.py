"""A scenario file that cannot be played is named with the place; what can be read is read as it stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recovery.scenarios import format, manifest, terms
from recovery.scenarios.format import BadScenario
from tests.scenarios.playing import CASES


def written(folder: Path, **changes: Any) -> Path:
    plain = json.loads((CASES / "a-plain-202.json").read_text()) | changes
    path = folder / "one.json"
    path.write_text(json.dumps({name: value for name, value in plain.items() if value is not None}))
    return path


def test_a_file_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text("{")
    with pytest.raises(BadScenario, match=r"one\.json is no JSON file"):
        format.load(tmp_path / "one.json")


@pytest.mark.parametrize("missing", ["id", "workflow", "intent", "tools", "events", "expect", "started_at"])
def test_a_part_that_nothing_can_stand_in_for_is_asked_for(tmp_path: Path, missing: str) -> None:
    with pytest.raises(BadScenario, match=missing):
        format.load(written(tmp_path, **{missing: None}))


def test_an_event_that_nobody_can_play_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadScenario, match=r"events\.0\.type miracle"):
        format.load(written(tmp_path, events=[{"t": 0, "type": "miracle"}]))


def test_a_time_names_its_zone(tmp_path: Path) -> None:
    with pytest.raises(BadScenario, match="names no time zone"):
        format.load(written(tmp_path, started_at="2026-05-04T08:00:00"))


def test_an_empty_folder_is_no_pass(tmp_path: Path) -> None:
    with pytest.raises(BadScenario, match="holds no scenario files"):
        format.folder(tmp_path)


def test_a_hint_that_is_not_understood_is_told(tmp_path: Path) -> None:
    scenario = format.load(written(tmp_path, policy={"colour": "blue"}))
    assert terms.rules_of(scenario).unread == ["colour"]


def test_idempotent_without_a_header_is_no_key(tmp_path: Path) -> None:
    """Ruling 9."""
    tool = json.loads((CASES / "a-plain-202.json").read_text())["tools"][0] | {"idempotent": True}
    made = manifest.manifest_of(format.load(written(tmp_path, tools=[tool])))
    assert made.tools[0].idempotency.kind == "none"


def test_an_authoritative_look_up_has_no_lag(tmp_path: Path) -> None:
    """Ruling 10."""
    tool = json.loads((CASES / "a-plain-202.json").read_text())["tools"][0] | {"reconcile_authoritative": True}
    rule = manifest.manifest_of(format.load(written(tmp_path, tools=[tool]))).tools[0].reconcile
    assert rule is not None
    assert (rule.max_in_flight_seconds, rule.max_visibility_lag_seconds) == (0, 0)


def test_a_look_up_without_bounds_is_never_final(tmp_path: Path) -> None:
    rule = manifest.manifest_of(format.load(written(tmp_path))).tools[0].reconcile
    assert rule is not None
    assert rule.max_visibility_lag_seconds is None
