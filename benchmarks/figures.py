"""Samples into figures: percentiles, ratios that are taken block by block, a table and JSON lines."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


def percentile(samples: list[float], q: float) -> float:
    """Nearest rank."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(q * len(ordered)) - 1))]


def timed(act: Callable[[], object], times: int) -> list[float]:
    """Seconds of each of `times` calls."""
    samples = []
    for _ in range(times):
        start = time.perf_counter()
        act()
        samples.append(time.perf_counter() - start)
    return samples


@dataclass
class Series:
    """One thing measured in blocks; block number n of every series was taken at nearly the same moment."""

    name: str
    blocks: list[list[float]] = field(default_factory=list)

    @property
    def samples(self) -> list[float]:
        return [sample for block in self.blocks for sample in block]

    def ms(self, q: float) -> float:
        return percentile(self.samples, q) * 1e3

    def medians(self) -> list[float]:
        """The median of each block, in seconds."""
        return [statistics.median(block) for block in self.blocks]

    def figure(self) -> dict[str, Any]:
        shown = {f"p{round(q * 100)}_ms": round(self.ms(q), 3) for q in (0.5, 0.95, 0.99)}
        return {"figure": self.name, "calls": len(self.samples), **shown}


@dataclass(frozen=True)
class Ratio:
    """A figure that is compared with a target: at most `most`, or at least `least`."""

    name: str
    value: float
    most: float | None = None
    least: float | None = None
    spread: tuple[float, float] | None = None

    @property
    def target(self) -> str:
        if self.most is not None:
            return f"≤ {self.most:g}"
        return f"≥ {self.least:g}" if self.least is not None else "–"

    @property
    def met(self) -> bool | None:
        if self.most is not None:
            return self.value <= self.most
        return self.value >= self.least if self.least is not None else None

    def figure(self) -> dict[str, Any]:
        between = {"quartiles": [round(side, 2) for side in self.spread]} if self.spread else {}
        return {"ratio": self.name, "value": round(self.value, 2), "target": self.target, "met": self.met, **between}


def against(name: str, series: Series, limit: list[float], *, most: float) -> Ratio:
    """The median over blocks of block median by block limit (seconds): what drifts within minutes falls out."""
    ratios = [own / there for own, there in zip(series.medians(), limit, strict=True)]
    quartiles = statistics.quantiles(ratios, n=4)
    return Ratio(name, statistics.median(ratios), most=most, spread=(quartiles[0], quartiles[2]))


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table; all columns but the first are set right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def line(figure: dict[str, Any]) -> str:
    return json.dumps(figure, ensure_ascii=False)
