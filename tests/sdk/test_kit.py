"""The conformance kit finds each planted fault, and lets a good connector and the sandbox's manifest pass."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.client import Process, start
from tests.sdk import kit_subjects
from tests.sdk.kit_subjects import CREDIT

PLUGIN = "steadyhand.testing.plugin"
ROOT = Path(__file__).resolve().parents[2]
FAULTS = {
    "ExistenceOnly": "test_two_effects_under_one_reference_are_not_one",
    "ByAmount": "test_a_look_alike_is_not_ours",
    "NoFields": "test_all_fields_are_compared",
    "ForgetsTheKey": "test_a_repeat_under_one_key_makes_no_second_effect",
    "SwallowsRefusals": "test_a_key_with_other_arguments_is_refused",
    "ShortKey": "test_the_claim_about_a_keys_life_can_be_kept",
    "NoBound": "test_the_claim_about_a_keys_life_can_be_kept",
    "SlowToShow": "test_an_effect_shows_within_the_declared_lag",
    "AbsentWhenDown": "test_a_look_up_that_gets_no_answer_says_failed",
    "AbsentOnAnyJson": "test_a_look_up_that_gets_no_answer_says_failed",
    "Patient": "test_a_look_up_ends_at_its_deadline",
    "LooksAgain": "test_a_look_up_that_gets_no_answer_says_failed",
    "SendsAgain": "test_one_send_is_one_arrival",
    "UndoesTwice": "test_an_undo_sent_twice_is_done_once",
    "ListsAll": "test_a_listing_holds_each_effect_once_and_in_its_interval",
    "ListsNothingWhenDown": "test_a_listing_that_gets_no_answer_is_no_empty_one",
}
MANIFEST = {
    "tools": [
        {
            "name": "credit", "effect": "write",
            "idempotency": {"kind": "key", "header": "Idempotency-Key", "retention_seconds": 86400},
            "send": {"connector": "payments", "path": "/payments/credits", "body": {
                **{name: f"{{arguments.{name}}}" for name in CREDIT}, "reference": "{action_id}"}},
            "reconcile": {
                "connector": "payments", "max_in_flight_seconds": 20, "max_visibility_lag_seconds": 1,
                "look": {
                    "path": "/payments/credits", "query": {"reference": "{action_id}"}, "items": "items",
                    "ours": {"reference": "{action_id}"}, "external_id": "credit_id",
                    "match": {name: f"{{arguments.{name}}}" for name in CREDIT},
                },
            },
            "compensate": {"tool": "void", "arguments": {"credit": "credit_id"}},
        },
        {
            "name": "void", "effect": "write",
            "idempotency": {"kind": "key", "header": "Idempotency-Key", "retention_seconds": 86400},
            "send": {"connector": "payments", "path": "/payments/voids",
                     "body": {"credit": "{arguments.credit}", "reference": "{action_id}"}},
            "reconcile": {
                "connector": "payments",
                "look": {"path": "/payments/voids", "query": {"reference": "{action_id}"}, "items": "items",
                         "ours": {"reference": "{action_id}"}, "external_id": "void_id"},
            },
        },
    ],
    "connectors": {"payments": {"base_url": "https://payments.example", "timeout_seconds": 1}},
}  # fmt: skip


@pytest.fixture(scope="module")
def payments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with start(tmp_path_factory.mktemp("kit")) as process:
        process.sandbox.mode("payments", keys="honour")
        yield process


def kit(url: str, what: str, *more: str) -> tuple[int, str]:
    """Run the kit as its user would; its exit code and what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", PLUGIN, "--pyargs",
               "steadyhand.testing.connector", "--connector", what, "--connector-url", url, *more]  # fmt: skip
    path = os.pathsep.join([str(ROOT / "sdk"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment, cwd="/")
    return done.returncode, done.stdout + done.stderr


def test_a_good_connector_passes_every_check(payments: Process) -> None:
    code, told = kit(payments.url, "tests.sdk.kit_subjects:Good")
    assert code == 0, told
    assert "deselected" not in told


def test_the_sandboxs_manifest_passes(payments: Process, tmp_path: Path) -> None:
    file = tmp_path / "flow.json"
    file.write_text(json.dumps(MANIFEST))
    code, told = kit(
        payments.url, str(file), "--connector-tool", "credit", "--connector-arguments", json.dumps(CREDIT)
    )
    assert code == 0, told
    assert "7 deselected" in told, "it declares no listing, and nothing else is left out"


@pytest.mark.parametrize(("fault", "check"), FAULTS.items())
def test_each_planted_fault_is_found_by_its_check(payments: Process, fault: str, check: str) -> None:
    code, told = kit(payments.url, f"tests.sdk.kit_subjects:{fault}", "-k", check)
    assert code == 1, told
    assert f"::{check}" in re.sub(r"\s", "", told)
    assert "AssertionError" in told, "it says what is wrong, and does not break itself"


def test_every_check_has_a_fault_that_it_finds() -> None:
    text = (ROOT / "sdk" / "steadyhand" / "testing" / "connector.py").read_text()
    checks = set(re.findall(r"^def (test_\w+)", text, re.M))
    plain = {"test_nothing_is_absent_and_counted_as_none", "test_one_effect_is_present_with_its_id"}
    assert checks == set(FAULTS.values()) | plain
    assert set(FAULTS) <= set(vars(kit_subjects))


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("CountsNothing", "test_nothing_is_absent_and_counted_as_none"),
        ("SeesNothing", "test_one_effect_is_present_with_its_id"),
    ],
)
def test_the_plainest_faults_are_found(payments: Process, fault: str, check: str) -> None:
    code, told = kit(payments.url, f"tests.sdk.kit_subjects:{fault}", "-k", check)
    assert (code, f"::{check}" in told) == (1, True), told


@pytest.mark.parametrize(
    ("what", "more", "sentence"),
    [
        ("tests.sdk.kit_subjects", (), "write it as module:object"),
        ("tests.sdk.kit_subjects:CREDIT", (), "no `promises`"),
        ("tests.sdk.kit_subjects:Nobody", (), "Nobody"),
        ("nowhere.json", (), "nowhere.json"),
        ("tests.sdk.kit_subjects:Good", ("--connector-arguments", "{"), "cannot be tested"),
    ],
)
def test_what_cannot_be_tested_is_told_in_a_sentence(what: str, more: tuple[str, ...], sentence: str) -> None:
    code, told = kit("http://127.0.0.1:9", what, *more)
    assert code == 4, told
    assert sentence in told


def test_an_installed_kit_needs_no_further_word(payments: Process, tmp_path: Path) -> None:
    """The package's own entry point brings the options."""
    text = (ROOT / "sdk" / "pyproject.toml").read_text()
    named = re.search(r'\[project\.entry-points\.pytest11\]\n"?([\w.]+)"? = "([\w.]+)"', text)
    assert named is not None
    info = tmp_path / "steadyhand_kit-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: steadyhand-kit\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[pytest11]\n{named[1]} = {named[2]}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:django", "--pyargs",
               "steadyhand.testing.connector", "--connector", "tests.sdk.kit_subjects:Good", "--connector-url",
               payments.url, "-k", "one_effect"]  # fmt: skip
    path = os.pathsep.join([str(tmp_path), str(ROOT / "sdk"), str(ROOT)])
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd="/", env=environment | {"PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_sdk_knows_pytest_only_in_its_kit() -> None:
    sources = [path for path in (ROOT / "sdk" / "steadyhand").rglob("*.py") if "testing" not in path.parts]
    assert [path.name for path in sources if re.search(r"^\s*(import|from) pytest", path.read_text(), re.M)] == []
