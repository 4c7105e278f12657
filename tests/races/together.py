"""Doing things at the same moment on connections of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection, connections


def at_once(*jobs: Callable[[], Any]) -> list[Any]:
    """Run all jobs together, each in a thread with a connection of its own; an exception is a result too."""
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> Any:
        connections["default"].ensure_connection()
        start.wait(timeout=20)
        try:
            return job()
        except Exception as raised:
            return raised
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result(timeout=60) for future in [pool.submit(run, job) for job in jobs]]


def waits_for_a_lock(sessions: int = 1) -> bool:
    """Whether, within ten seconds, so many sessions wait for what others hold: from here on they have met."""
    with connection.cursor() as cursor:
        for _ in range(200):
            cursor.execute("SELECT pg_sleep(0.05), count(DISTINCT pid) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[1] >= sessions:
                return True
    return False


def answers(results: Sequence[Any]) -> list[str]:
    """What permits and reports answered, sorted; any exception by its name."""
    return sorted(getattr(result, "answer", type(result).__name__) for result in results)
