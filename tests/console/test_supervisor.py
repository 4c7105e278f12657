"""The supervisor with small children: who is restarted, who is not, and who is made to go."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.embedded import processes, supervisor
from console.embedded.errors import Trouble
from console.embedded.record import Record
from console.embedded.supervisor import Child, Stay, Supervisor


class Desk:
    """A supervisor, what it said, and a deadline so that no test waits for ever."""

    def __init__(self, home: Path, log: Path | None = None) -> None:
        self.lines: list[str] = []
        self.up = Supervisor(
            say=lambda n, text: self.lines.append(f"{n}: {text}"), env=os.environ, record=Record(home), log=log
        )

    def turn_until(self, text: str, *, times: int = 1, seconds: float = 10) -> None:
        deadline = time.monotonic() + seconds
        while sum(text in line for line in self.lines) < times:
            assert time.monotonic() < deadline, self.lines
            self.up.turn(0.05)
            self.up._restart_due()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.up.stop()


def shell(name: str, script: str, stay: Stay = Stay.RESIDENT) -> Child:
    return Child(name, ["sh", "-c", script], stay=stay)


def test_a_fallen_resident_starts_again_with_growing_patience(desk: Desk) -> None:
    desk.up.start(shell("web", "echo hello; exit 3"))
    desk.turn_until("web: hello", times=3)
    assert [line for line in desk.lines if line.startswith("up:")][:2] == [
        "up: web ended (exit code 3); it starts again in 0.2 s",
        "up: web ended (exit code 3); it starts again in 0.4 s",
    ]


def test_a_child_that_keeps_falling_is_named_once_with_the_place_of_its_lines(tmp_path: Path) -> None:
    desk = Desk(tmp_path, log=tmp_path / "steadyhand.log")
    desk.up.start(shell("web", "exit 3"))
    desk.turn_until("web ended", times=4)
    desk.up.stop()
    assert [line for line in desk.lines if "keeps ending" in line] == [
        f"up: web keeps ending, 3 times within 30 seconds: its lines in {tmp_path}/steadyhand.log say why."
    ]


def test_a_child_that_falls_now_and_then_is_no_loop(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "WITHIN", 0.3)
    desk.up.start(shell("web", "exit 3"))
    desk.turn_until("web ended", times=3)
    assert not [line for line in desk.lines if "keeps ending" in line]


def test_a_guest_that_is_done_is_not_called_back(desk: Desk) -> None:
    desk.up.start(shell("agent", "exit 0", Stay.GUEST))
    desk.turn_until("up: agent has finished")
    assert desk.up._due == {}


def test_a_guest_that_failed_is(desk: Desk) -> None:
    desk.up.start(shell("agent", "exit 1", Stay.GUEST))
    desk.turn_until("agent ended (exit code 1); it starts again")


def test_a_step_gives_its_exit_code_and_every_line(desk: Desk) -> None:
    assert desk.up.run_once(shell("migrate", "echo one; printf two; exit 4", Stay.ONCE)) == 4
    assert desk.lines == ["migrate: one", "migrate: two"]


def test_a_child_that_ends_while_we_wait_for_it_is_trouble(desk: Desk) -> None:
    desk.up.start(shell("web", "exit 1"))
    with pytest.raises(Trouble, match="web stopped while starting"):
        desk.up.wait("web", lambda: False, seconds=5)


def test_a_child_that_will_not_stop_is_killed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "GRACE", 0.2)
    deaf = desk.up.start(shell("deaf", "trap '' TERM; echo up; while :; do sleep 0.1; done"))
    desk.turn_until("deaf: up")
    desk.up.stop()
    assert deaf.returncode == -signal.SIGKILL


def test_what_a_killed_child_leaves_behind_ends_with_it(desk: Desk) -> None:
    parent = desk.up.start(shell("worker", "sleep 60 & echo $!; wait"))
    desk.up.turn(1)
    while not any(line.startswith("worker: ") for line in desk.lines):
        desk.up.turn(0.1)
    grandchild = int(desk.lines[0].removeprefix("worker: "))
    parent.kill()
    desk.turn_until("worker ended (killed by SIGKILL)")
    deadline = time.monotonic() + 5
    while processes.is_alive(grandchild):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_services_stop_after_those_who_lean_on_them(desk: Desk) -> None:
    script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    desk.up.start(Child("database", ["sh", "-c", script], service=True))
    desk.up.start(Child("web", ["sh", "-c", script]))
    desk.turn_until(": up", times=2)
    desk.up.stop()
    assert [line for line in desk.lines if line.endswith("bye")] == ["web: bye", "database: bye"]


def test_ctrl_c_ends_the_watch_at_once(desk: Desk) -> None:
    desk.up.start(shell("web", "sleep 60"))
    with desk.up.signals():
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        desk.up.keep_running()
    assert desk.up.stopping


def test_a_program_that_is_not_there_is_trouble(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes.shutil, "which", lambda _: None)
    with pytest.raises(Trouble, match="web cannot be started"):
        desk.up.start(Child("web", ["/nonexistent/program"]))


def test_orphans_of_a_killed_supervisor_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.embedded.record.PATIENCE", 0.1)
    desk = Desk(tmp_path)
    orphan = desk.up.start(Child("web", [sys.executable, "-c", "import time; time.sleep(60)"]))
    assert Record(tmp_path).end_orphans() == ["web"]
    assert orphan.wait(timeout=5) == -signal.SIGKILL
    desk.up.stop()


def test_a_later_process_with_an_old_number_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "children.json").write_text(f'{{"web": [{os.getpid()}, "1"]}}')
    assert Record(tmp_path).end_orphans() == []
