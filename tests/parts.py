"""Runs the tests part by part, each in a pytest of its own, and ends with every part's closing line."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
# A test belongs to the first part it is marked for; what carries no such mark is a unit test.
PARTS = ["adapters", "browser", "crash", "failures", "races", "simulation", "security"]
NOTHING_COLLECTED = 5


def expression(part: str, *, long: bool) -> str:
    """The marker expression of one part; every test falls into exactly one."""
    earlier = PARTS[: PARTS.index(part)] if part in PARTS else PARTS
    wanted = [part] if part in PARTS else []
    wanted += [f"not {name}" for name in earlier] + ([] if long else ["not long"])
    return " and ".join(wanted)


def commands(*, long: bool) -> Iterator[tuple[str, list[str]]]:
    """Each part's name and command line; adapters run beside their framework, in its environment."""
    for part in ["unit", *reversed([name for name in PARTS if name != "adapters"])]:
        yield part, [sys.executable, "-m", "pytest", "-m", expression(part, long=long)]
    for locked in sorted((BASE / "sdk").glob("adapters-*.txt")):
        name = locked.stem.removeprefix("adapters-")
        python = BASE / f".venv-{name}" / "bin" / "python"
        folder = f"tests/adapters/{name.replace('-', '_')}"
        yield f"adapter {name}", [str(python), "-m", "pytest", "-c", f"{folder}/pytest.ini", folder]


def main() -> int:
    closing: list[str] = []
    failed = False
    for part, command in commands(long="--long" in sys.argv):
        print(f"\n=== {part} ===", flush=True)
        code, line = _run(command)
        failed |= code not in (0, NOTHING_COLLECTED)
        closing.append(f"{part:<24}{line}")
    print("\n" + "\n".join(closing) + f"\n{'FAILED' if failed else 'passed'}", flush=True)
    return int(failed)


def _run(command: list[str]) -> tuple[int, str]:
    """The exit code and pytest's last line, everything shown as it comes."""
    begun, last = time.monotonic(), "said nothing"
    with subprocess.Popen(command, cwd=BASE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip().strip("=").strip() or last
    return process.returncode, last if "in " in last else f"{last} ({time.monotonic() - begun:.0f} s)"


if __name__ == "__main__":
    sys.exit(main())
