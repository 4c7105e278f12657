"""`python -m benchmarks.recovery`: after a crash, and many looks at once, beside row by row and beside DBOS.

RECOVERY_CALLS calls are executing when their agents die (1,000), RECOVERY_LOOKS tasks are closed by looks that found
the effect (10,000). Each is done once by the batch and, for a part of the rows (RECOVERY_ALONE, 100), one by one. The
bare figure is what PostgreSQL needs to close rows with an audit row each, 500 to a statement. RECOVERY_ORDERS looks
(50) go to a real worker by a real broker. With PEERS and PEERS_PYTHON set, DBOS's own recovery of as many workflows
runs in the same server.
"""

from __future__ import annotations

import gc
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks import house
from benchmarks.figures import Ratio, line, table

CALLS = int(os.environ.get("RECOVERY_CALLS", "1000"))
LOOKS = int(os.environ.get("RECOVERY_LOOKS", "10000"))
ALONE = int(os.environ.get("RECOVERY_ALONE", "100"))
ORDERS = int(os.environ.get("RECOVERY_ORDERS", "50"))
BARE_ROWS = 20_000
"""Enough that the kernel's count of processor time, a hundredth of a second fine, says something."""
BARE = """
CREATE TABLE bare_task (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state text NOT NULL DEFAULT 'open',
  due timestamptz NOT NULL DEFAULT now());
CREATE INDEX ON bare_task (due, id) WHERE state = 'open';
CREATE TABLE bare_audit (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, task_id bigint NOT NULL,
  kind text NOT NULL, at timestamptz NOT NULL DEFAULT now());
"""
CLOSE = """WITH done AS (UPDATE bare_task SET state = 'done' WHERE id = ANY (%s) AND state = 'open' RETURNING id)
  INSERT INTO bare_audit (task_id, kind) SELECT id, 'reconciled' FROM done"""


def main() -> None:
    """Each part is printed when it is measured: what fails late takes nothing of it along."""
    with house.settle() as where:
        from benchmarks import peers, scenery, waking
        from console import celery

        celery.spare_the_collector()  # as in every worker
        house.mark_for_rehearsal(where)
        scene = scenery.build(scenery.LOOKED_UP)
        swept = _after_a_crash(where, scene)
        _show_swept(swept)
        others, sentences = peers.recovered(lambda: house.peers_dsn(where), CALLS)
        _show_peer(peers.recovery_seconds(others), swept, sentences)
        _show_looked(_bare(where), _many_looks(where, scene))
        _show_woken(waking.measured(where, scene, ORDERS))


def _after_a_crash(where: house.Places, scene: Any) -> dict[str, float]:
    """Every lease has run out; one pass of the sweep gives each call its state and its task."""
    from django.db import connection

    from recovery.models import HumanTask
    from recovery.work import sweep
    from runs import wall

    def pass_over(many: int) -> float:
        _lose(where, scene, many)
        server = connection.connection.info.backend_pid
        own, busy = time.process_time(), house.busy_seconds(server)
        with _timed() as took:
            handled = sweep.sweep(ring=_quiet)["leases"]
        assert handled == many, f"{handled} of {many} calls were handled in one pass"
        shares.append((time.process_time() - own, house.busy_seconds(server) - busy))
        return took[0]

    shares: list[tuple[float, float]] = []
    pass_over(50)  # a worker that has been up for some seconds
    seconds = pass_over(CALLS)
    with wall.within(scene.who.tenant_id):
        assert HumanTask.objects.filter(state="open").count() == CALLS + 50
    with _one_by_one():
        alone = pass_over(ALONE) * CALLS / ALONE
    return {"together": seconds, "alone": alone, "own": shares[1][0], "busy": shares[1][1]}


def _many_looks(where: house.Places, scene: Any) -> dict[str, float]:
    """Looks that found the effect: what recording them costs, request excluded."""
    from django.db import connection
    from django.db.models import Count

    from recovery.connectors.base import Finding
    from recovery.models import Decision
    from recovery.work import looks, sweep
    from runs import wall
    from runs.models import Event

    tenant = scene.who.tenant_id
    found = Finding("present", "One record is ours: cr_1.", 1, "cr_1", {"id": "cr_1"}, {"id": "cr_1"})

    def recorded(many: int) -> tuple[float, float, float]:
        _lose(where, scene, many)
        sweep.sweep(ring=_quiet)
        house.move_clock(where, seconds=3600)
        while sweep.sweep(ring=_quiet)["due"]:
            pass
        with wall.within(tenant):
            waiting = list(Decision.objects.filter(state="requested").order_by("id"))
        tickets = looks.take(tenant, waiting)
        house.gather_statistics(where)
        server = connection.connection.info.backend_pid
        before, own = house.busy_seconds(server), time.process_time()
        with _timed() as took:
            looks.conclude(tenant, [(ticket, found) for ticket in tickets])
        own, busy, done = time.process_time() - own, house.busy_seconds(server) - before, len(tickets)
        assert done >= many, f"{done} of {many} looks were ordered"
        return took[0] / done, busy / done, own / done

    recorded(20)
    with _one_by_one():
        alone, alone_busy, _ = recorded(ALONE)
    together, busy, own = recorded(LOOKS)
    with wall.within(tenant):
        sizes = Event.objects.filter(kind="task_resolved").values("txid").annotate(looks=Count("id"))
        largest = max(one["looks"] for one in sizes)
    return {"together": together, "busy": busy, "own": own, "largest": largest,
            "alone": alone, "alone_busy": alone_busy}  # fmt: skip


