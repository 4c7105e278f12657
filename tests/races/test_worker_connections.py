"""A worker keeps its connection from message to message while it answers, and replaces one that does not (F061)."""

from __future__ import annotations

import gc

import psycopg
import pytest
from celery.fixups.django import DjangoWorkerFixup
from celery.signals import task_prerun, worker_process_init
from django.db import connection
from kombu import Connection

from console.celery import app
from recovery.tasks import execute
from runs.querysets import read_clock


@pytest.fixture
def worker(fresh_database: str) -> DjangoWorkerFixup:
    connection.ensure_connection()
    return DjangoWorkerFixup(app)


def carried_out(worker: DjangoWorkerFixup) -> int:
    """One message, with what Celery does before and after it; the number of the session that it spoke in."""
    worker.on_task_prerun(execute)
    task_prerun.send(sender=execute)
    read_clock()
    session: int = connection.connection.info.backend_pid
    worker.on_task_postrun(execute)
    return session


def test_one_message_after_another_speaks_in_the_same_session(worker: DjangoWorkerFixup) -> None:
    assert len({carried_out(worker) for _ in range(5)}) == 1


def test_F061_a_session_that_the_server_ended_between_two_messages_is_replaced(
    worker: DjangoWorkerFixup, dsn_super: str
) -> None:
    before = carried_out(worker)
    with psycopg.connect(dsn_super, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", [before])
    assert carried_out(worker) != before


def test_F055_a_worker_knocks_every_other_second_however_long_the_broker_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, object]] = []
    monkeypatch.setattr(Connection, "ensure_connection", lambda *_, **named: asked.append(named))
    with app.connection_for_read() as broker:
        broker.ensure_connection(None, None)
    assert asked == [{"interval_start": 2, "interval_step": 0}]


def test_a_worker_does_not_walk_again_and_again_through_what_was_loaded_for_good() -> None:
    before = gc.get_threshold()
    try:
        worker_process_init.send(sender=None)
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold()[0] > 10 * before[0]
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
