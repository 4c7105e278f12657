"""What may be stored and shown in clear: everything else becomes a mark that says what stood there (SEC-34).

Pure, but for the installation's key that tells marks apart. Declared fields, telling names, and the shapes of tokens,
cards and accounts are taken out before anything is written; text from outside is cut at a bound and control
characters are made visible.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any

MAX_TEXT = 4000
MAX_ITEMS = 200
MAX_DEPTH = 100
# Nothing that the shapes below look for is shorter, but for an address with credentials, which holds an "@", and a
# secret that is named, which holds a "=" or a ":".
SHORTEST_SECRET = 13

_SECRET_NAME = re.compile(
    r"passw|pwd|pass(phrase|code)|pass$|mot_de_passe|passwort|kennwort|contrase|secret|token|credential|cookie"
    r"|authori[sz]ation|bearer|jwt|session[_\-]?id|card[_\-]?(number|no|num)\b|security[_\-]?code|cvv|cvc"
    r"|(api|access|private|signing|encryption|ssh|account|license|master|auth)[_\-]?key"
    r"|(^|[_\-. ])(pw|pass|pin|otp|totp|mfa|auth|ssn|iban|pan)([_\-. ]|$)",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"sh_[\w\-]{8,40}_[\w\-]{16,40}_[\w\-]{16,100}|\b(?:sk|pk|rk|ghp|gho|ghs|xox[abp]|glpat|AKIA|ASIA)[\w\-]{12,}"
    r"|eyJ[\w\-]{8,1000}\.[\w\-]{8,8000}\.[\w\-]*|(?i:bearer|basic)\s{1,10}[\w\-.=+/]{12,}"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)"
)
# `password=…`, `"api_key": "…"`, `?token=…`: a name that tells, a sign, a value. Every part is bounded, so that no
# text takes long.
_NAMED = re.compile(
    r"((?:passw(?:or)?d|passphrase|passcode|passwd|pwd|secret|token|credentials?|authorization|cookie|jwt|session_?id"
    r"|(?:api|access|private|signing|encryption|auth)[_\-]?key|\bpass|\bpw|\bauth|\bpin|\bcvv|\bcvc|\botp|_auth|_pass)"
    r"(?:[_\-]\w{1,40}|hash)?[\\\"']{0,4}\s{0,4}[=:]\s{0,4})"
    r"(?!\s|[\\\"']{0,4}\[redacted |//)"
    r"(?:(?:bearer|basic)\s{1,10})?"
    r"(?:\\\"[^\"\\\n]+(?:\\\")?|\"(?:[^\"\\\n]|\\.)+\"?|'(?:[^'\\\n]|\\.)+'?|[^\s\"'&,;<>(){}\[\]\\]+)",
    re.IGNORECASE,
)
_HINTS = (
    "pass", "pw", "secret", "token", "key", "auth", "credential", "cookie", "jwt", "session", "pin", "cv", "otp",
)  # fmt: skip
_USERINFO = re.compile(r"(\w://)[^/\s:@]{1,200}:[^/\s@]{1,1000}@")
_CARD = re.compile(r"(?<!\d)\d(?:[ \-]?\d){12,18}(?!\d)")
# As a bare number a card is told from an order or a time by how cards begin and how long they are.
_CARD_NUMBER = re.compile(r"4\d{12}(?:\d{3}){0,2}|5\d{15}|2[2-7]\d{14}|3[47]\d{13}|3[0689]\d{12}|35\d{14}|6\d{15,18}")
_ID = re.compile(
    r"(?<![0-9a-z])(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?=[0-9]{0,63}[a-f])[0-9a-f]{24,64})(?![0-9a-z])",
    re.IGNORECASE,
)
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
_WORD = re.compile(r"[\w+/=\-]{32,}")
_PART = r"(?:[A-Z]?[a-z]+|[A-Z]+)?\d*(?:[a-z]+\d*)?"
_NAME = re.compile(rf"(?:{_PART}[\-_/+=]+)*{_PART}")
_MARK = re.compile(r"\[redacted \w+\]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


DIGEST_CHARS = 10
_digest_key = b""


def tell_apart_by(key: bytes) -> None:
    """The installation's secret, once at the start: `digest` is keyed by it."""
    global _digest_key
    _digest_key = key


def digest(text: str) -> str:
    """What tells one hidden text from another and nothing else: keyed, so that it cannot be guessed at."""
    return hmac.new(_digest_key, b"mark\0" + text.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()[
        :DIGEST_CHARS
    ]


def redact(value: Any, *, sensitive: Iterable[str] = ()) -> Any:
    """A copy of a JSON value that is fit to be stored: same shape, secrets replaced by what they were."""
    return _redacted(value, frozenset(sensitive), "", MAX_DEPTH)


def _redacted(value: Any, hidden: frozenset[str], path: str, levels: int) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, (dict, list, tuple)) and levels == 0:
        return "[nested too deep]"
    if isinstance(value, dict):
        return {
            clean_text(str(key)): _field(str(key), item, hidden, path, levels - 1)
            for key, item in list(value.items())[:MAX_ITEMS]
        }
    if isinstance(value, (list, tuple)):
        return [_redacted(item, hidden, path, levels - 1) for item in list(value)[:MAX_ITEMS]]
    return value if isinstance(value, bool) or value is None else _number(value)


