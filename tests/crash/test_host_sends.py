"""A worker killed around its own send: what the world counted, and that nobody sends it a second time."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from steadyhand.contract import Rollback

from recovery import intake
from recovery.work import worker
from recovery.work.sweep import sweep
from runs.models import Tenant
from tests.factories import Case, make_client, make_tenant, open_run, propose, register, reply, report
from tests.failures.outside import stand_manifest
from tests.recovery.invariants import broken
from tests.recovery.stories import open_tasks, tick, tries, waiting
from tests.sdk.counting_server import Counted, counting, plainly

EXECUTE = """
import sys, uuid, django
django.setup()
from recovery.work import worker
worker.execute(uuid.UUID(sys.argv[1]))
"""
# Where the worker dies, and whether its call has arrived by then.
POINTS = [("C07", 0), ("C12", 1), ("C14", 1)]


@pytest.fixture
def world() -> Iterator[Counted]:
    """A server that does whatever it is asked, and counts what arrives."""
    with counting(answer=plainly(200, body=b'{"undo_id": "un_1", "booking_id": "bk_1"}')) as counted:
        yield counted


@pytest.fixture
def tenant(fresh_database: str) -> Iterator[Tenant]:
    tenant = make_tenant("north")
    yield tenant
    assert broken(tenant.pk) == {}


@pytest.fixture
def die(child_env: dict[str, str], world: Counted, tmp_path: Path) -> Callable[[Any, str], int]:
    """Carry out a decision in a process of its own that dies at a point; returns how that ended."""

    def die(decision: Any, point: str) -> int:
        (tmp_path / "die").write_text(point)
        trusted = world.url.removeprefix("http://")
        env = {**child_env, "STEADYHAND_DIE_AT": str(tmp_path / "die"), "TRUSTED_ENDPOINTS": trusted}
        return subprocess.run([sys.executable, "-c", EXECUTE, str(decision)], env=env, check=False).returncode

    return die


def manifest(url: str) -> dict[str, Any]:
    made = stand_manifest()
    book = {
        "name": "book",
        "effect": "write",
        "dispatch": "host",
        "output_schema": {"type": "object", "required": ["booking_id"]},
        "identity_fields": ["booking_id"],
        "send": {"connector": "fair", "path": "/book"},
    }
    for tool in made["tools"]:
        tool.pop("idempotency", None)
    return {**made, "tools": [*made["tools"], book], "connectors": {"fair": {"kind": "http", "base_url": url}}}


def to_be_booked(case: Case) -> str:
    propose(case, "book", {"stand": "A7"})
    return "/book"


def to_be_refunded(case: Case) -> str:
    report(case, propose(case, "pay", {"amount_minor": 5}), reply({"payment_id": "p_1"}, status=201), tool="pay")
    intake.rollback(case.agent.who, case.run_id, Rollback(reason="Taken back."), request_id="t")
    return "/refund"


@pytest.mark.parametrize(("point", "arrives"), POINTS)
@pytest.mark.parametrize("order", [to_be_booked, to_be_refunded])
def test_F007_a_worker_killed_around_its_own_send_leaves_one_try_and_a_task(
    tenant: Tenant,
    world: Counted,
    die: Any,
    dsn_owner: str,
    point: str,
    arrives: int,
    order: Callable[[Case], str],
    settings: Any,
) -> None:
    settings.TRUSTED_ENDPOINTS = [world.url.removeprefix("http://")]
    register(agent := make_client(tenant), manifest(world.url))
    case = open_run(agent, scope={})
    path = order(case)
    sweep(ring=lambda decision: None)
    (decision,) = waiting(tenant.pk)
    assert die(decision, point) == -signal.SIGKILL
    assert world.paths == [path] * arrives
    with psycopg.connect(dsn_owner) as owner:
        owner.execute("UPDATE rehearsal_clock SET shift = shift + interval '1 hour'")
    for _ in range(3):
        worker.execute(decision)
        tick()
    assert world.paths == [path] * arrives
    assert len(tries(case, path[1:])) == 1
    assert len(open_tasks(case)) == 1
