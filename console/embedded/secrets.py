"""Where the secrets live: taken from the environment or a file, generated once at home, never defaulted."""

import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.fernet import Fernet

from console.embedded.errors import Trouble


@dataclass(frozen=True)
class Secrets:
    """`sealing_keys` are Fernet keys, newest first; the others are opaque text."""

    secret_key: str
    sealing_keys: tuple[str, ...]
    token_pepper: str


MAKERS: dict[str, Callable[[], str]] = {
    "secret_key": lambda: secrets.token_urlsafe(64),
    "sealing_keys": lambda: Fernet.generate_key().decode(),
    "token_pepper": lambda: secrets.token_urlsafe(48),
}


def load(*, home: Path, environ: Mapping[str, str], generate: bool) -> Secrets:
    """Read every secret; make the missing ones only if `generate`, else raise Trouble (SEC-37)."""
    values = {name: _value(name, home=home, environ=environ, generate=generate) for name in MAKERS}
    return Secrets(
        secret_key=values["secret_key"],
        sealing_keys=tuple(values["sealing_keys"].split()),
        token_pepper=values["token_pepper"],
    )


def create(home: Path) -> list[Path]:
    """Make the secrets that are missing under `home`; give back the files written."""
    paths = [_path(home, name) for name in MAKERS]
    missing = [path for path in paths if not path.exists()]
    for path in missing:
        _write_once(path, MAKERS[path.name]())
    return missing


def _value(name: str, *, home: Path, environ: Mapping[str, str], generate: bool) -> str:
    variable = f"STEADYHAND_{name.upper()}"
    path = _path(home, name)
    if environ.get(variable):
        return environ[variable]
    if generate and not path.exists():
        _write_once(path, MAKERS[name]())
    value = _read(path)
    if not value:
        raise Trouble(
            f"The secret {name} is missing: set {variable}, or run "
            f"'python -m console.embedded.secrets {home}' once and keep what it writes."
        )
    return value


def _path(home: Path, name: str) -> Path:
    return home / "secrets" / name


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return ""
    except PermissionError as error:
        raise Trouble(f"The secret in {path} cannot be read: give its file to the user who starts this.") from error


def _write_once(path: Path, value: str) -> None:
    """Two processes may start at once: the link is atomic, and the one who comes second keeps the first's."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(value + "\n")
        try:
            os.link(draft, path)
        except FileExistsError:
            return
        finally:
            draft.unlink()
    except OSError as error:
        raise Trouble(
            f"Secrets cannot be written to {path.parent}: set STEADYHAND_HOME to a folder you own."
        ) from error


if __name__ == "__main__":
    for written in create(Path(sys.argv[1] if len(sys.argv) > 1 else "var")):
        sys.stdout.write(f"{written}\n")
