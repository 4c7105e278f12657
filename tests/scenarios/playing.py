"""Play one of our scenario files and say what differed."""

from __future__ import annotations

from pathlib import Path

from recovery.scenarios import compare, format, runner

CASES = Path(__file__).resolve().parent / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.json"))


def differences(name: str) -> list[str]:
    scenario = format.load(CASES / f"{name}.json")
    return compare.differences(scenario, runner.play(scenario))
