"""`manage.py run_cases DIR`: every scenario file of a folder through the real code, one line a case."""

import json
import sys
import time
import traceback
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from console.embedded import throwaway
from console.embedded.errors import Trouble
from recovery.scenarios import compare, explain, format, runner
from recovery.scenarios.format import BadScenario


class Command(BaseCommand):
    help = "Play every scenario file (*.json) of a folder and compare what the record holds with the right answer."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument("--json", action="store_true", help="one JSON object a case")
        parser.add_argument("--only", action="append", default=[], metavar="ID", help="only this case; repeatable")
        parser.add_argument("--explain", action="store_true", help="with the decision path of each case")

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            files = format.folder(options["folder"])
        except BadScenario as wrong:
            raise Trouble(str(wrong)) from wrong
        files = [path for path in files if not options["only"] or path.stem in options["only"]]
        with nullcontext() if throwaway.carries_the_mark() else throwaway.database():
            results = [self._one(path, options) for path in files]
        failed = [result for result in results if not result["ok"]]
        if not options["json"]:
            self.stdout.write(f"{len(results) - len(failed)} of {len(results)} cases pass.")
        if failed:
            sys.exit(1)

    def _one(self, path: Path, options: dict[str, Any]) -> dict[str, Any]:
        result = played(path)
        told = result.pop("told")
        if options["json"]:
            self.stdout.write(json.dumps({**result, **({"told": told} if options["explain"] else {})}))
            return result
        words = "; ".join(result["differences"])
        self.stdout.write(f"{result['id']} {'pass' if result['ok'] else 'FAIL'} {words}".rstrip())
        for line in told if options["explain"] else ():
            self.stdout.write(f"    {line}")
        return result


def explained(play: runner.Play) -> Iterator[str]:
    yield from explain.lines(play.main.run_id, play.tenant.pk)
    yield from (f"turned down: {who} {what}: {why}" for who, what, why in play.people.turned_down)


def played(path: Path) -> dict[str, Any]:
    """One file: its id, whether it passed, what differed, and how it went."""
    started = time.monotonic()
    told: list[str] = []
    try:
        scenario = format.load(path)
        seen = runner.play(scenario, inspect=lambda play: told.extend(explained(play)))
        found, unread = compare.differences(scenario, seen), seen.unread
    except BadScenario as wrong:
        found, unread = [str(wrong)], []
    except Exception as broke:  # one case that breaks the code must not keep the others from being told
        place = traceback.extract_tb(broke.__traceback__)[-1]
        found, unread = [f"the code broke: {broke!r} in {Path(place.filename).name}:{place.lineno}"], []
    return {
        "id": path.stem,
        "ok": not found,
        "differences": found,
        "unread": unread,
        "milliseconds": int((time.monotonic() - started) * 1000),
        "told": told,
    }
