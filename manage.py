#!/usr/bin/env python
"""The command line of the project."""

import os
import sys

OURS = {"console", "recovery", "runs"}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    try:
        _run()
    except ModuleNotFoundError as missing:
        # One of our own that is missing is a fault in the code, and its traceback is wanted.
        if (missing.name or "").split(".")[0] in OURS:
            raise
        sys.exit(f"steadyhand: The library {missing.name} is missing: run 'make install'.")


def _run() -> None:
    from django.core.management import execute_from_command_line

    from console.embedded.errors import Trouble

    try:
        execute_from_command_line(sys.argv)
    except Trouble as trouble:
        sys.exit(f"steadyhand: {trouble}")


if __name__ == "__main__":
    main()
