"""Replacements in the code for as long as a simulation runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

ROOMS = ("runs.", "recovery.", "steadyhand.")
_ABSENT = object()


class Patches:
    """Replacements that can be taken back, the last one first."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of a module or class that has it; what was renamed would go on unseen."""
        if not hasattr(owner, name):
            raise AttributeError(f"{owner!r} has no {name} that could be stood in for")
        held = vars(owner)
        before = held.get(name, _ABSENT)
        setattr(owner, name, value)
        self._undo.append(lambda: delattr(owner, name) if before is _ABSENT else setattr(owner, name, before))

    def entry(self, owner: dict[str, Any], name: str, value: Any) -> None:
        before = owner.get(name, _ABSENT)
        owner[name] = value
        self._undo.append(lambda: owner.pop(name) if before is _ABSENT else owner.update({name: before}))

    def everywhere(self, original: Any, value: Any) -> None:
        """Replace a function wherever a module of the product holds it by name."""
        for module_name, module in list(sys.modules.items()):
            if module_name.startswith(ROOMS) and module is not None:
                for name, held in list(vars(module).items()):
                    if held is original:
                        self.attribute(module, name, value)

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()
