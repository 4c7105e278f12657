"""Signed messages from outside (Standard Webhooks): who holds the secret, and when the message was sent (SEC-21).

Pure. The raw bytes are what was signed: they are verified before anybody parses them (F077).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

PREFIX = "whsec_"
SECRET_BYTES = 32
TOLERANCE = timedelta(minutes=5)
_MESSAGE_ID = re.compile(r"[!-~]{1,200}")
_SECONDS = re.compile(r"[0-9]{1,11}")


class Signed(NamedTuple):
    """The three headers, as they came: `signatures` is a list between spaces, each `v1,<base64>`."""

    message_id: str
    timestamp: str
    signatures: str


def show(secret: bytes) -> str:
    """A secret as its owner gets it."""
    return PREFIX + base64.b64encode(secret).decode()


def read(shown: str) -> bytes:
    """The secret behind `show`."""
    return base64.b64decode(shown.removeprefix(PREFIX))


def sign(secret: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    """One signature of a message, as it stands in the header."""
    content = b".".join((message_id.encode(), timestamp.encode(), body))
    return "v1," + base64.b64encode(hmac.new(secret, content, hashlib.sha256).digest()).decode()


def holds(signed: Signed, body: bytes, secrets: Iterable[bytes]) -> bool:
    """Whether any of the signatures was made with any of the secrets.

    Every pair is compared, each in constant time: how long it takes says nothing about how near a guess came (F076).
    """
    given = [text.encode() for text in signed.signatures.split(" ")]
    valid = 0
    for secret in secrets:
        expected = sign(secret, signed.message_id, signed.timestamp, body).encode()
        valid += sum(hmac.compare_digest(expected, one) for one in given)
    return valid > 0 and _MESSAGE_ID.fullmatch(signed.message_id) is not None


def sent_at(signed: Signed) -> datetime | None:
    """When the message was signed; None for what is no time."""
    if not _SECONDS.fullmatch(signed.timestamp):
        return None
    return datetime.fromtimestamp(int(signed.timestamp), UTC)


def is_fresh(at: datetime | None, now: datetime) -> bool:
    """Inside the window in which a message counts; an older one may be a replay, a later one a wrong clock (F075)."""
    return at is not None and abs(now - at) <= TOLERANCE
