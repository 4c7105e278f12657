"""The database takes no writes any more: no intent, so nothing is sent; when it does again, the case goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import psycopg
import pytest
from django.conf import settings
from django.db import connections
from psycopg import sql
from steadyhand import Unavailable

from console.embedded.places import SUPER_ROLE
from tests.crash.case import CreditCase
from tests.postgres import Cluster
from tests.stack import Stack
from tests.stories.telling import credits

MOST_POOLED = 8
SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"


@pytest.fixture
def writable(stack: Stack, cluster: Cluster) -> Iterator[Callable[[bool], None]]:
    """Say whether the database takes writes; every session learns of it, for it has to begin anew."""

    def say(takes: bool) -> None:
        name = settings.DATABASES["default"]["NAME"]
        connections.close_all()
        with psycopg.connect(cluster.dsn(SUPER_ROLE, "postgres"), autocommit=True) as session:
            change = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = {}")
            session.execute(change.format(sql.Identifier(name), sql.SQL("off" if takes else "on")))
            session.execute(SESSIONS, [name])

    yield say
    say(True)
    # Each connection that the web server's pool still has is dead now; whoever gets one is refused once (F061).
    for _ in range(MOST_POOLED):
        httpx.get(f"{stack.url}/readyz", timeout=5, trust_env=False)


def test_F067_a_database_that_takes_no_writes_lets_no_call_leave(
    case: CreditCase, writable: Callable[[bool], None]
) -> None:
    with case.stack.boundary() as boundary:
        run = case.open(boundary)
        before = case.counted()
        writable(False)
        for _ in range(3):
            with pytest.raises(Unavailable):
                case.agent.credit(run)
        assert credits(case.stack, case.agent) == []
        assert case.stack.sandbox.arrivals(operation="credits", method="POST", action_id=run.run_id) == []
        writable(True)
        assert case.counted() == before
    case.go_on()
    case.holds()
