"""The part of a text that was looked for, as pieces that a template prints and escapes one by one (F097)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from console.pages.common import Piece

AROUND = 60
MOST = 160


def marked(text: str, sought: Sequence[str]) -> list[Piece]:
    """The text in pieces; a sought word is one wherever a word begins with it, in any case."""
    found = _pattern(sought)
    parts = found.split(text) if found else [text]
    return [Piece(part, bool(place % 2)) for place, part in enumerate(parts) if part]


def excerpt(text: str, sought: Sequence[str]) -> str:
    """One line of at most MOST characters, around the first place that fits where the text is longer."""
    line, found = " ".join(text.split()), _pattern(sought)
    if len(line) <= MOST:
        return line
    place = found.search(line) if found else None
    start = max(place.start() - AROUND, 0) if place else 0
    cut = line[start : start + MOST - 2]
    return f"{'…' if start else ''}{cut}{'…' if start + len(cut) < len(line) else ''}"


def _pattern(sought: Sequence[str]) -> re.Pattern[str] | None:
    words = sorted(filter(None, sought), key=len, reverse=True)
    if not words:
        return None
    return re.compile(rf"(?<!\w)({'|'.join(map(re.escape, words))})", re.IGNORECASE)
