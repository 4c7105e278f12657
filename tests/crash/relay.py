"""Makes servers that listen on a unix socket reachable by an address: `address:port=socket` for each of them."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading

CHUNK = 65536


def serve(address: str, path: str) -> None:
    host, _, port = address.rpartition(":")
    with socket.create_server((host, int(port))) as door:
        while True:
            client, _ = door.accept()
            threading.Thread(target=join, args=(client, path), daemon=True).start()


def join(client: socket.socket, path: str) -> None:
    with client, socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        back = threading.Thread(target=carry, args=(server, client), daemon=True)
        back.start()
        carry(client, server)
        back.join()


def carry(source: socket.socket, target: socket.socket) -> None:
    """Until one side has said its last; the other is told so."""
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    for line in (source, target):
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    servers = [threading.Thread(target=serve, args=pair.split("=", 1)) for pair in sys.argv[1:]]
    for server in servers:
        server.start()
