"""Keeps child processes running under one log: starts, restarts with patience, and stops them cleanly.

Everything happens in one thread, the main one: the kernel ties a child to the *thread* that started it.
"""

import os
import selectors
import signal
import subprocess
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import FrameType

from console.embedded import processes
from console.embedded.errors import Trouble
from console.embedded.record import Record

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 10.0
# A child that ran this long was well: its next fall is a new story.
WELL_AFTER = 30.0
# A child that falls this often within that time will not mend itself: somebody has to look.
FALLS, WITHIN = 3, 30.0
GRACE = 10.0
LONGEST_LINE = 16 * 1024


class Stay(Enum):
    """How long a child is meant to stay."""

    RESIDENT = "restarted whenever it ends"
    GUEST = "restarted unless it ends with success"
    ONCE = "never restarted"


@dataclass(frozen=True)
class Child:
    """What to run. `tied` is false for a command that ties itself (PostgreSQL inside its namespace)."""

    name: str
    command: list[str]
    env: Mapping[str, str] = field(default_factory=dict)
    stop: signal.Signals = signal.SIGTERM
    tied: bool = True
    passes: tuple[int, ...] = ()
    # Stopped last and started first: what the others lean on.
    service: bool = False
    stay: Stay = Stay.RESIDENT


@dataclass
class _Running:
    child: Child
    process: "subprocess.Popen[bytes]"
    started: float
    rest: bytes = b""


