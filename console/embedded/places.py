"""Where everything of one installation lies, worked out from its home folder alone."""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

# The kernel allows 107 bytes for a socket path; the longest name inside the folder is PostgreSQL's.
SOCKET_PATH_LIMIT = 107
LONGEST_SOCKET_NAME = ".s.PGSQL.5432.lock"

DATABASE = "steadyhand"
SUPER_ROLE = "steadyhand_super"
OWNER_ROLE = "steadyhand_owner"
APP_ROLE = "steadyhand_app"


@dataclass(frozen=True)
class Places:
    """The folders and socket addresses of an installation at `home` (absolute)."""

    home: Path

    @property
    def sockets(self) -> Path:
        """Home's own folder if its path is short enough, else a stable short one that only this user enters."""
        inside = self.home / "run"
        if len(str(inside / LONGEST_SOCKET_NAME).encode()) <= SOCKET_PATH_LIMIT:
            return inside
        name = hashlib.sha256(str(self.home).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"steadyhand-{os.getuid()}-{name}"

    @property
    def postgres_data(self) -> Path:
        return self.home / "postgres"

    @property
    def valkey_data(self) -> Path:
        return self.home / "valkey"

    @property
    def valkey_socket(self) -> Path:
        return self.sockets / "valkey.sock"

    @property
    def logs(self) -> Path:
        return self.home / "log"

    @property
    def log_file(self) -> Path:
        return self.logs / "steadyhand.log"

    def ready(self, name: str) -> Path:
        """The file that a process without a port makes once it is at work."""
        return self.sockets / f"{name}.ready"

    @property
    def static(self) -> Path:
        return self.home / "static"

    @property
    def address_note(self) -> Path:
        """Where the last start wrote the address it answers on, for the links that commands print."""
        return self.home / "address"

    def database_url(self, role: str, database: str = DATABASE) -> str:
        return f"postgresql://{role}@/{database}?host={quote(str(self.sockets), safe='')}"

    @property
    def broker_url(self) -> str:
        return f"redis+socket://{self.valkey_socket}"


def at(environ: Mapping[str, str], *, default: Path) -> Places:
    """The places named by STEADYHAND_HOME, or under `default`."""
    return Places(Path(environ.get("STEADYHAND_HOME") or default).expanduser().resolve())
