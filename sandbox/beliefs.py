"""What Steadyhand believes, fetched from it by the server, and whether the world agrees."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

TIMEOUT_SECONDS = 1.5
MAX_BYTES = 1024 * 1024
MAX_ITEMS = 500
FRESH_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One look at Steadyhand: the beliefs by reference, or why there are none."""

    items: dict[str, dict[str, Any]]
    problem: str
    checked_at: float


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether world and belief agree; ``tone`` is ``ok``, ``unk``, ``bad`` or ``idle``."""

    words: str
    tone: str
    why: str


class _NoRedirect(HTTPRedirectHandler):
    """A token never follows a redirect to another place."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class Beliefs:
    """Asks at most once a second, however many people look at the page."""

    def __init__(self, url: str = "", *, token_file: Path | None = None, steadyhand: str = "") -> None:
        self.url = url
        self.steadyhand = steadyhand
        self._token_file = token_file
        self._lock = threading.Lock()
        self._last: Asked | None = None
        self._opener = build_opener(ProxyHandler({}), _NoRedirect())

    def ask(self) -> Asked:
        """The newest answer, never older than a second; a failure is an answer too."""
        with self._lock:
            if self._last is None or not 0 <= time.time() - self._last.checked_at < FRESH_SECONDS:
                self._last = self._fetch()
            return self._last

    def _fetch(self) -> Asked:
        if not self.url:
            return Asked(items={}, problem="No address of Steadyhand was given.", checked_at=time.time())
        try:
            return Asked(items=self._read(), problem="", checked_at=time.time())
        except (OSError, URLError, ValueError, RecursionError) as error:
            return Asked(items={}, problem=str(error) or type(error).__name__, checked_at=time.time())

    def _read(self) -> dict[str, dict[str, Any]]:
        headers = {"Accept": "application/json"}
        if self._token_file is not None:
            headers["Authorization"] = f"Bearer {self._token_file.read_text().strip()}"
        request = Request(self.url, headers=headers)  # noqa: S310 - the command line takes only http(s)
        with self._opener.open(request, timeout=TIMEOUT_SECONDS) as reply:
            raw = reply.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ValueError("the answer is too long")
        return read_items(json.loads(raw))


def read_items(value: Any) -> dict[str, dict[str, Any]]:
    """Beliefs by reference out of ``{"items": [{"reference": …}]}``; ``ValueError`` otherwise."""
    items = value.get("items") if isinstance(value, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError("the answer is not a list of beliefs")
    return {str(item.get("reference", "")): item for item in items[:MAX_ITEMS]}


def judge(belief: dict[str, Any] | None, *, reachable: bool, effects: int, pending: int) -> Verdict:
    """Hold a belief against the world; only a settled belief can agree."""
    if not reachable:
        return Verdict(words="Not checked", tone="idle", why="Steadyhand could not be asked.")
    if belief is None:
        if effects:
            return Verdict(words="Does not agree", tone="bad", why="Steadyhand does not know of this effect.")
        return Verdict(words="Not settled", tone="unk", why="Steadyhand does not know this reference yet.")
    if belief.get("effect") == "proven":
        return _judge_proven(effects, pending)
    if belief.get("effect") == "none":
        if effects or pending:
            return Verdict(words="Does not agree", tone="bad", why="Believed without effect; the world changed.")
        return Verdict(words="Agrees", tone="ok", why="Nothing changed, and Steadyhand says so.")
    return Verdict(words="Not settled", tone="unk", why="Steadyhand says that it does not know yet.")


def _judge_proven(effects: int, pending: int) -> Verdict:
    if effects == 1 and pending == 0:
        return Verdict(words="Agrees", tone="ok", why="One effect in the world, and it is proven.")
    if effects == 1:
        return Verdict(words="Not settled", tone="unk", why="Another commit is still under way.")
    found = "no effect" if effects == 0 else f"{effects} effects"
    return Verdict(words="Does not agree", tone="bad", why=f"Believed proven once; the world has {found}.")
