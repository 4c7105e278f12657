"""One sandbox process per module, an empty world per test."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sandbox.client import Process, Sandbox, start


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with start(tmp_path_factory.mktemp("world")) as process:
        yield process


@pytest.fixture
def world(process: Process) -> Sandbox:
    process.sandbox.reset()
    return process.sandbox


@pytest.fixture
def http(process: Process) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=process.url, trust_env=False, timeout=10) as client:
        yield client


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Process]:
    """A process that the test may kill; what it starts again at the same place it stops itself."""
    process = start(tmp_path / "world")
    yield process
    if process.popen.poll() is None:
        process.stop()
