"""The scores as a Markdown page, as CSV and as a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping

from benchmarks.evaluation.measure import NOTHING, WAYS, WRONG_BOUND, Cell, Score, Share, mean_calls, share
from benchmarks.evaluation.remote import CALM, FAULTS, LEVELS

Scores = Mapping[Cell, Score]
SHARES = ("duplicates", "caused", "unseen", "goal", "human", "false_ok", "false_failed")
SHOWN = ("duplicates", "caused", "unseen", "goal", "human", "false_ok", "false_failed")
HEAD = (
    "| way | duplicates | sent twice by us | duplicates, nobody told | goal reached | human | false ok "
    "| false failed | remote calls |"
)
RULE = "|---|---:|---:|---:|---:|---:|---:|---:|---:|"


def as_csv(scores: Scores) -> str:
    """Every count with its share and interval, a line a cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    spread = [f"{name}{end}" for name in SHARES for end in ("", "_share", "_low", "_high")]
    writer.writerow(["level", "faults", "way", "episodes", *spread, "calls", "calls_low", "calls_high"])
    for cell, score in scores.items():
        row: list[object] = [cell.level.name, cell.faults.name, cell.way, score.episodes]
        for name in SHARES:
            count = getattr(score, name)
            row += [count, *(f"{one:.6f}" for one in share(count, score.episodes))]
        writer.writerow([*row, *(f"{one:.4f}" for one in mean_calls(score))])
    return out.getvalue()


def as_markdown(scores: Scores, *, seed: str, seconds: float) -> str:
    """The page: every table, and how to read it."""
    some = next(iter(scores.values())).episodes
    parts = [
        INTRODUCTION.format(episodes=f"{some:,}", cells=len(scores), seed=seed, minutes=f"{seconds / 60:.1f}"),
        *(_section(scores, level, faults) for level in reversed(LEVELS) for faults in FAULTS),
        "## Controls\n",
        "Without faults every way reaches its goal, and what never sends reaches none.\n",
        _table(scores, [cell for cell in scores if cell.level == CALM or cell.way == NOTHING]),
    ]
    return "\n".join(parts) + "\n"


def short(scores: Scores) -> str:
    """The README's table: the highest level, worst figure of each kind over all faults."""
    lines = ["| way | duplicates | false ok | goal reached | human |", "|---|---:|---:|---:|---:|"]
    for way in WAYS:
        mine = [score for cell, score in scores.items() if cell.way == way and cell.level == LEVELS[-1]]
        figures = [_range(mine, name) for name in ("duplicates", "false_ok", "goal", "human")]
        lines.append(f"| {way} | {' | '.join(figures)} |")
    return "\n".join(lines)


def _range(scores: list[Score], name: str) -> str:
    low, high = (f"{100 * end:.1f}" for end in _ends([getattr(one, name) / one.episodes for one in scores]))
    return f"{high} %" if low == high else f"{low}–{high} %"


def _ends(shares: list[float]) -> tuple[float, float]:
    return min(shares), max(shares)


def _section(scores: Scores, level: object, faults: object) -> str:
    mine = [cell for cell in scores if cell.level == level and cell.faults == faults and cell.way != NOTHING]
    return f"## {mine[0].level.name}, {mine[0].faults.name}\n\n{_table(scores, mine)}\n"


def _table(scores: Scores, mine: Iterable[Cell]) -> str:
    return "\n".join([HEAD, RULE, *(_row(cell, scores[cell]) for cell in mine)]) + "\n"


def _row(cell: Cell, score: Score) -> str:
    shares = [_cell(share(getattr(score, name), score.episodes)) for name in SHOWN]
    calls = mean_calls(score)
    return f"| {cell.way} | {' | '.join(shares)} | {calls.value:.2f} ({calls.low:.2f}–{calls.high:.2f}) |"


def _cell(found: Share) -> str:
    low, high = 100 * found.low, 100 * found.high
    return f"{_percent(100 * found.value)} ({low:.2f}–{high:.2f})"


def _percent(value: float) -> str:
    return "0 %" if value == 0 else f"{value:.2f} %"


INTRODUCTION = """# Ways of retrying a write, compared

Six ways of retrying one write against a provider that fails by chance. {cells} cells of {episodes} episodes, seed
`{seed}`, in {minutes} minutes. `make evaluate` makes this page, [the same as CSV](results.csv) and
[the picture](results.svg) again; [benchmarks/README.md](../../benchmarks/README.md) says how.

![Duplicates, false ok and goal reached at the highest level](results.svg)

Everything is scored from the provider's own ledger after the last request has landed. The n-th request of an episode
meets the same fate whichever way sends it. In brackets: 95 % intervals (Wilson's for shares).

- **duplicates**: more than one effect in the ledger; **sent twice by us**: made by more than one of our requests;
  **nobody told**: and no person has a task about it.
- **goal reached**: exactly one whole effect, and the caller was told so. **human**: left to a person, which is
  counted and not played. **false ok**: told done, without exactly one whole effect. **false failed**: told not done,
  with an effect or a part of one.
- **remote calls**: sends and look-ups a run, Steadyhand's later counting look included.

Levels: timeout 5, 20, 35 %; delayed visibility 5, 15, 25 %; partial 3, 10, 15 %; conflict 2, 5, 10 %. A request
without a reply was carried out in half of the cases. *Late*: half of those land up to 60 s after their caller gave
up; *heavy tail*: 30 % of them later than any bound; *redelivery*: 20 % of what is carried out arrives twice.

Each way sends three times at most. *Key only* is blind retry with a key that the provider honours. *Verify only*
sends once and looks. *Verify-before-retry* looks, with the same look-up as ours, before every further send. *Ours*
is the product's own code: classify, assembly, table, backoff, later counting look. Where requests may land at any
time no bound is declared to it, so that without a key a look can never prove that nothing happened: those writes are
a person's, which is why the goal is reached less often there than by a way that guesses. *{wrong}* declares a bound
all the same: the duplicates of that row are the price of a promise that is not kept.
""".replace("{wrong}", WRONG_BOUND)
