"""The waterfall of a run as plain geometry: times in, SVG user units out, so that a page needs no inline style."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

NAMES = 170
WIDTH = 1180
TOP = 24
ROW = 28
SPAN = 16
CHARACTER = 6.4
LEAST = 4.0
STEPS = (1, 2, 5, 10, 15, 20, 30, 40, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time in a lane. `css` is a meaning (looks.MEANINGS) or "empty"; `dashed` means not proven.

    `end` None means: still going on. `text` stands inside when it fits, else beside the span.
    """

    start: datetime
    end: datetime | None
    css: str
    text: str = ""
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """Something a person did, drawn as a diamond."""

    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One row: model turns, one tool, waits, look-ups, operator acts."""

    name: str
    stretches: list[Stretch] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    anchor: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Text:
    x: float
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    x: float
    y: float
    width: float
    css: str
    dashed: bool
    label: Text | None
    start: datetime
    end: datetime | None
    text: str


@dataclass(frozen=True, slots=True)
class Diamond:
    points: str
    label: Text
    at: datetime


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    title: str
    y: float
    baseline: float
    line: float
    spans: list[Span]
    diamonds: list[Diamond]


@dataclass(frozen=True, slots=True)
class Fired:
    x: float
    label: Text


@dataclass(frozen=True, slots=True)
class Waterfall:
    """A drawn waterfall; `label` is the sentence a screen reader gets, the rows also fill the table beside it."""

    width: int
    height: int
    names: int
    label: str
    ticks: list[Tick]
    rows: list[Row]
    fired: Fired | None


def draw(
    lanes: list[Lane],
    *,
    start: datetime,
    end: datetime,
    label: str,
    fired_at: datetime | None = None,
    fired: str = "",
) -> Waterfall:
    """Lay the lanes out between start and end; `fired` names the budget that fired at `fired_at`."""
    scale = _Scale(start, max(end, start + timedelta(seconds=1)))
    rows = [_row(lane, index, scale) for index, lane in enumerate(lanes)]
    return Waterfall(
        width=WIDTH,
        height=TOP + ROW * len(lanes) + 4,
        names=NAMES,
        label=label,
        ticks=scale.ticks(),
        rows=rows,
        fired=_fired(scale.x(fired_at), fired) if fired_at else None,
    )


class _Scale:
    def __init__(self, start: datetime, end: datetime) -> None:
        self.start, self.end = start, end
        self.seconds = (end - start).total_seconds()

    def x(self, at: datetime | None) -> float:
        """User units for a time; None and times outside land on the nearest edge."""
        share = ((at or self.end) - self.start).total_seconds() / self.seconds
        return round(NAMES + min(max(share, 0.0), 1.0) * (WIDTH - NAMES - 8), 1)

    def ticks(self) -> list[Tick]:
        step = next((s for s in STEPS if self.seconds / s <= 10), max(STEPS[-1], self.seconds / 10))
        times = [self.start + timedelta(seconds=step * n) for n in range(int(self.seconds / step) + 1)]
        return [self._tick(at) for at in times]

    def _tick(self, at: datetime) -> Tick:
        x = self.x(at)
        return Tick(x=x, anchor="end" if x > WIDTH - 32 else "middle", at=at)


def _row(lane: Lane, index: int, scale: _Scale) -> Row:
    y = TOP + ROW * index + (ROW - SPAN) / 2
    return Row(
        name=_cut(lane.name),
        title=lane.name,
        y=y,
        baseline=y + 12,
        line=TOP + ROW * (index + 1),
        spans=_legible([_span(stretch, y, scale) for stretch in lane.stretches]),
        diamonds=[_diamond(moment, y, scale) for moment in lane.moments],
    )


def _legible(spans: list[Span]) -> list[Span]:
    """Words give way to spans that have words of their own and to later words; all stay in title and table."""
    taken: list[tuple[float, float]] = []
    kept: list[Span] = []
    for span in reversed(spans):
        others = [(other.x, other.x + other.width) for other in spans if other is not span and other.text]
        if span.label is not None and _crosses(_extent(span.label), [*taken, *others]):
            span = replace(span, label=None)
        if span.label is not None:
            taken.append(_extent(span.label))
        kept.append(span)
    return kept[::-1]


def _extent(label: Text) -> tuple[float, float]:
    """From where to where the words reach, in user units."""
    length = len(label.text) * CHARACTER
    return (label.x, label.x + length) if label.anchor == "start" else (label.x - length, label.x)


def _crosses(one: tuple[float, float], others: list[tuple[float, float]]) -> bool:
    return any(one[0] < end and start < one[1] for start, end in others)


def _span(stretch: Stretch, y: float, scale: _Scale) -> Span:
    x = scale.x(stretch.start)
    width = round(max(scale.x(stretch.end) - x, LEAST), 1)
    return Span(
        x=x,
        y=y,
        width=width,
        css=stretch.css,
        dashed=stretch.dashed,
        label=_label(stretch.text, x, width) if stretch.text else None,
        start=stretch.start,
        end=stretch.end,
        text=stretch.text,
    )


def _label(text: str, x: float, width: float) -> Text:
    room = len(text) * CHARACTER
    if room + 12 <= width:
        return Text(x=x + 6, anchor="start", text=text)
    return _beside(text, left=x - 6, right=x + width + 6)


def _beside(text: str, *, left: float, right: float) -> Text:
    """To the right of something, or to its left where the right edge is too near."""
    if right + len(text) * CHARACTER <= WIDTH:
        return Text(x=round(right, 1), anchor="start", text=text)
    return Text(x=round(left, 1), anchor="end", text=text)


def _diamond(moment: Moment, y: float, scale: _Scale) -> Diamond:
    x, middle = scale.x(moment.at), y + SPAN / 2
    points = f"{x},{middle - 6} {x + 6},{middle} {x},{middle + 6} {x - 6},{middle}"
    return Diamond(points=points, label=_beside(moment.text, left=x - 11, right=x + 11), at=moment.at)


def _fired(x: float, text: str) -> Fired:
    return Fired(x=x, label=_beside(text, left=x - 5, right=x + 5))


def _cut(name: str) -> str:
    most = int((NAMES - 12) / CHARACTER)
    return name if len(name) <= most else f"{name[: most - 1]}…"
