"""A way to PostgreSQL that can lose an answer after the server has done what it was asked (F062)."""

from __future__ import annotations

import select
import socket
import threading
from pathlib import Path

SOCKET = ".s.PGSQL.5432"


class LossyWay:
    """Passes bytes both ways between clients and a server's socket, until it is told to lose the next answer."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.folder = folder
        self.lost = 0
        self._lose_next = False
        self._server = server
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / SOCKET))
        self._door.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_the_next_answer(self) -> None:
        self._lose_next = True

    def close(self) -> None:
        self._door.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self._server / SOCKET))
            while True:
                ready, _, _ = select.select([client, server], [], [])
                for one in ready:
                    data = one.recv(65536)
                    if not data or (one is server and self._loses()):
                        return
                    (server if one is client else client).sendall(data)

    def _loses(self) -> bool:
        """The answer is here, so what was asked is committed; the client never hears of it."""
        if not self._lose_next:
            return False
        self._lose_next = False
        self.lost += 1
        return True
