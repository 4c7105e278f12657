"""The ways of retrying that Steadyhand is compared with: three sends at most, then each tells what it believes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

from benchmarks.evaluation.remote import Remote

SENDS = 3
Told = Literal["ok", "failed", "human", "nothing"]
"""What a caller is left with: done, not done, a person's question, or that nothing was tried."""
Way = Callable[[Remote, random.Random], Told]


def blind(remote: Remote, rng: random.Random) -> Told:
    """Send again after anything but a success. With a key this is *key only*."""
    now = 0.0
    for attempt in range(SENDS):
        answer, now = remote.send(now)
        if answer == "ok":
            return "ok"
        now += pause(attempt, rng)
    return "failed"


def verify_only(remote: Remote, rng: random.Random) -> Told:
    """Send once; without a success, look up to three times and believe the last look."""
    answer, now = remote.send(0.0)
    if answer == "ok":
        return "ok"
    for attempt in range(SENDS):
        now += pause(attempt, rng)
        verdict, _ = remote.look(now)
        if verdict != "absent":
            return "ok" if verdict == "present" else "human"
    return "failed"


def verify_before_retry(remote: Remote, rng: random.Random) -> Told:
    """Look before every further send: there already is done, not there is sent again, anything else is a person's."""
    now = 0.0
    for attempt in range(SENDS):
        answer, now = remote.send(now)
        if answer == "ok":
            return "ok"
        now += pause(attempt, rng)
        verdict, _ = remote.look(now)
        if verdict != "absent":
            return "ok" if verdict == "present" else "human"
    return "human"


def do_nothing(remote: Remote, rng: random.Random) -> Told:
    """The control at the other end: nothing is ever sent."""
    return "nothing"


def pause(attempt: int, rng: random.Random) -> float:
    """One second, doubled each time, with jitter."""
    return 2.0**attempt * rng.uniform(0.5, 1.0)
