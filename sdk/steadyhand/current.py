"""The run whose block this code is in: decorated tools find it here."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

current: ContextVar[Any] = ContextVar("steadyhand_run", default=None)
