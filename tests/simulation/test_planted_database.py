"""Guards that only PostgreSQL holds, taken out one at a time in a copy: the tests beside them say so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts import BASE

COPIED = (
    "console",
    "recovery",
    "runs",
    "sdk",
    "sandbox",
    "demo",
    "templates",
    "static",
    "tests",
    "benchmarks",
    "docs",
)
HOT = "runs/hot.py"
HOT_TESTS = "tests/runs/test_hot.py"
BUGS = {
    "a call that is known is granted again": (HOT, "    AND NOT EXISTS (SELECT FROM known)\n", "", HOT_TESTS),
    "nothing waits for an open write": (HOT, "past.unsettled = 0 AND ", "", HOT_TESTS),
    "the fence is not compared": (HOT, "t.fence = %(fence)s AND ", "", HOT_TESTS),
    "a lease that ended still reports": (HOT, " AND t.lease_until > app_now()", "", HOT_TESTS),
    "one call above the ceiling": (HOT, "r.tool_calls < r.max_tool_calls AND ", "", HOT_TESTS),
    "a stop switch is not asked": (HOT, "    AND NOT EXISTS ({_STANDING_STOP})\n", "", HOT_TESTS),
}


@pytest.mark.long
@pytest.mark.parametrize("name", BUGS)
def test_a_guard_that_is_gone_is_missed(name: str, tmp_path: Path) -> None:
    where, guard, instead, test = BUGS[name]
    for folder in COPIED:
        shutil.copytree(BASE / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for file in ("manage.py", "pyproject.toml"):
        shutil.copy(BASE / file, tmp_path / file)
    source = (tmp_path / where).read_text()
    assert source.count(guard) == 1, f"{where} no longer has the guard {guard!r}"
    (tmp_path / where).write_text(source.replace(guard, instead))
    done = _run(tmp_path, test)
    assert done.returncode == 1, f"{name} was not noticed by {test}:\n{done.stdout[-1500:]}{done.stderr[-500:]}"
    assert " failed" in done.stdout


def _run(folder: Path, test: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STEADYHAND_")}
    paths = {"PYTHONPATH": f"{folder}:{folder / 'sdk'}"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    return subprocess.run(
        command, cwd=folder, env=kept | paths, capture_output=True, text=True, timeout=400, check=False
    )
