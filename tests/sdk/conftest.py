"""A fresh scripted server for each test."""

from __future__ import annotations

import pytest

from tests.sdk.fake_server import FakeServer


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()
