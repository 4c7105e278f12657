"""What happens to one request on its way to a provider and back: drawn by chance, or told by a test. No Django."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Literal

Answer = Literal[
    "ok", "refused", "limited", "error", "gateway", "unavailable", "accepted", "error_object", "no_identity",
    "wrong_types", "foreign", "truncated", "conflict_done", "unauthorized", "forbidden", "redirect", "not_found",
    "no_answer", "mismatch",
]  # fmt: skip
"""How a provider's reply reads. Whether anything was committed is told apart: a `gateway` may hide a commit."""


@dataclass(frozen=True)
class Fate:
    """One request's story, in seconds.

    arrives    after it was sent; None: nothing ever leaves (refused connection)
    cut        it arrives without its end, so the provider drops it
    commits    after it arrived; None: it changes nothing
    again      further commits of the very same request, after it arrived: the network delivered it twice
    replies    after it arrived; None: the reply is lost on its way. A reply never comes before what it reports
    answer     how the reply reads
    whole      False: some of its fields or items are committed, and no more
    done       for a batch: how many of its items are carried out; None for all
    lag        from the commit until a look sees it
    fails      an `accepted` job ends badly after so many seconds; `commits` is when one ends well
    asks       the Retry-After of a `limited` or `unavailable` answer
    """

    arrives: float | None = 0.02
    cut: bool = False
    commits: float | None = 0.05
    again: tuple[float, ...] = ()
    replies: float | None = 0.1
    answer: Answer = "ok"
    whole: bool = True
    done: int | None = None
    lag: float = 0.0
    fails: float | None = None
    asks: float | None = None


GOOD = Fate()
NOTHING_DONE = frozenset({"refused", "limited", "unavailable", "unauthorized", "forbidden", "redirect", "not_found"})


def refusal(answer: Answer, *, asks: float | None = None) -> Fate:
    """An answer that means what it says: nothing was done."""
    return Fate(commits=None, answer=answer, asks=asks)


def lost(fate: Fate = GOOD) -> Fate:
    """The same story without its reply."""
    return replace(fate, replies=None)


def late(seconds: float, fate: Fate = GOOD) -> Fate:
    """It commits that much later, and its reply is lost."""
    return replace(fate, commits=seconds, replies=None)


@dataclass(frozen=True)
class Weather:
    """How often what goes wrong, each a share from 0 to 1 of all requests.

    timeout        the reply is lost; half of those requests were carried out, the others were not
    late           a request whose reply is lost commits late, up to `in_flight` seconds
    heavy_tail     and, of those, this share later than the bound that was promised
    lagging        a commit is not visible at once, up to `lag` seconds
    partial, conflict, redelivered, limited, refused, error    as their names say
    """

    timeout: float = 0.0
    late: float = 0.0
    heavy_tail: float = 0.0
    lagging: float = 0.0
    partial: float = 0.0
    redelivered: float = 0.0
    limited: float = 0.0
    refused: float = 0.0
    error: float = 0.0
    in_flight: float = 60.0
    lag: float = 10.0

    def fate(self, rng: random.Random, *, write: bool = True) -> Fate:
        """One request's story under this weather."""
        if rng.random() < self.refused:
            return refusal("refused")
        if rng.random() < self.limited:
            return refusal("limited", asks=rng.choice((None, 1.0, 5.0)))
        if rng.random() < self.timeout:
            return self._silence(rng, write=write)
        fate = GOOD if write else replace(GOOD, commits=None)
        if rng.random() < self.error:
            committed = fate.commits if rng.random() < 0.5 else None
            fate = replace(fate, answer=rng.choice(("error", "gateway")), commits=committed)
        return self._beside(rng, fate) if write else fate

    def _silence(self, rng: random.Random, *, write: bool) -> Fate:
        if not write or rng.random() < 0.5:
            return Fate(commits=None, replies=None, arrives=rng.choice((0.02, 0.5)))
        fate = lost()
        if rng.random() < self.late:
            beyond = rng.random() < self.heavy_tail
            fate = late(self.in_flight * (rng.uniform(1.5, 6.0) if beyond else rng.uniform(0.05, 0.95)))
        return self._beside(rng, fate)

    def _beside(self, rng: random.Random, fate: Fate) -> Fate:
        """What may come on top of a commit: not seen at once, only a part of it, twice."""
        if fate.commits is None:
            return fate
        if rng.random() < self.lagging:
            fate = replace(fate, lag=rng.uniform(0.0, self.lag * 0.95))
        if rng.random() < self.partial:
            fate = replace(fate, whole=False, replies=None)
        if rng.random() < self.redelivered:
            fate = replace(fate, again=(fate.commits + rng.uniform(0.01, self.in_flight * 0.9),))
        return fate


CALM = Weather()


@dataclass
class Script:
    """The next requests' stories by tool, in order; what it does not name is drawn from the weather."""

    weather: Weather = CALM
    told: dict[str, list[Fate]] = field(default_factory=dict)

    def tell(self, tool: str, *fates: Fate) -> None:
        self.told.setdefault(tool, []).extend(fates)

    def fate(self, tool: str, rng: random.Random, *, write: bool) -> Fate:
        waiting = self.told.get(tool)
        if waiting:
            fate = waiting.pop(0)
            return fate if write else replace(fate, commits=None, again=())
        return self.weather.fate(rng, write=write)
