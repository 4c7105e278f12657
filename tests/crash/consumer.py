"""A consumer of the events feed as a host product runs one: it acts on what ended, and keeps its place in a file.

What it has acted on is a file named by the event, made with what it does: an event that comes again finds it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from steadyhand import Boundary


def main(url: str, home: str, die: str) -> None:
    place, inbox = Path(home) / "place", Path(home) / "inbox"
    inbox.mkdir(exist_ok=True)
    with Boundary(url, os.environ["AGENT_TOKEN"]) as boundary:
        while True:
            page = boundary.events(after=place.read_text() if place.exists() else None, limit=500)
            for event in page.items:
                act(inbox, event.id, event.run_id, event.kind)
            if die:
                os.kill(os.getpid(), signal.SIGKILL)
            if not page.items:
                return
            place.write_text(page.next or "")


def act(inbox: Path, event_id: str, run_id: str, kind: str) -> None:
    """Once for each event: whatever comes a second time is told by its id."""
    try:
        with (inbox / event_id).open("x") as done:
            done.write(f"{run_id} {kind}")
    except FileExistsError:
        with (inbox.parent / "again").open("a") as again:
            again.write(f"{event_id}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "")
