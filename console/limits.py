"""How often somebody without an account may knock: counted by address, in the cache of all processes (SEC-18)."""

from __future__ import annotations

import hashlib
import time

from allauth.account.adapter import get_adapter
from django.core.cache import cache
from django.http import HttpRequest

WINDOW_SECONDS = 60


def within(request: HttpRequest, name: str, *, most: int) -> bool:
    """Count one request of this address; whether it is within `most` in the current minute."""
    address = str(get_adapter(request).get_client_ip(request))
    window = int(time.time()) // WINDOW_SECONDS
    digest = hashlib.sha256(f"{name}\0{address}\0{window}".encode()).hexdigest()
    key = f"limit:{digest}"
    try:
        return bool(cache.incr(key) <= most)
    except ValueError:
        cache.add(key, 1, timeout=2 * WINDOW_SECONDS)  # the first of its window; where two come first, one is counted
        return most > 0
