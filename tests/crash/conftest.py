"""One running product for all tests that kill parts of it; each test once, and 20 times at length."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.crash.case import CreditCase
from tests.postgres import Cluster
from tests.stack import Stack
from tests.stories.billing import Agent
from tests.stories.conftest import agent, product

__all__ = ["agent", "case", "disarmed", "stack", "time"]
TIMES = [pytest.param(0, id="once"), *[pytest.param(n, marks=pytest.mark.long) for n in range(2, 21)]]


@pytest.fixture(scope="package")
def stack(cluster: Cluster, template: str, django_db_blocker: DjangoDbBlocker) -> Iterator[Stack]:
    """Shared by the whole folder: a test restarts what it killed, and nothing else."""
    with product(cluster, template, django_db_blocker) as stack:
        yield stack


@pytest.fixture(params=TIMES)
def time(request: pytest.FixtureRequest) -> int:
    """Which of the times this is; asked for by tests that kill."""
    return int(request.param)


@pytest.fixture
def disarmed(stack: Stack) -> Iterator[None]:
    """A test that failed before anybody died must not kill in the next one."""
    yield
    stack.disarm()


@pytest.fixture
def case(stack: Stack, agent: Agent) -> CreditCase:
    return CreditCase(stack, agent)