def _number(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return f"[{value}]"
    is_long = isinstance(value, (int, float)) and abs(value) >= 10**12
    return "[redacted card]" if is_long and _is_card(f"{value:.0f}" if abs(value) < 10**19 else "") else value


def clean_text(text: str, limit: int = MAX_TEXT) -> str:
    """Text without secrets, without invisible characters, cut at `limit` with the rest counted."""
    if len(text) < min(SHORTEST_SECRET, limit) and text.isascii() and text.isprintable() and not _is_signed(text):
        return text
    text = _USERINFO.sub(r"\1[redacted]@", _TOKEN.sub("[redacted token]", text))
    text = _NAMED.sub(r"\1[redacted secret]", text) if _may_name_one(text) else text
    text = _CARD.sub(_hide_card, text)
    text = _IBAN.sub(lambda found: "[redacted account]" if _iban(found[0]) else found[0], text)
    text = _WORD.sub(lambda found: "[redacted token]" if _random(found[0]) else found[0], text)
    text = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text if len(text) <= limit else _cut(text, limit)


def _is_signed(text: str) -> bool:
    return "@" in text or "=" in text or ":" in text


def _may_name_one(text: str) -> bool:
    """A cheap look before the slow one: most texts with a colon name no secret."""
    if "=" not in text and ":" not in text:
        return False
    lower = text.lower()
    return any(hint in lower for hint in _HINTS)


def fault(text: str) -> str | None:
    """Why a text may not be stored as it is, as what to do about it; None if it may (SEC-34).

    For a name that is looked up again it is no help to be cleaned: it has to come clean.
    """
    if _CONTROL.search(text):
        return "leave out control and invisible characters"
    known = _CARD.sub(
        lambda found: found[0] if _in_an_id(found) or _is_card(re.sub(r"\D", "", found[0])) else "", text
    )
    return None if clean_text(known, len(known) + 1) == known else "send a plain name: this looks like a secret"


def _cut(text: str, limit: int) -> str:
    """At most `limit` characters, the note about the rest included: columns are no longer than that."""
    note = f"… [{len(text) - limit} more characters]"
    return f"{text[: limit - len(note)]}{note}" if limit > 2 * len(note) else text[:limit]


def _field(name: str, item: Any, hidden: frozenset[str], path: str, levels: int) -> Any:
    here = f"{path}.{name}" if path else name
    if is_hidden(here, hidden) or (_is_telling(name) and item not in (None, "", [], {})):
        return item if isinstance(item, str) and _MARK.fullmatch(item) else f"[redacted {type(item).__name__}]"
    return _redacted(item, hidden, here, levels)


def is_hidden(path: str, sensitive: Collection[str]) -> bool:
    """Whether a value at this path is declared sensitive; what is declared also holds inside of whatever an answer
    wraps its record in."""
    return bool(sensitive) and any(path == one or path.endswith(f".{one}") for one in sensitive)


def _is_telling(name: str) -> bool:
    return _is_known_telling(name) if len(name) <= 80 else _SECRET_NAME.search(name) is not None


@lru_cache(maxsize=4000)
def _is_known_telling(name: str) -> bool:
    """The same field names come with every call."""
    return _SECRET_NAME.search(name) is not None


def _hide_card(found: re.Match[str]) -> str:
    return "[redacted card]" if _luhn(found[0]) and not _in_an_id(found) else found[0]


def _in_an_id(found: re.Match[str]) -> bool:
    """Whether the digits are a stretch of a UUID or a long hexadecimal id: one in a thousand looks like a card."""
    near = found.string[max(0, found.start() - 64) : found.end() + 64]
    return any(found[0] in one[0] for one in _ID.finditer(near))


def _is_card(digits: str) -> bool:
    return _CARD_NUMBER.fullmatch(digits) is not None and _luhn(digits)


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
    """Dense, mixed and unlike words or our own hexadecimal ids: four bits a character and more is a secret.

    A name put together of words and numbers (`billing/order-4711-2026-retry`) is as dense, and none.
    """
    if re.fullmatch(r"[0-9a-f\-]+|[a-z_\-]+|\d+", word) or _NAME.fullmatch(word):
        return False
    counts = Counter(word)
    return -sum(n / len(word) * math.log2(n / len(word)) for n in counts.values()) > 4.0
