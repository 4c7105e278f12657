"""A bare socket beside httpx: it tells a reset from an orderly close, and keeps half a reply."""

import json
import socket
from dataclasses import dataclass
from typing import Any

CREDIT = {"account": "AC-1", "invoice": "INV-7", "amount_minor": 4200, "currency": "EUR"}


@dataclass
class Ended:
    """The bytes that came, and how the connection ended: ``fin``, ``rst`` or ``silence``."""

    raw: bytes
    how: str

    @property
    def status(self) -> int:
        return int(self.raw.split(b" ", 2)[1])

    @property
    def head(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[0]

    @property
    def body(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[2]


def request_bytes(method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> bytes:
    raw = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: sandbox", "Content-Type: application/json"]
    lines += [f"Content-Length: {len(raw)}", *(f"{name}: {value}" for name, value in (headers or {}).items())]
    return "\r\n".join([*lines, "", ""]).encode() + raw


def send(port: int, raw: bytes, *, timeout: float = 5.0, half_close: bool = False) -> Ended:
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        connection.sendall(raw)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        try:
            while more := connection.recv(65536):
                got += more
        except ConnectionResetError:
            return Ended(got, "rst")
        except TimeoutError:
            return Ended(got, "silence")
    return Ended(got, "fin")


def post_credit(port: int, *, timeout: float = 5.0, **headers: str) -> Ended:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return send(port, request_bytes("POST", "/payments/credits", CREDIT, named), timeout=timeout)
