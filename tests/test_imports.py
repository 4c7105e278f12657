"""Imports go one way only: console, recovery, runs, and the words shared with agents."""

from pathlib import Path

import pytest

from tests import layers


def test_no_import_points_upward() -> None:
    assert layers.all_violations() == []


def test_the_whole_product_is_read() -> None:
    names = {name for name, _ in layers.modules(layers.BASE)}
    assert {"console.settings", "recovery.models", "runs.states", "steadyhand.contract"} <= names


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("runs.record", "import recovery.models"),
        ("runs.record", "from recovery import models"),
        ("runs.record", "def late():\n    from console.settings import DEBUG"),
        ("recovery.intake", "from console.invitation import issue"),
        ("recovery.work.worker", "from ...console import settings"),
        ("runs.record", "import steadyhand.boundary"),
        ("console.api.agents", "from steadyhand import boundary"),
        ("console.views.queue", "from guardian.shortcuts import assign_perm"),
        ("recovery.intake", "import celery"),
        ("recovery.tasks", "import guardian"),
        ("recovery.rules.decide", "from django.db import models"),
        ("recovery.rules.decide", "from runs.models import Run"),
        ("recovery.rules.decide", "from recovery.models import HumanTask"),
        ("recovery.rules.decide", "from .. import models"),
        ("recovery.rules.decide", "import httpx"),
        ("recovery.rules.decide", "import time"),
        ("steadyhand.boundary", "import django"),
        ("steadyhand.boundary", "from runs.states import advance"),
        ("steadyhand.contract", "import httpx"),
        ("steadyhand.contract", "from steadyhand import transport"),
        ("steadyhand.identity", "from .transport import send"),
        ("sandbox.server", "from runs.models import Run"),
        ("sandbox.server", "from steadyhand.contract import Outcome"),
        ("console.views.queue", "from tests.conftest import database"),
        ("recovery.connectors.http", "import sandbox.ledger"),
    ],
)
def test_a_planted_wrong_import_is_seen(module: str, source: str) -> None:
    assert len(layers.violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("console.views.queue", "from recovery import intake\nfrom runs.models import Run"),
        ("recovery.intake", "from runs.record import propose"),
        ("recovery.work.worker", "from ..rules import decide"),
        ("recovery.rules.decide", "from .evidence import Evidence\nfrom datetime import datetime"),
        ("recovery.rules.decide", "from steadyhand.contract import Outcome\nfrom enum import StrEnum"),
        ("recovery.tasks", "from celery import shared_task"),
        ("recovery.permissions", "from guardian.shortcuts import get_objects_for_user"),
        ("runs.record", "from steadyhand import contract, identity"),
        ("steadyhand.boundary", "from .transport import send\nimport httpx"),
        ("steadyhand.contract", "import pydantic\nfrom datetime import datetime"),
    ],
)
def test_a_right_import_is_left_alone(module: str, source: str) -> None:
    assert layers.violations(module, source) == []


def test_a_package_counts_its_dots_from_itself(tmp_path: Path) -> None:
    package = tmp_path / "__init__.py"
    assert list(layers.imports("runs.api", "from .. import models", is_package=True)) == ["runs.models"]
    assert layers.violations("runs", "from .models import Run", path=package) == []


def test_a_wrong_import_in_a_file_fails_the_check(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "record.py").write_text("from recovery import intake\n")
    assert layers.all_violations(tmp_path) == ["runs.record imports recovery.intake: runs may not know recovery"]
