"""A report that cannot be delivered outlives its process, and is delivered once."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import stat
import threading
from pathlib import Path

import httpx
import pytest
from steadyhand import Boundary, Unavailable, Unrecorded
from steadyhand.contract import Observation, Report
from steadyhand.spool import Spool

from tests.sdk.desk import ARGUMENTS, Credit
from tests.sdk.fake_server import RUN, FakeServer, problem

DOWN = httpx.ConnectError("down")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reports.spool"


def report(attempt: str, body: str = "{}") -> Report:
    return Report(attempt_id=attempt, tool="apply_credit", fence=1, observation=Observation(kind="reply", body=body))


def leave_behind(path: Path, *attempts: str) -> None:
    """What a process that ended left in its spool."""
    for attempt in attempts:
        assert Spool(path).keep(RUN, report(attempt))


def delivered(server: FakeServer) -> list[str]:
    return [told["attempt_id"] for told in server.came("reports")]


def test_an_undelivered_report_is_on_the_disk_before_the_agent_hears_of_it(server: FakeServer, path: Path) -> None:
    server.then("reports", DOWN)
    with pytest.raises(Unrecorded):
        server.boundary(spool=path).run(workflow="billing", intent="Credit.").call(Credit(), ARGUMENTS)
    (line,) = path.read_text().splitlines()
    kept = json.loads(line)
    assert (kept["run_id"], kept["report"]["attempt_id"]) == (RUN, "a-1")
    assert kept["report"]["observation"]["body"] == '{"id": "cr_1"}'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("when", ["run", "resume", "by hand", "on the way out"])
def test_the_next_process_delivers_it_once(server: FakeServer, path: Path, when: str) -> None:
    leave_behind(path, "a-1", "a-2")
    boundary = server.boundary(spool=path)
    match when:
        case "run":
            boundary.run(workflow="billing", intent="Credit.")
        case "resume":
            boundary.resume(RUN)
        case "by hand":
            assert boundary.deliver_spooled() == 2
    boundary.close()
    assert delivered(server) == ["a-1", "a-2"]
    assert path.read_bytes() == b""
    assert server.boundary(spool=path).deliver_spooled() == 0


def test_the_same_run_goes_on_once_its_report_is_in(server: FakeServer, path: Path) -> None:
    server.then("reports", DOWN, DOWN)
    run = server.boundary(spool=path).run(workflow="billing", intent="Credit.")
    for _ in range(2):
        with pytest.raises(Unrecorded):
            run.call(Credit(), ARGUMENTS)
    assert len(server.came("proposals")) == 1, "nothing is proposed while a report is undelivered"
    assert run.call(Credit(), ARGUMENTS, step="next") == {"id": "cr_1"}
    assert delivered(server) == ["a-1", "a-1", "a-1", "a-2"]
    assert path.read_bytes() == b""


def test_while_steadyhand_is_away_nothing_is_lost(server: FakeServer, path: Path) -> None:
    leave_behind(path, "a-1", "a-2", "a-3")
    server.then("reports", {"answer": "result", "step": "s", "outcome": "ok", "reason_code": "completed"}, DOWN)
    boundary = server.boundary(spool=path)
    assert boundary.deliver_spooled() == 1
    assert Spool(path).holds() == {"a-2", "a-3"}
    server.then("open", DOWN)
    with pytest.raises(Unavailable):
        boundary.run(workflow="billing", intent="Credit.")
    assert delivered(server) == ["a-1", "a-2", "a-2", "a-3"]


def test_a_poisoned_line_goes_aside_and_holds_up_nothing(server: FakeServer, path: Path) -> None:
    leave_behind(path, "a-1")
    with path.open("ab") as file:
        file.write(b'{"run_id": "half a li\n' + b"\xff\x00\n" + b"[1]\n")
    leave_behind(path, "a-2", "a-3")
    ordinary = {"answer": "result", "step": "s", "outcome": "ok", "reason_code": "completed"}
    server.then("reports", ordinary, problem(422, errors=[{"field": "fence", "remedy": "send it"}]), ordinary)
    assert server.boundary(spool=path).deliver_spooled() == 2
    assert delivered(server) == ["a-1", "a-2", "a-3"]
    assert path.read_bytes() == b""
    bad = path.with_name("reports.spool.bad")
    assert len(bad.read_bytes().splitlines()) == 4
    assert stat.S_IMODE(bad.stat().st_mode) == 0o600


def test_a_wrong_token_throws_nothing_away(server: FakeServer, path: Path) -> None:
    leave_behind(path, "a-1", "a-2")
    server.then("reports", problem(401))
    assert server.boundary(spool=path).deliver_spooled() == 0
    assert Spool(path).holds() == {"a-1", "a-2"}
    assert len(server.came("reports")) == 1


def test_two_processes_do_not_both_deliver(server: FakeServer, path: Path) -> None:
    leave_behind(path, "a-1")
    other = Spool(path)
    right = other.begin()
    assert right is not None
    assert server.boundary(spool=path).deliver_spooled() == 0
    leave_behind(path, "a-2")
    other.end(right, [other.waiting()[0].line], [])
    assert server.boundary(spool=path).deliver_spooled() == 1
    assert delivered(server) == ["a-2"], "what was written meanwhile stays, what was delivered is gone"


def test_a_line_that_is_written_while_the_file_is_replaced_is_not_lost(
    server: FakeServer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_behind(path, "a-1")
    writer = threading.Thread(target=leave_behind, args=(path, "a-2"))
    replace = os.replace

    def meanwhile(*names: Path) -> None:
        writer.start()
        writer.join(0.1)
        replace(*names)

    monkeypatch.setattr(os, "replace", meanwhile)
    assert server.boundary(spool=path).deliver_spooled() == 1
    writer.join(5)
    assert Spool(path).holds() == {"a-2"}


def test_many_processes_write_whole_lines(path: Path) -> None:
    forks = multiprocessing.get_context("fork")
    names = [[f"{process}-{number}" for number in range(10)] for process in "abcd"]
    children = [forks.Process(target=leave_behind, args=(path, *attempts)) for attempts in names]
    for child in children:
        child.start()
    for child in children:
        child.join(30)
    assert Spool(path).holds() == {attempt for attempts in names for attempt in attempts}


def test_a_full_spool_is_said_aloud_and_the_report_stays_in_memory(
    server: FakeServer, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    small = Spool(path, max_bytes=300)
    assert small.keep(RUN, report("a-1"))
    assert not small.keep(RUN, report("a-2", body="x" * 300))
    assert small.holds() == {"a-1"}
    assert "is full" in caplog.text


def test_threads_of_one_process_share_the_spool(server: FakeServer, path: Path) -> None:
    leave_behind(path, *[f"a-{n}" for n in range(10)])
    boundary = server.boundary(spool=path)
    threads = [threading.Thread(target=boundary.deliver_spooled) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(delivered(server)) == sorted(f"a-{n}" for n in range(10))


def test_a_spool_serves_a_loop_as_well(server: FakeServer, path: Path) -> None:
    server.then("reports", DOWN)

    async def main() -> None:
        async with server.async_boundary(spool=path) as boundary:
            run = await boundary.run(workflow="billing", intent="Credit.")
            with pytest.raises(Unrecorded):
                await run.call(Credit(), ARGUMENTS)
            assert Spool(path).holds() == {"a-1"}
            assert await boundary.deliver_spooled() == 1

    asyncio.run(main())
    assert path.read_bytes() == b""


def test_without_a_spool_there_is_no_file(server: FakeServer, tmp_path: Path) -> None:
    server.then("reports", DOWN)
    boundary: Boundary = server.boundary()
    with pytest.raises(Unrecorded):
        boundary.run(workflow="billing", intent="Credit.").call(Credit(), ARGUMENTS)
    assert boundary.deliver_spooled() == 0
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_is_cut_off_by_ctrl_c_is_kept(server: FakeServer, path: Path) -> None:
    server.then("reports", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        server.boundary(spool=path).run(workflow="billing", intent="Credit.").call(Credit(), ARGUMENTS)
    assert Spool(path).holds() == {"a-1"}
