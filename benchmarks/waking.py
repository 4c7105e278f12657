"""How soon a worker starts on what was raised: by its message, and by the sweep where the broker was away.

A real broker, worker and clock, as an installation starts them. The look-ups ask a small server in this process,
which knows of no effect. Both times are the database's: when the order was written, when the worker began its look.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from benchmarks import house
from benchmarks.figures import percentile

if TYPE_CHECKING:
    from benchmarks.scenery import Scenery
    from recovery.work.nudges import Ring
    from runs.models import Run

A_SECOND = 2
"""Slow enough that a worker is free: what is measured is the message, not the queue."""
UNRUNG = 20
"""Orders that are written while the broker is away."""
PATIENCE = 60.0


def measured(where: house.Places, scene: Scenery, orders: int) -> dict[str, float]:
    """Seconds: p50 and p99 of `orders` at two a second, and the longest wait once a broker that was away is back."""
    from recovery import tasks
    from runs.querysets import read_clock

    with _looked_up(scene) as (scene, address), ExitStack() as workers, ExitStack() as broker:
        runs = _lost(where, scene, 1 + orders + UNRUNG)
        broker.enter_context(house.broker(where))
        workers.enter_context(house.worker_and_clock(where, trusted=address))
        _begun(scene, _order(scene, runs[:1], tasks.Bell()))  # what only the first one costs
        waits = _begun(scene, _order(scene, runs[1 : 1 + orders], tasks.Bell()))
        broker.close()
        logging.getLogger("recovery.work.nudges").setLevel(logging.ERROR)  # it will warn of each
        unrung = _order(scene, runs[1 + orders :], tasks.Bell())
        broker.enter_context(house.broker(where))
        late = _begun(scene, unrung, since=read_clock())
    return {"p50": percentile(waits, 0.5), "p99": percentile(waits, 0.99), "after_broker": max(late)}


def _lost(where: house.Places, scene: Scenery, many: int) -> list[uuid.UUID]:
    """Runs whose call was lost; its look is not due for half an hour, so that the sweep leaves it alone."""
    from benchmarks import calls
    from recovery.work import sweep

    runs = [scene.open_run() for _ in range(many)]
    for run in runs:
        calls.permitted(scene, run)
    house.move_clock(where, seconds=60)
    sweep.sweep(ring=lambda _: None)
    return runs


def _order(scene: Scenery, runs: Sequence[uuid.UUID], ring: Ring) -> list[uuid.UUID]:
    """Order a look of each; the message goes when the row is committed."""
    from recovery.work import orders, together
    from runs.record import TIMER

    def order(run: Run) -> list[object]:
        return [orders.order_look(action, actor=TIMER, ring=ring) for action in run.actions.select_related("run")]

    for run_id in runs:
        begun = time.perf_counter()
        together.alone(scene.who.tenant_id, run_id, order, "timer")
        time.sleep(max(0.0, 1 / A_SECOND - (time.perf_counter() - begun)))
    return list(runs)


def _begun(scene: Scenery, runs: Sequence[uuid.UUID], since: datetime | None = None) -> list[float]:
    """Seconds from each order, or from `since`, until a worker began its look."""
    from runs import wall
    from runs.models import Event

    end = time.monotonic() + PATIENCE
    while True:
        with wall.within(scene.who.tenant_id):
            told = Event.objects.filter(run_id__among=runs, kind="look_started").values_list("run_id", "at")
            begun = dict(told.order_by("-id"))
        if len(begun) == len(runs):
            return [(at - (since or _asked(scene)[run])).total_seconds() for run, at in begun.items()]
        if time.monotonic() > end:
            raise TimeoutError(f"{len(runs) - len(begun)} of {len(runs)} looks were not begun in {PATIENCE:.0f} s")
        time.sleep(0.2)


def _asked(scene: Scenery) -> dict[uuid.UUID, datetime]:
    from recovery.models import Decision
    from runs import wall

    with wall.within(scene.who.tenant_id):
        return dict(Decision.objects.order_by("-id").values_list("run_id", "requested_at"))


@contextmanager
def _looked_up(scene: Scenery) -> Iterator[tuple[Scenery, str]]:
    """The scene with look-ups at a server whose list is empty; that server's host and port."""
    from benchmarks import scenery
    from recovery import intake

    with ThreadingHTTPServer(("127.0.0.1", 0), _Empty) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_port}"
        told = scenery.LOOKED_UP.model_dump(mode="json", exclude_defaults=True)
        told["connectors"]["payments"]["base_url"] = f"http://{address}"
        manifest = type(scenery.LOOKED_UP).model_validate(told)
        workflow, _ = intake.register_workflow(scene.who, scenery.WORKFLOW, manifest, request_id="bench")
        yield replace(scene, workflow_id=workflow.pk), address
        server.shutdown()


class _Empty(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"items": []}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing: figures are printed, not requests."""
