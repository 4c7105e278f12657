"""What the way in may answer besides its permits: not there, not now, and the shapes that several answers share."""

from __future__ import annotations

import uuid
from datetime import datetime

from steadyhand.contract import RunOpened

from runs import definitions
from runs.definitions import Definition
from runs.ids import parse_id
from runs.models import Run


class NotFound(Exception):
    """There is no such thing for this caller: missing, foreign and malformed ids are one and the same (SEC-09)."""


class Conflict(Exception):
    """The request came too late or crossed another; the message says which, in a sentence."""


def known_id(text: str) -> uuid.UUID:
    """The id in a body. Raises NotFound for text that is no id."""
    found = parse_id(text)
    if found is None:
        raise NotFound
    return found


def reads_of(definition: Definition) -> list[str]:
    return [tool.name for tool in definition.manifest.tools if tool.effect == "read"]


def run_opened(run: Run, *, resumed: bool) -> RunOpened:
    definition = definitions.of_run(run)
    return RunOpened(
        run_id=str(run.pk),
        workflow=definition.name,
        workflow_id=str(definition.id),
        workflow_version=definition.version,
        state=run.state,
        resumed=resumed,
        reads=reads_of(definition),
    )


def seconds_between(start: datetime, end: datetime) -> float:
    """Seconds from one database time to another, never negative."""
    return max(0.0, round((end - start).total_seconds(), 3))
