"""Runs the tests part by part, each in a pytest of its own; ends with what failed and every part's closing line."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
# A test belongs to the first part it is marked for; what carries no such mark is a unit test.
PARTS = ["adapters", "browser", "crash", "failures", "races", "simulation", "security"]
NOTHING_COLLECTED = 5
# pytest's own lines for what is wrong: the assertion, and the summary.
TROUBLES = ("E   ", "FAILED ", "ERROR ")
MOST_TROUBLES = 60
# One process and its database keep little more than one core busy, and these measure no moments: they run beside the
# units. Races, crashes and browsers have the machine to themselves.
BESIDE_UNITS = ("failures", "security", "simulation")


@dataclass
class Part:
    """One part and what came of it."""

    name: str
    command: list[str]
    code: int = 0
    last: str = "said nothing"
    seconds: float = 0
    troubles: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return self.code not in (0, NOTHING_COLLECTED)

    def closing(self) -> str:
        return f"{self.name:<24}{self.last if 'in ' in self.last else f'{self.last} ({self.seconds:.0f} s)'}"


def expression(part: str, *, long: bool) -> str:
    """The marker expression of one part; every test falls into exactly one."""
    earlier = PARTS[: PARTS.index(part)] if part in PARTS else PARTS
    wanted = [part] if part in PARTS else []
    wanted += [f"not {name}" for name in earlier] + ([] if long else ["not long"])
    return " and ".join(wanted)


def parts(*, long: bool) -> list[Part]:
    """Each part with its command line; adapters run beside their framework, in its environment."""
    made = [
        Part(name, [sys.executable, "-m", "pytest", "-m", expression(name, long=long)])
        for name in ["unit", *reversed([name for name in PARTS if name != "adapters"])]
    ]
    for locked in sorted((BASE / "sdk").glob("adapters-*.txt")):
        name = locked.stem.removeprefix("adapters-")
        python = BASE / f".venv-{name}" / "bin" / "python"
        folder = f"tests/adapters/{name.replace('-', '_')}"
        made.append(Part(f"adapter {name}", [str(python), "-m", "pytest", "-c", f"{folder}/pytest.ini", folder]))
    return made


def lanes(made: Sequence[Part]) -> Iterator[list[list[Part]]]:
    """What runs at the same time: rows of parts, one part of a row after the other."""
    beside = [part for part in made if part.name in BESIDE_UNITS]
    yield [[part for part in made if part.name == "unit"], beside]
    for part in made:
        if part.name != "unit" and part not in beside:
            yield [[part]]


def main() -> int:
    made = parts(long="--long" in sys.argv)
    for rows in lanes(made):
        with ThreadPoolExecutor(len(rows)) as pool:
            list(pool.map(_run_row, rows))
    for part in made:
        if part.failed:
            print(f"\n=== {part.name}: what failed ===\n" + "\n".join(part.troubles))
    print("\n" + "\n".join(part.closing() for part in made))
    failed = any(part.failed for part in made)
    print("FAILED" if failed else "passed", flush=True)
    return int(failed)


def _run_row(row: Sequence[Part]) -> None:
    for part in row:
        _run(part)


def _run(part: Part) -> None:
    """Show every line as it comes, with the name of its part, and keep what says that something failed."""
    begun = time.monotonic()
    with subprocess.Popen(
        part.command, cwd=BASE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(f"{part.name:<11}| {line}", end="", flush=True)
            part.last = line.strip().strip("=").strip() or part.last
            if line.startswith(TROUBLES) and len(part.troubles) < MOST_TROUBLES:
                part.troubles.append(line.rstrip())
    part.code, part.seconds = process.returncode, time.monotonic() - begun


if __name__ == "__main__":
    sys.exit(main())
