"""What belongs to no call: sub-agents, memory, rolling back, resuming under a version, ingest, and one try each."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Any

import httpcore
import httpx
import pytest
from steadyhand import AsyncBoundary, Boundary, Unavailable
from steadyhand.blocking import now

from tests.sdk.counting_server import Answer, counting, cut, drop, plainly
from tests.sdk.desk import opened
from tests.sdk.fake_server import RUN, FakeServer


def test_a_sub_agents_run_names_its_parent(server: FakeServer) -> None:
    boundary = server.boundary()
    parent = boundary.run(workflow="billing", intent="Credit.")
    boundary.run(workflow="look_up", intent="Look.", parent=parent)
    boundary.run(workflow="look_up", intent="Look.", parent=parent.run_id)
    assert [told["parent_run_id"] for told in server.came("open")] == [None, RUN, RUN]


def test_a_run_remembers(server: FakeServer) -> None:
    assert opened(server).memory().text == "Nothing yet."
    assert server.arrivals[-1].path == f"/runs/{RUN}/memory"


def test_a_rolled_back_run_is_over_for_the_agent(server: FakeServer) -> None:
    with opened(server) as run:
        run.rollback("The customer changed their mind.")
    assert server.came("rollback") == [{"reason": "The customer changed their mind."}]
    assert server.came("finish") == []


def test_F022_a_runner_names_the_version_that_it_was_written_for(server: FakeServer) -> None:
    boundary = server.boundary()
    boundary.resume(RUN, workflow_id="w-1")
    boundary.resume(RUN)
    assert server.came("resume") == [{"workflow_id": "w-1"}, {}]


def test_ingest_goes_in_pieces_and_counts_faults_from_the_first_record(server: FakeServer) -> None:
    records = ({"id": f"r-{number}", "kind": "turn"} for number in range(1203))
    fault = {"item": 3, "record_id": "r-503", "field": "kind", "remedy": "name a kind"}
    server.then("ingest", lambda body: {"accepted": len(body), "duplicates": 0, "runs": [RUN]})
    server.then("ingest", lambda body: {"accepted": 499, "duplicates": 1, "runs": [RUN], "errors": [fault]})
    told = server.boundary().ingest(records)
    assert [len(body) for body in server.came("ingest")] == [500, 500, 203]
    assert (told.accepted, told.duplicates, told.runs) == (1202, 1, [RUN])
    assert [(one.item, one.record_id) for one in told.errors] == [(503, "r-503")]


def test_ingest_never_sends_a_body_that_is_too_large(server: FakeServer) -> None:
    records = [{"id": str(number), "note": "é" * 100_000} for number in range(6)]
    server.boundary().ingest(records)
    assert [len(body) for body in server.came("ingest")] == [2, 2, 2]


def refused(handler: Any) -> None:
    plainly(503, {"retry-after": "0"})(handler)


def open_blocking(url: str) -> None:
    Boundary(url, "sh_a_b_c", timeout=2).run(workflow="billing", intent="Look.")


def open_looping(url: str) -> None:
    async def main() -> None:
        async with AsyncBoundary(url, "sh_a_b_c", timeout=2) as boundary:
            await boundary.run(workflow="billing", intent="Look.")

    asyncio.run(main())


KINDS = pytest.mark.parametrize("ask", [open_blocking, open_looping], ids=["blocking", "looping"])


@pytest.mark.parametrize("answer", [refused, drop, cut, plainly(429, {"retry-after": "0"})], ids=repr)
@KINDS
def test_F107_no_request_to_the_record_is_sent_twice(answer: Answer, ask: Callable[[str], None]) -> None:
    with counting(answer=answer) as counted, pytest.raises(Unavailable):
        ask(counted.url)
    assert counted.arrivals == 1


@KINDS
def test_F107_not_even_a_connection_is_tried_twice(
    ask: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def refuse(_backend: object, host: str, *_: object, **__: object) -> None:
        tried.append(host)
        raise httpcore.ConnectError("refused")

    async def refuse_later(*arguments: object, **options: object) -> None:
        refuse(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", refuse)
    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", refuse_later)
    with pytest.raises(Unavailable):
        ask("http://console.test")
    assert tried == ["console.test"]


def test_F107_a_connection_that_died_while_idle_is_not_used_twice() -> None:
    """A kept connection that the server closed: the next request goes out once, on a new one."""
    died = threading.Event()

    def once_then_close(handler: Any) -> None:
        plainly(200, body=b'{"items": []}')(handler)
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)
        died.set()

    with counting(answer=once_then_close) as counted, Boundary(counted.url, "sh_a_b_c", timeout=2) as boundary:
        boundary.events()
        assert died.wait(timeout=5)
        boundary.events()
    assert counted.arrivals == 2


def test_a_client_error_of_something_in_between_is_no_word_of_steadyhand(server: FakeServer) -> None:
    server.then("open", httpx.Response(404, text="<html>no such site</html>"))
    with pytest.raises(Unavailable, match="not Steadyhand answered 404"):
        opened(server)


def test_what_needs_a_loop_says_so() -> None:
    with pytest.raises(RuntimeError, match="use AsyncBoundary"):
        now(asyncio.sleep(0))
