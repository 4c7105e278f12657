"""What was trusted beside the demo stays trusted."""

from pathlib import Path

from django.conf import LazySettings

from console.embedded.children import Plan
from console.embedded.places import Places
from console.management.commands import up


def test_the_demo_adds_to_the_endpoints_that_were_named(tmp_path: Path, settings: LazySettings) -> None:
    settings.TRUSTED_ENDPOINTS = ("127.0.0.1:8490", "127.0.0.1:8001")
    plan = Plan(Places(tmp_path), 0, "127.0.0.1", 8000, demo=True, sandbox_ports=(8001,))
    assert up._environment(plan)["TRUSTED_ENDPOINTS"] == "127.0.0.1:8001,127.0.0.1:8490"
