"""Where a line of the log goes: to the terminal, to the file, or to both.

A one-time link or a mail is for whoever watches the terminal and is kept nowhere. A server's talk about itself is
kept and not shown: on a terminal it looks like an incident.
"""

import os
import re
from typing import NamedTuple

# Set by `up` for its children: their lines pass through it.
SUPERVISED = "STEADYHAND_SUPERVISED"
# No log line of ours can begin with it: control characters are escaped there (SEC-36).
_TERMINAL_ONLY = "\x1e"

_FILE_ONLY = {
    "postgres": re.compile(r"LOG: |FATAL:  terminating .* due to administrator command"),
    "valkey": re.compile(r".* (# (WARNING Memory overcommit|.* ready to exit)|Received SIGTERM scheduling)"),
}


class Line(NamedTuple):
    """A line as it is read, and who gets it."""

    text: str
    to_terminal: bool
    to_file: bool


def private(text: str) -> str:
    """`text` marked so that `up` shows it and keeps it out of the log file; as it is where nobody reads the mark."""
    if os.environ.get(SUPERVISED) != "1":
        return text
    # Only a line feed ends a line for whoever reads it; splitlines knows a dozen others.
    body = text.removesuffix("\n")
    return _TERMINAL_ONLY + body.replace("\n", f"\n{_TERMINAL_ONLY}") + text[len(body) :]


def sort(name: str, line: str) -> Line:
    """Who gets the line that the child `name` wrote."""
    if line.startswith(_TERMINAL_ONLY):
        return Line(line.removeprefix(_TERMINAL_ONLY), to_terminal=True, to_file=False)
    quiet = name in _FILE_ONLY and _FILE_ONLY[name].match(line) is not None
    return Line(line, to_terminal=not quiet, to_file=True)
