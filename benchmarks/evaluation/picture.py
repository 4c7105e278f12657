"""The scores as a small picture that reads on light and on dark ground."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.evaluation.measure import WAYS, share
from benchmarks.evaluation.remote import FAULTS, LEVELS, Faults
from benchmarks.evaluation.tables import Scores

PANELS = (("duplicates", "duplicates, any cause"), ("false_ok", "false ok"), ("goal", "goal reached"))
LEFT, TOP, ROW, GAP, WIDTH, BETWEEN = 150, 56, 17, 34, 210, 34
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2933; }
  .head { font-weight: 600; } .small { font-size: 11px; fill: #52606d; }
  .theirs { fill: #b8702a; } .ours { fill: #2f7d5b; } .ground { fill: #e4e7eb; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e4e7eb; } .small { fill: #9aa5b1; }
    .theirs { fill: #e0a05a; } .ours { fill: #5bb98c; } .ground { fill: #323f4b; }
  }"""


def draw(scores: Scores) -> str:
    """Bars for every way and fault at the highest level; a bar is a share of all episodes."""
    width = LEFT + len(PANELS) * (WIDTH + BETWEEN) + 10
    height = TOP + len(FAULTS) * (len(WAYS) * ROW + GAP)
    title = f"Shares of all episodes, level {LEVELS[-1].name}"
    box = f'viewBox="0 0 {width} {height}" role="img" aria-label="{title}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {box}>',
            f"<title>{title}</title><style>{STYLE}\n</style>",
            *(
                f'<text class="head" x="{LEFT + place * (WIDTH + BETWEEN)}" y="20">{label}</text>'
                for place, (_, label) in enumerate(PANELS)
            ),
            *(line for place, faults in enumerate(FAULTS) for line in _block(scores, faults, _top(place))),
            "</svg>\n",
        ]
    )


def _top(place: int) -> int:
    return TOP + place * (len(WAYS) * ROW + GAP)


def _block(scores: Scores, faults: Faults, top: int) -> Iterator[str]:
    yield f'<text class="head" x="0" y="{top - 8}">{faults.name}</text>'
    by_way = {cell.way: score for cell, score in scores.items() if cell.level == LEVELS[-1] and cell.faults == faults}
    for place, way in enumerate(WAYS):
        y = top + place * ROW
        yield f'<text x="0" y="{y + 11}">{way}</text>'
        for panel, (name, _) in enumerate(PANELS):
            found = share(getattr(by_way[way], name), by_way[way].episodes)
            yield from _bar(LEFT + panel * (WIDTH + BETWEEN), y, found.value, ours=way.startswith("ours"))


def _bar(x: int, y: int, value: float, *, ours: bool) -> Iterator[str]:
    room = WIDTH - 52
    yield f'<rect class="ground" x="{x}" y="{y + 2}" width="{room}" height="10" rx="2"/>'
    kind = "ours" if ours else "theirs"
    yield f'<rect class="{kind}" x="{x}" y="{y + 2}" width="{value * room:.1f}" height="10" rx="2"/>'
    yield f'<text class="small" x="{x + room + 6}" y="{y + 11}">{100 * value:.1f} %</text>'
