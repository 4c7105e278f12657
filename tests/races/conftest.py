"""A database of its own for every race: commits are real, and the clock of all connections can be moved."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from runs.models import Tenant
from tests.factories import Agent, make_client, make_tenant
from tests.recovery.invariants import broken
from tests.recovery.rebuild import differing


@pytest.fixture
def tenant(fresh_database: str) -> Iterator[Tenant]:
    tenant = make_tenant("north")
    yield tenant
    assert broken(tenant.pk) == {}
    assert differing(tenant.pk) == {}


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return make_client(tenant)


@pytest.fixture
def later(fresh_database: str, dsn_owner: str) -> Callable[[float], None]:
    """Move every connection's clock forward by seconds."""

    def later(seconds: float) -> None:
        with psycopg.connect(dsn_owner) as owner:
            owner.execute("UPDATE rehearsal_clock SET shift = shift + make_interval(secs => %s)", [seconds])

    return later
