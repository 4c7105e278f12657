"""`manage.py decide --jsonl`: one line of evidence in, one line of answer out, without a database."""

import json
import sys
from collections.abc import Iterator
from functools import cache
from io import BufferedIOBase
from typing import Any, cast

from django.core.management.base import BaseCommand, CommandParser

from recovery.rules.decide import NextAction, decide
from recovery.rules.evidence import EvidenceError, parse

CHUNK = 1 << 16
LONGEST_LINE = 1 << 16
WHOLE_LINE = "line"  # what an error names when no single field is at fault

# Objects become tuples of pairs, so that a doubled key is still visible; numbers are never a valid value, and
# as floats they cost nothing however many digits they have.
_decoder = json.JSONDecoder(object_pairs_hook=tuple, parse_int=float)


class Command(BaseCommand):
    help = "Read evidence as JSON lines from standard input and print the safe next action for each line."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--jsonl",
            action="store_true",
            required=True,
            help="JSON lines in, JSON lines out (the only form; one answer for every line, in order)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        for lines in arriving_lines(cast(BufferedIOBase, sys.stdin.buffer)):
            self.stdout.write("".join(answer(line) for line in lines), ending="")
            self.stdout.flush()


def arriving_lines(source: BufferedIOBase) -> Iterator[list[bytes]]:
    """Complete lines, in batches as they arrive, so that a caller who waits for an answer gets one."""
    rest = b""
    while chunk := source.read1(CHUNK):
        *complete, rest = (rest + chunk).split(b"\n")
        # Of an endless line only enough is kept to know that it is too long.
        rest = rest[: LONGEST_LINE + 1]
        yield complete
    if rest:
        yield [rest]


def answer(line: bytes) -> str:
    """The line of JSON that answers one line of input: a next action, or an error that names a field."""
    try:
        return _as_line(decide(parse(_fields(line))))
    except EvidenceError as error:
        return json.dumps({"error": str(error), "field": error.field}) + "\n"


@cache
def _as_line(found: NextAction) -> str:
    return json.dumps(found._asdict()) + "\n"


def _fields(line: bytes) -> dict[str, object]:
    if len(line) > LONGEST_LINE:
        raise EvidenceError(WHOLE_LINE, f"the line is longer than {LONGEST_LINE} bytes")
    try:
        pairs = _decoder.decode(line.decode())
    except UnicodeDecodeError:
        raise EvidenceError(WHOLE_LINE, "the line is not UTF-8") from None
    except (ValueError, RecursionError):
        raise EvidenceError(WHOLE_LINE, "the line is not one JSON object") from None
    if not isinstance(pairs, tuple):
        raise EvidenceError(WHOLE_LINE, "the line is not a JSON object")
    fields: dict[str, object] = dict(pairs)
    if len(fields) != len(pairs):
        raise EvidenceError(_doubled(pairs), "the field stands twice in the line")
    return fields


def _doubled(pairs: tuple[tuple[str, object], ...]) -> str:
    names = [name for name, _ in pairs]
    return next(name for name in names if names.count(name) > 1)