class Supervisor:
    """`say(name, line)` receives every line of every child, and the supervisor's own as "up"."""

    def __init__(
        self, *, say: Callable[[str, str], None], env: Mapping[str, str], record: Record, log: Path | None = None
    ) -> None:
        self._say = say
        self._log = log
        self._falls: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=FALLS))
        self._env = dict(env)
        self._record = record
        self._running: dict[str, _Running] = {}
        self._due: dict[str, tuple[float, Child]] = {}
        self._pauses: dict[str, float] = {}
        self._selector = selectors.DefaultSelector()
        self._stops = 0

    @property
    def stopping(self) -> bool:
        return self._stops > 0

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Within, Ctrl-C, TERM and HUP ask for a clean stop; a second one ends the patience."""
        asked = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup means it
            asked.append(signal.SIGHUP)
        before = {number: signal.signal(number, self._ask_to_stop) for number in asked}
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        os.set_blocking(reader, False)
        wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        children_end = signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(reader, selectors.EVENT_READ, None)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            signal.signal(signal.SIGCHLD, children_end)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._selector.unregister(reader)
            os.close(reader)
            os.close(writer)

    def start(self, child: Child) -> "subprocess.Popen[bytes]":
        command = processes.tied(child.command, stop=child.stop) if child.tied else child.command
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**self._env, **child.env},
                pass_fds=child.passes,
                # A terminal's Ctrl-C is for us alone: the order of stopping is ours to keep.
                start_new_session=True,
            )
        except OSError as error:
            raise Trouble(f"{child.name} cannot be started ({error.strerror}): run 'make install'.") from error
        assert process.stdout is not None  # noqa: S101 - PIPE was asked for
        os.set_blocking(process.stdout.fileno(), False)
        self._selector.register(process.stdout, selectors.EVENT_READ, child.name)
        self._running[child.name] = _Running(child, process, time.monotonic())
        self._write_record()
        return process

    def run_once(self, child: Child) -> int:
        """Run `child` to its end, its lines in the log; its exit code, or -1 if a stop was asked meanwhile."""
        process = self.start(child)
        while process.poll() is None and not self.stopping:
            self.turn()
        code = process.poll()
        if child.name in self._running and code is not None:
            self._collect(child.name)
        return -1 if code is None or self.stopping else code

    def wait(self, name: str, ready: Callable[[], bool], *, seconds: float) -> None:
        """Keep turning until `ready()`; Trouble if the child ends first or takes longer than `seconds`."""
        deadline = time.monotonic() + seconds
        while not self.stopping and not ready():
            running = self._running.get(name)
            if running is None or running.process.poll() is not None:
                raise Trouble(f"{name} stopped while starting: its lines above say why.")
            if time.monotonic() > deadline:
                raise Trouble(f"{name} is not ready after {seconds:.0f} seconds: its lines above say why.")
            self.turn(0.05)

    def keep_running(self) -> None:
        """Restart whatever falls, until somebody asks to stop."""
        while not self.stopping:
            self.turn()
            self._restart_due()

    def turn(self, seconds: float = 0.5) -> None:
        """One round: pass lines on, and notice who ended."""
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                os.read(key.fd, 4096)
            elif key.data in self._running:
                self._pass_on(self._running[key.data])
        for name in [n for n, r in self._running.items() if r.process.poll() is not None]:
            if not self.stopping:
                self._fell(name)

    def stop(self) -> None:
        """Stop everyone: those who lean on services first, then the services."""
        self._stops = max(self._stops, 1)
        self._due.clear()
        for service in (False, True):
            self._stop_these([r for r in self._running.values() if r.child.service is service])
        self._write_record()

    def _stop_these(self, those: list[_Running]) -> None:
        for running in those:
            if running.process.poll() is None:
                running.process.send_signal(running.child.stop)
        deadline = time.monotonic() + GRACE
        while any(r.process.poll() is None for r in those):
            if time.monotonic() > deadline or self._stops > 1:
                break
            self.turn(0.1)
        for running in those:
            self._collect(running.child.name)

    def _collect(self, name: str) -> None:
        """Let go of a child: the last of its lines, and nobody left in its group."""
        running = self._running.pop(name)
        _end_group(running.process)
        running.process.wait()
        self._pass_on(running)
        if running.rest:
            self._say(name, running.rest.decode(errors="replace"))
        assert running.process.stdout is not None  # noqa: S101
        self._selector.unregister(running.process.stdout)
        running.process.stdout.close()

    def _fell(self, name: str) -> None:
        running = self._running[name]
        lasted = time.monotonic() - running.started
        self._collect(name)
        self._write_record()
        code = running.process.returncode
        if running.child.stay is Stay.ONCE:
            return
        if running.child.stay is Stay.GUEST and code == 0:
            self._say("up", f"{name} has finished")
            return
        pause = FIRST_PAUSE if lasted > WELL_AFTER else self._pauses.get(name, FIRST_PAUSE)
        self._pauses[name] = min(pause * 2, LONGEST_PAUSE)
        self._due[name] = (time.monotonic() + pause, running.child)
        self._say("up", f"{name} ended ({_ending(code)}); it starts again in {pause:.1f} s")
        self._count_fall(name)

    def _count_fall(self, name: str) -> None:
        """Say once, for each series of falls, that waiting will not help."""
        falls = self._falls[name]
        falls.append(time.monotonic())
        if len(falls) == FALLS and falls[-1] - falls[0] < WITHIN:
            falls.clear()
            where = f"its lines in {self._log} say why" if self._log else "its lines above say why"
            self._say("up", f"{name} keeps ending, {FALLS} times within {WITHIN:.0f} seconds: {where}.")

    def _restart_due(self) -> None:
        now = time.monotonic()
        for name in [n for n, (due, _) in self._due.items() if due <= now]:
            self.start(self._due.pop(name)[1])

    def _pass_on(self, running: _Running) -> None:
        assert running.process.stdout is not None  # noqa: S101
        try:
            while chunk := os.read(running.process.stdout.fileno(), 65536):
                *lines, running.rest = (running.rest + chunk).split(b"\n")
                if len(running.rest) > LONGEST_LINE:
                    lines, running.rest = [*lines, running.rest], b""
                for line in lines:
                    self._say(running.child.name, line.decode(errors="replace"))
        except BlockingIOError:
            return

    def _ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stops += 1

    def _write_record(self) -> None:
        self._record.write({name: r.process.pid for name, r in self._running.items()})


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """A child's own children share its session; those it left behind end with it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _ending(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
