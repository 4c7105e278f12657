"""A package with a connector, installed for one test: real metadata on the path, found as any other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from recovery.connectors import python


@contextmanager
def installed(folder: Path, name: str, connector: Any) -> Iterator[None]:
    """Offer `connector` under `name` in the group `steadyhand.connectors`."""
    module = ModuleType("connectors_of_this_test")
    module.made = connector  # type: ignore[attr-defined]
    info = folder / "connectors_of_this_test-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: connectors-of-this-test\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[steadyhand.connectors]\n{name} = {module.__name__}:made\n")
    sys.path.insert(0, str(folder))
    sys.modules[module.__name__] = module
    python._object.cache_clear()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        del sys.modules[module.__name__]
        python._object.cache_clear()
        python._running.clear()
