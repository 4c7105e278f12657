"""`make evaluate`: the whole table, on every core, written to docs/evaluation (or where --out says).

Finished cells are kept in var/evaluation under the code's own fingerprint, so an interrupted run goes on where it
stopped; --fresh forgets them. The same seed and code give the same figures.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.evaluation import picture, tables
from benchmarks.evaluation.measure import Cell, Score, cells, episodes

BASE = Path(__file__).resolve().parents[2]
CHUNK = 5000
MEASURING = ("benchmarks/evaluation/[morw][a-z]*.py", "recovery/rules/*.py")


def main() -> None:
    asked = _arguments()
    wanted = cells()
    kept = BASE / "var" / "evaluation" / f"{_fingerprint(asked.episodes, asked.seed)}.jsonl"
    if asked.fresh:
        kept.unlink(missing_ok=True)
    done, before = _kept(kept)
    kept.parent.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    for cell, score in _measured([cell for cell in wanted if cell.name not in done], asked):
        done[cell.name] = score
        seconds = before + time.monotonic() - begun
        with kept.open("a") as file:
            file.write(json.dumps({"cell": cell.name, "score": score, "seconds": seconds}) + "\n")
        print(f"{len(done):3} of {len(wanted)}  {seconds:7.1f} s  {cell.name}", flush=True)
    scores = {cell: done[cell.name] for cell in wanted}
    _write(asked.out, scores, seed=asked.seed, seconds=_kept(kept)[1])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=40_000, help="episodes a cell (40000)")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=BASE / "docs" / "evaluation")
    parser.add_argument("--fresh", action="store_true", help="forget what an interrupted run has finished")
    return parser.parse_args()


def _measured(wanted: list[Cell], asked: argparse.Namespace) -> Iterator[tuple[Cell, Score]]:
    """Each cell once all of its chunks are in."""
    sizes = [min(CHUNK, asked.episodes - start) for start in range(0, asked.episodes, CHUNK)]
    jobs = [(cell, size, f"{asked.seed}/{place}") for cell in wanted for place, size in enumerate(sizes)]
    running: dict[str, tuple[Score, int]] = {}
    with multiprocessing.Pool(asked.processes) as pool:
        for cell, score in pool.imap(_one, jobs):
            so_far, chunks = running.get(cell.name, (Score(), 0))
            running[cell.name] = (so_far.plus(score), chunks + 1)
            if chunks + 1 == len(sizes):
                yield cell, running.pop(cell.name)[0]


def _one(job: tuple[Cell, int, str]) -> tuple[Cell, Score]:
    cell, size, seed = job
    return cell, episodes(cell, size, seed)


def _fingerprint(count: int, seed: str) -> str:
    """Names what the figures depend on: the code, the number of episodes, the seed."""
    whole = hashlib.sha256(f"{count} {seed}".encode())
    for pattern in MEASURING:
        for path in sorted(BASE.glob(pattern)):
            whole.update(path.read_bytes())
    return whole.hexdigest()[:16]


def _kept(path: Path) -> tuple[dict[str, Score], float]:
    """What has been measured already, and the seconds that it took."""
    if not path.exists():
        return {}, 0.0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {one["cell"]: Score(*one["score"]) for one in lines}, max(one["seconds"] for one in lines)


def _write(folder: Path, scores: tables.Scores, *, seed: str, seconds: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(tables.as_markdown(scores, seed=seed, seconds=seconds))
    (folder / "results.csv").write_text(tables.as_csv(scores))
    (folder / "results.svg").write_text(picture.draw(scores))
    print(tables.short(scores))
    print(f"Written to {folder}.")


if __name__ == "__main__":
    main()
