"""``python -m sandbox``: start the outside world, print its address, serve until told to stop."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path

from sandbox.beliefs import Beliefs
from sandbox.server import Server
from sandbox.store import InUse


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line; a wrong one ends with a sentence and status 2."""
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=_port, default=0, help="port; 0 takes a free one")
    parser.add_argument("--data", type=Path, required=True, help="directory of the ledger")
    parser.add_argument("--ready-file", type=Path, help="file that gets the address once calls are accepted")
    parser.add_argument("--steadyhand", type=_url, help="address of the console, for a link")
    parser.add_argument("--beliefs", type=_url, help="where Steadyhand lists what it believes")
    parser.add_argument("--beliefs-token", type=Path, help="file with the bearer token for --beliefs")
    parser.add_argument("--parent", type=int, help="stop when this process is no longer our parent")
    return parser.parse_args(arguments)


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) <= 65535):
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return int(text)


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError("an address begins with http:// or https://")
    return text


def main(arguments: list[str] | None = None) -> int:
    """0 after a clean stop, 2 when it cannot start."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    if options.ready_file:
        options.ready_file.unlink(missing_ok=True)
    beliefs = Beliefs(options.beliefs or "", token_file=options.beliefs_token, steadyhand=options.steadyhand or "")
    try:
        server = Server((options.host, options.port), data=options.data, beliefs=beliefs)
    except InUse as error:
        print(f"{error} Stop it, or give another --data.", file=sys.stderr)
        return 2
    except (OSError, OverflowError) as error:
        print(f"Cannot start at {options.host}:{options.port} with {options.data}: {error}.", file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    if options.parent:
        threading.Thread(target=_watch, args=(options.parent, server), daemon=True).start()
    _announce(server.url, options.ready_file)
    server.run()
    return 0


def _announce(url: str, ready_file: Path | None) -> None:
    """The socket listens already, so whoever reads the address may call."""
    if ready_file:
        fresh = ready_file.with_name(ready_file.name + ".new")
        fresh.write_text(url + "\n")
        fresh.replace(ready_file)
    print(f"sandbox ready at {url}", flush=True)


def _watch(parent: int, server: Server) -> None:
    while os.getppid() == parent:
        if server.stopping.wait(0.5):
            return
    server.stop()


if __name__ == "__main__":
    sys.exit(main())
