"""A forked child has sockets and locks of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from steadyhand import Boundary, Tool
from steadyhand.blocking import Lock, now

from tests.sdk.fake_server import FakeServer
from tests.sdk.served import served


def in_child(work: Callable[[], object]) -> int:
    """The exit code of a forked child that does the work: 0 if it raised nothing."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_parent_and_child_call_through_connections_of_their_own(server: FakeServer) -> None:
    tool = Tool("apply_credit", lambda _arguments, _call: {"pid": os.getpid()})
    with served(server) as counted, Boundary(counted.url, "sh_a_b_c", timeout=5) as boundary:
        run = boundary.run(workflow="billing", intent="Credit.")

        def calls() -> None:
            for number in range(3):
                result = run.call(tool, {"pid": os.getpid(), "number": number})
                assert result == {"pid": os.getpid()}

        calls()
        before = set(counted.ports)
        assert len(before) == 1, "the connection is kept"
        assert in_child(calls) == 0
        childs = set(counted.ports) - before
        assert len(childs) == 1
        arrived = len(counted.ports)
        calls()
        assert set(counted.ports[arrived:]) == before, "the parent's connection still works"
    pids = {proposal["arguments"]["pid"] for proposal in server.came("proposals")}
    assert len(server.came("reports")) == 9
    assert len(pids) == 2


def test_a_lock_that_another_thread_held_is_free_in_the_child() -> None:
    lock, held, release = Lock(), threading.Event(), threading.Event()

    def hold() -> None:
        now(lock.__aenter__())
        held.set()
        release.wait(10)
        now(lock.__aexit__())

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)

    def take() -> None:
        taken = threading.Thread(target=lambda: now(lock.__aenter__()), daemon=True)
        taken.start()
        taken.join(5)
        assert not taken.is_alive()

    assert in_child(take) == 0
    release.set()
    thread.join()
