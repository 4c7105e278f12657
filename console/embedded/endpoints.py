"""Where the demo's outside world listens: the first start decides, for manifests keep its address."""

import json
from pathlib import Path

from console.embedded import startup
from console.embedded.errors import Trouble
from console.embedded.places import Places

REMEMBERED = 8


def choose(where: Places, *, asked: int | None, web: int) -> tuple[int, ...]:
    """The sandbox's port, then every earlier one; the first start's stays the usual one. Trouble if it is taken."""
    note = where.home / "demo" / "sandbox-ports.json"
    known = _read(note)
    port = asked or (known[0] if known else web + 1)
    if port == web:
        raise Trouble(f"Port {web} is the sandbox's: choose another with {startup.WEB_PORT}.")
    startup.check_free(port, option=startup.SANDBOX_PORT)
    kept = known if port in known else [*known, port]
    # The usual one stays whatever came after it.
    _write(note, [kept[0], *kept[1:][-(REMEMBERED - 1) :]])
    return (port, *(other for other in kept if other != port))


def _read(note: Path) -> list[int]:
    try:
        found = json.loads(note.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return []
    return [port for port in found if isinstance(port, int) and 0 < port < 65536] if isinstance(found, list) else []


def _write(note: Path, ports: list[int]) -> None:
    note.parent.mkdir(mode=0o700, exist_ok=True)
    draft = note.with_suffix(".new")
    draft.write_text(json.dumps(ports))
    draft.replace(note)
