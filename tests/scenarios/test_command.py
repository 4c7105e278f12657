"""`manage.py run_cases`: one line a case, exit code 1 if any failed, nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from console.embedded.errors import Trouble
from runs.models import Tenant
from tests.factories import Agent, make_client, make_tenant, register, unknown_credit
from tests.scenarios.playing import CASES

BASE = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One case that passes, one whose right answer is wrong, one that cannot be read."""
    shutil.copy(CASES / "a-plain-202.json", tmp_path)
    wrong = json.loads((CASES / "nan-is-no-json.json").read_text())
    wrong["expect"]["outcome"] = "ok"
    (tmp_path / "nan-is-no-json.json").write_text(json.dumps(wrong))
    (tmp_path / "torn.json").write_text("{")
    return tmp_path


def test_a_line_a_case_and_an_exit_code(db: None, folder: Path) -> None:
    out = StringIO()
    with pytest.raises(SystemExit, match="1"):
        call_command("run_cases", str(folder), stdout=out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "a-plain-202 pass"
    assert lines[1].startswith("nan-is-no-json FAIL outcome fatal/invalid_tool_result, not ok/")
    assert lines[2].startswith("torn FAIL torn.json is no JSON file")
    assert lines[3] == "1 of 3 cases pass."


def test_as_json_one_object_a_case(db: None, folder: Path) -> None:
    out = StringIO()
    call_command("run_cases", str(folder), "--json", "--only", "a-plain-202", stdout=out)
    told = json.loads(out.getvalue())
    assert (told["id"], told["ok"], told["differences"]) == ("a-plain-202", True, [])


def test_the_decision_path_names_each_rule(db: None, folder: Path) -> None:
    out = StringIO()
    call_command("run_cases", str(CASES), "--only", "keyed-write-is-sent-again", "--explain", stdout=out)
    assert "Rule 9d." in out.getvalue()
    assert "rule=7a" in out.getvalue() or "Rule 7a." in out.getvalue()


def test_a_run_is_explained_by_its_tenant_and_id(db: None) -> None:
    case = unknown_credit(registered(make_client(make_tenant("north"))))
    out = StringIO()
    call_command("explain", "north", str(case.run_id), stdout=out)
    assert "Rule 9a." in out.getvalue()
    make_tenant("south")
    with pytest.raises(Trouble, match=r"There is no run .* of south: look it up"):
        call_command("explain", "south", str(case.run_id), stdout=out)


@pytest.mark.parametrize(("command", "what"), [("explain", "run"), ("recompute", "decision")])
def test_an_id_or_a_tenant_that_is_none_is_named_in_a_sentence_with_a_remedy(
    db: None, command: str, what: str
) -> None:
    make_tenant("north")
    with pytest.raises(Trouble, match=f"'T-12' is not the id of a {what}: copy it from "):
        call_command(command, "north", "T-12")
    with pytest.raises(Trouble, match="There is no tenant 'nowhere': make it with"):
        call_command(command, "nowhere", str(uuid.uuid4()))


def registered(agent: Agent) -> Agent:
    register(agent)
    return agent


def test_a_play_leaves_nothing_behind(db: None, folder: Path) -> None:
    call_command("run_cases", str(folder), "--only", "a-plain-202", stdout=StringIO())
    assert not Tenant.objects.exists()


def test_a_folder_without_cases_is_no_pass(db: None, tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="holds no scenario files"):
        call_command("run_cases", str(tmp_path), stdout=StringIO())


def test_with_nothing_running_it_brings_its_own_database_and_takes_it_away(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DATABASE", "STEADYHAND"))}
    env = {
        **kept,
        "STEADYHAND_HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "console.settings",
    }
    command = [sys.executable, "manage.py", "run_cases", str(CASES), "--only", "a-plain-202"]
    done = subprocess.run(command, cwd=BASE, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["a-plain-202 pass", "1 of 1 cases pass."]
    assert not list(tmp_path.glob("steadyhand-*"))
