"""The line to the outside: one request at a time, no redirects, no proxies from the environment, a deadline.

A client lives for one request, so that nothing of one tenant's connection is left for the next. The certificates that
it trusts are read once: reading them takes longer than most look-ups.
"""

from __future__ import annotations

import ssl
from functools import cache

import httpx


def client(timeout_seconds: float) -> httpx.Client:
    return httpx.Client(follow_redirects=False, trust_env=False, timeout=timeout_seconds, verify=_trusted())


@cache
def _trusted() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)