def _lose(where: house.Places, scene: Any, many: int) -> None:
    """Calls that are permitted and never reported; their leases are over."""
    from benchmarks import calls

    for _ in range(many):
        calls.permitted(scene, scene.open_run())
    house.move_clock(where, seconds=60)
    house.gather_statistics(where)


def _bare(where: house.Places) -> dict[str, float]:
    """Seconds a row, and of the server's processor, to close a row with an audit row: 500 to a statement."""
    import psycopg

    with psycopg.connect(house.dsn(where, owner=True), autocommit=True) as session:
        session.execute(BARE)
        session.execute("INSERT INTO bare_task (state) SELECT 'open' FROM generate_series(1, %s)", [BARE_ROWS])
        session.execute("ANALYZE bare_task")
        server = session.info.backend_pid
        before = house.busy_seconds(server)
        with _timed() as took:
            for first in range(1, BARE_ROWS + 1, 500):
                session.execute(CLOSE, [list(range(first, first + 500))])
    return {"together": took[0] / BARE_ROWS, "busy": (house.busy_seconds(server) - before) / BARE_ROWS}


@contextmanager
def _timed() -> Iterator[list[float]]:
    took: list[float] = []
    gc.collect()
    begun = time.perf_counter()
    yield took
    took.append(time.perf_counter() - begun)


@contextmanager
def _one_by_one() -> Iterator[None]:
    """Each run in a transaction of its own, each statement by itself."""
    from recovery.work import together

    usual = together.in_batches

    def alone(tenant_id: uuid.UUID, run_ids: Any, handle: Callable[..., Any], *, by: Any, calls: Any = ()) -> Any:
        return [one for run_id in run_ids for one in together.alone(tenant_id, run_id, handle, by)]

    together.in_batches = alone  # type: ignore[assignment]
    try:
        yield
    finally:
        together.in_batches = usual


def _quiet(_: uuid.UUID) -> None:
    return None


def _show_swept(swept: dict[str, float]) -> None:
    _show(
        "swept",
        swept,
        Ratio(f"seconds of one pass over {CALLS} lost calls", swept["together"], most=0.5),
        Ratio("of these this product's Python, processor time", swept["own"]),
        Ratio("of these the server, processor time", swept["busy"]),
        Ratio("the same row by row / one pass", swept["alone"] / swept["together"], least=20),
    )


def _show_peer(dbos: float | None, swept: dict[str, float], sentences: list[str]) -> None:
    for sentence in sentences:
        print(sentence, flush=True)
    if dbos is not None:
        name = f"DBOS, {CALLS} workflows recovered / one pass"
        _show("dbos", {"all_done_s": dbos}, Ratio(name, dbos / swept["together"], least=20))


def _show_woken(woken: dict[str, float]) -> None:
    _show(
        "woken",
        woken,
        Ratio("order written to look begun, p50 ms", woken["p50"] * 1e3, most=10),
        Ratio("order written to look begun, p99 ms", woken["p99"] * 1e3, most=25),
        Ratio("broker back to look begun, the slowest, s", woken["after_broker"], most=5),
    )


def _show_looked(bare: dict[str, float], looked: dict[str, float]) -> None:
    _show(
        "looked",
        {**looked, "bare": bare},
        Ratio("looks recorded row by row / together", looked["alone"] / looked["together"], least=20),
        Ratio("the server's time for a look / for a bare row", looked["busy"] / bare["busy"], most=3),
        Ratio("this product's Python for a look, processor time, ms", looked["own"] * 1e3),
        Ratio("looks in the largest transaction", looked["largest"], most=500),
    )


def _show(name: str, facts: dict[str, Any], *ratios: Ratio) -> None:
    verdict = {True: "met", False: "missed", None: ""}
    compared = [(one.name, f"{one.value:.2f}", one.target, verdict[one.met]) for one in ratios]
    print(table(("ratio", "value", "target", ""), compared), end="\n\n")
    for figure in (*[one.figure() for one in ratios], {name: facts}):
        print(line(figure), flush=True)
    print(flush=True)


if __name__ == "__main__":
    main()
