"""What may be stored and shown in clear: everything else becomes a mark that says what stood there (SEC-34).

Pure. Declared fields, telling names, and the shapes of tokens, cards and accounts are taken out before anything is
written; text from outside is cut at a bound and control characters are made visible.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

MAX_TEXT = 4000
MAX_ITEMS = 200
# Nothing that the shapes below look for is shorter, but for an address with credentials in it, which holds an "@".
SHORTEST_SECRET = 13

_SECRET_NAME = re.compile(
    r"pass(word|wd|phrase)?$|secret|token|api[_\-]?key|authorization|cookie|credential|private[_\-]?key|cvv|cvc|"
    r"\bpin\b|otp|ssn|session[_\-]?id|card[_\-]?number|\biban\b",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"sh_[\w\-]{8,}_[\w\-]{16,}_[\w\-]{16,}|\b(?:sk|pk|rk|ghp|gho|ghs|xox[abp]|glpat|AKIA|ASIA)[\w\-]{12,}"
    r"|eyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*|(?i:bearer|basic)\s+[\w\-.=+/]{12,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
)
_USERINFO = re.compile(r"(\w+://)[^/\s:@]+:[^/\s@]+@")
_CARD = re.compile(r"(?<!\d)\d(?:[ \-]?\d){12,18}(?!\d)")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
_WORD = re.compile(r"[\w+/=\-]{32,}")
_MARK = re.compile(r"\[redacted \w+\]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def redact(value: Any, *, sensitive: Iterable[str] = (), path: str = "") -> Any:
    """A copy of a JSON value that is fit to be stored: same shape, secrets replaced by what they were."""
    hidden = frozenset(sensitive)
    if isinstance(value, dict):
        return {
            clean_text(str(key)): _field(str(key), item, hidden, path)
            for key, item in list(value.items())[:MAX_ITEMS]
        }
    if isinstance(value, (list, tuple)):
        return [redact(item, sensitive=hidden, path=path) for item in list(value)[:MAX_ITEMS]]
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f"[{value}]"
    return value


def clean_text(text: str, limit: int = MAX_TEXT) -> str:
    """Text without secrets, without invisible characters, cut at `limit` with the rest counted."""
    if len(text) < min(SHORTEST_SECRET, limit) and text.isascii() and text.isprintable() and "@" not in text:
        return text
    text = _USERINFO.sub(r"\1[redacted]@", _TOKEN.sub("[redacted token]", text))
    text = _CARD.sub(lambda found: "[redacted card]" if _luhn(found[0]) else found[0], text)
    text = _IBAN.sub(lambda found: "[redacted account]" if _iban(found[0]) else found[0], text)
    text = _WORD.sub(lambda found: "[redacted token]" if _random(found[0]) else found[0], text)
    text = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text if len(text) <= limit else _cut(text, limit)


def _cut(text: str, limit: int) -> str:
    """At most `limit` characters, the note about the rest included: columns are no longer than that."""
    note = f"… [{len(text) - limit} more characters]"
    return f"{text[: limit - len(note)]}{note}" if limit > 2 * len(note) else text[:limit]


def _field(name: str, item: Any, hidden: frozenset[str], path: str) -> Any:
    here = f"{path}.{name}" if path else name
    if name in hidden or here in hidden or (_is_telling(name) and item not in (None, "", [], {})):
        return item if isinstance(item, str) and _MARK.fullmatch(item) else f"[redacted {type(item).__name__}]"
    return redact(item, sensitive=hidden, path=here)


def _is_telling(name: str) -> bool:
    return _is_known_telling(name) if len(name) <= 80 else _SECRET_NAME.search(name) is not None


@lru_cache(maxsize=4000)
def _is_known_telling(name: str) -> bool:
    """The same field names come with every call."""
    return _SECRET_NAME.search(name) is not None


def _luhn(text: str) -> bool:
    digits = [int(char) for char in text if char.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _iban(text: str) -> bool:
    plain = text.replace(" ", "")
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def _random(word: str) -> bool:
    """Dense, mixed and unlike words or our own hexadecimal ids: four bits a character and more is a secret."""
    if re.fullmatch(r"[0-9a-f\-]+|[a-z_\-]+|\d+", word):
        return False
    counts = Counter(word)
    return -sum(n / len(word) * math.log2(n / len(word)) for n in counts.values()) > 4.0
