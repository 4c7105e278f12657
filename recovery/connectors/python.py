"""A connector that an installed package brings: called once, within a deadline, and never trusted to come back.

A call that does not end in time is left behind in its thread, and counts as unanswered; only so many may be left
behind at once. What it raises is a look-up that failed, or for a send whatever its tool's exception would mean; what
would end a process (SystemExit, a cancelled coroutine) ends no worker.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from steadyhand import observe
from steadyhand.connector import GROUP, Unclear, checked
from steadyhand.contract import Observation
from steadyhand.manifest import Connector

from recovery.connectors.base import Finding, Outgoing, Question, Whom, failed, read
from recovery.rules import foreign

MAX_LEFT_BEHIND = 4
_running: defaultdict[str, threading.BoundedSemaphore] = defaultdict(
    lambda: threading.BoundedSemaphore(MAX_LEFT_BEHIND)
)


class Quit(Exception):
    """The connector asked for the end of the process, or of a task that is none of its own; it says with what."""


class Unavailable(Exception):
    """The connector was not called; the message says why in a sentence."""


def reconcile(question: Question) -> Finding:
    """Ask once. Whatever is raised, and whatever is no answer, is `probe_failed`, with a sentence."""
    seconds = question.connector.timeout_seconds
    try:
        answer = call(question.connector, question.whom, "reconcile", question.ask(), seconds=seconds)
        seen = checked(answer)
        return read(replace(seen, record=foreign.plain(seen.record)), question)
    except Unavailable as why:
        return failed(str(why))
    except Unclear as wrong:
        return failed(f"The connector's answer cannot be used: {wrong}.")
    except TimeoutError:
        return failed("The look-up did not answer in time.", fault=True)
    except Exception as wrong:
        # Somebody else's code: its class is kept, its text may hold anything.
        return failed(f"The look-up broke: {type(wrong).__name__}.")


def send(outgoing: Outgoing) -> Observation:
    """Make the call, or the undo, once; after the deadline nobody knows whether it left."""
    what, started = "compensate" if outgoing.undoes else "execute", time.monotonic()
    try:
        result = call(outgoing.connector, outgoing.whom, what, outgoing.ask(), seconds=outgoing.timeout_seconds)
    except Unavailable as why:
        return observe.not_sent(str(why))
    except Exception as wrong:
        # Read like a tool's exception: only a proof that nothing left says so.
        return observe.from_exception(wrong, latency_ms=int((time.monotonic() - started) * 1000))
    return observe.from_result(result, latency_ms=int((time.monotonic() - started) * 1000))


def call(connector: Connector, whom: Whom, what: str, *arguments: Any, seconds: float) -> Any:
    """The method's answer within `seconds`. Raises Unavailable, TimeoutError, and what the method raises."""
    name = connector.entry_point or whom.name
    method = getattr(_object(name), what, None)
    if method is None:
        raise Unavailable(f"The connector {name} has no {what}.")
    return _within(name, method, arguments, seconds)


def is_installed(name: str) -> bool:
    """Whether a package of this installation offers a connector of this name."""
    return bool(entry_points(group=GROUP, name=name))


def _within(name: str, method: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> Any:
    slots = _running[name]
    if not slots.acquire(blocking=False):
        raise Unavailable(f"{MAX_LEFT_BEHIND} earlier calls of the connector {name} have not come back.")
    ended: Future[Any] = Future()

    def run() -> None:
        try:
            ended.set_result(method(*arguments))
        except Exception as wrong:
            ended.set_exception(wrong)
        except BaseException as wrong:
            ended.set_exception(Quit(type(wrong).__name__))
        finally:
            slots.release()

    threading.Thread(target=run, name=f"connector {name}", daemon=True).start()
    return ended.result(timeout=seconds)


@cache
def _object(name: str) -> Any:
    """The connector itself; a class or a function without arguments is called for it once. Raises Unavailable."""
    found = next(iter(entry_points(group=GROUP, name=name)), None)
    if found is None:
        raise Unavailable(f"No installed package offers a connector {name} in the group {GROUP}.")
    try:
        loaded = found.load()
        return loaded() if isinstance(loaded, type) or not hasattr(loaded, "reconcile") else loaded
    except BaseException as wrong:
        raise Unavailable(f"The connector {name} could not be loaded: {type(wrong).__name__}.") from wrong
