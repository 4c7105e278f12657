"""The process: started, killed, started again, stopped, reset."""

import os
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest

from sandbox.client import ROOT, Process, Sandbox, SandboxError, start
from tests.sandbox.wire import post_credit


def test_a_killed_sandbox_comes_back_with_ledger_keys_faults_and_clock(own: Process) -> None:
    world = own.sandbox
    world.mode("payments", keys="honour", retention_seconds=600)
    world.advance(100)
    world.fault("payments", "credits", [{"do": "commit_then_drop"}, {"do": "status", "status": 503}])
    post_credit(own.port, X_Action_Id="act-1", Idempotency_Key="k-1")
    before = (world.arrivals(), world.effects(), world.faults())
    own.kill()
    with start(own.data_dir, own.port) as again:
        assert again.url == own.url
        world = again.sandbox
        assert (world.arrivals(), world.effects(), world.faults()) == before
        assert post_credit(again.port, Idempotency_Key="k-1").status == 503
        assert b"Idempotent-Replayed: true" in post_credit(again.port, Idempotency_Key="k-1").head
        assert len(world.effects()) == 1


def test_a_killed_sandbox_still_makes_its_late_commit_once(own: Process) -> None:
    own.sandbox.fault("payments", "credits", [{"do": "late_commit", "seconds": 60}])
    post_credit(own.port, X_Action_Id="act-1")
    own.kill()
    with start(own.data_dir) as again:
        assert (again.sandbox.effects(), len(again.sandbox.pending())) == ([], 1)
        again.sandbox.advance(61)
        again.sandbox.wait_for_effects(1, reference="act-1")
        again.kill()
    with start(own.data_dir) as third:
        assert (len(third.sandbox.effects()), third.sandbox.pending()) == (1, [])


def test_a_late_commit_that_fell_due_while_the_sandbox_was_down_is_made_at_the_start(own: Process) -> None:
    own.sandbox.fault("payments", "credits", [{"do": "late_commit", "seconds": 0.2}])
    post_credit(own.port)
    own.kill()
    with start(own.data_dir) as again:
        assert len(again.sandbox.wait_for_effects(1)) == 1


def test_a_stop_is_clean_and_quick_although_a_call_hangs(own: Process) -> None:
    own.sandbox.fault("payments", "credits", [{"do": "hang", "seconds": 100, "commit": False}])
    waiting = threading.Thread(target=post_credit, args=(own.port,), kwargs={"timeout": 20})
    waiting.start()
    until = time.monotonic() + 5
    while not own.sandbox.arrivals(outcome="hanging") and time.monotonic() < until:
        time.sleep(0.02)
    begun = time.monotonic()
    assert own.stop() == 0
    assert time.monotonic() - begun < 4
    waiting.join(5)
    assert not waiting.is_alive()
    assert "Traceback" not in (own.data_dir / "sandbox.log").read_text()
    with start(own.data_dir) as again:
        assert again.sandbox.arrivals()[0]["outcome"] == "interrupted"
        assert again.sandbox.effects() == []


def test_a_delayed_call_that_a_stop_interrupts_is_never_committed(own: Process) -> None:
    own.sandbox.fault("payments", "credits", [{"do": "delay", "seconds": 100}])
    assert post_credit(own.port, timeout=0.2).how == "silence"
    own.stop()
    with start(own.data_dir) as again:
        assert again.sandbox.effects() == []


def test_a_second_sandbox_in_the_same_directory_is_refused_in_a_sentence(own: Process) -> None:
    command = [sys.executable, "-m", "sandbox", "--data", str(own.data_dir)]
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20, check=False)
    assert refused.returncode == 2
    assert "Another sandbox already uses" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_port_in_use_is_a_sentence_and_no_traceback(own: Process, tmp_path: object) -> None:
    command = [sys.executable, "-m", "sandbox", "--data", f"{tmp_path}/other", "--port", str(own.port)]
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20, check=False)
    assert refused.returncode == 2
    assert refused.stderr.startswith("Cannot start at 127.0.0.1:")


def test_a_sandbox_stops_when_the_process_that_started_it_is_gone(tmp_path: object) -> None:
    program = (
        "import sys, pathlib; from sandbox.client import start;"
        f"print(start(pathlib.Path({str(tmp_path)!r}) / 'w').pid)"
    )
    made = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=20, check=True
    )
    pid, until = int(made.stdout), time.monotonic() + 5
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    try:
        assert not alive(pid)
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and waits for somebody to ask does not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_reset_gives_an_empty_world(world: Sandbox, process: Process) -> None:
    world.mode("payments", keys="honour")
    world.advance(5)
    world.fault("payments", "credits", [{"do": "late_commit", "seconds": 60}, {"do": "ok"}, {"do": "ok"}])
    post_credit(process.port)
    post_credit(process.port, Idempotency_Key="k-1")
    world.reset()
    assert world.counts() == {"arrivals": 0, "effects": 0, "pending": 0, "operations": {}}
    assert (world.faults(), world.pending()) == ([], [])
    post_credit(process.port, Idempotency_Key="k-1")
    post_credit(process.port, Idempotency_Key="k-1")
    assert len(world.effects()) == 2


def test_a_call_from_before_a_reset_leaves_no_trace_after_it(world: Sandbox, process: Process) -> None:
    world.fault("payments", "credits", [{"do": "delay", "seconds": 0.4}])
    ended: list[str] = []
    calling = threading.Thread(target=lambda: ended.append(post_credit(process.port).how))
    calling.start()
    until = time.monotonic() + 5
    while not world.arrivals() and time.monotonic() < until:
        time.sleep(0.01)
    world.reset()
    calling.join(5)
    assert ended == ["rst"]
    assert world.counts()["effects"] == 0


def test_many_callers_at_once_lose_nothing_and_the_ledger_is_read_beyond_one_page(
    world: Sandbox, process: Process
) -> None:
    def call() -> None:
        for _ in range(65):
            assert post_credit(process.port).status == 201

    callers = [threading.Thread(target=call) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(20)
    assert (len(world.effects()), len(world.arrivals())) == (520, 520)
    assert len({effect["effect_id"] for effect in world.effects()}) == 520


def test_the_ledger_is_read_in_either_order_and_by_filter(
    world: Sandbox, process: Process, http: httpx.Client
) -> None:
    for name in ("act-1", "act-2"):
        post_credit(process.port, X_Action_Id=name)
    latest = http.get("/_control/ledger", params={"order": "desc", "limit": 1}).json()
    assert [effect["action_id"] for effect in latest["effects"]] == ["act-2"]
    assert len(world.arrivals(service="payments", reference="act-1", kind="write")) == 1
    for params in ({"order": "up"}, {"limit": "0"}, {"after": "x"}, {"colour": "red"}):
        assert http.get("/_control/ledger", params=params).status_code == 400


def test_the_client_says_why_a_control_call_was_refused(world: Sandbox) -> None:
    with pytest.raises(SandboxError, match="seconds"):
        world.fault("payments", "credits", [{"do": "delay"}])


def test_controls_say_404_and_405(world: Sandbox, http: httpx.Client) -> None:
    assert http.get("/_control/nothing").status_code == 404
    assert http.get("/_control/reset").status_code == 405
    assert http.get("/_control/health").json()["status"] == "ok"
    assert http.post("/_control/clock", json={"advance_seconds": -1}).status_code == 400
