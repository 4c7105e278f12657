"""A turn of the model whose most is reserved before it begins."""

from __future__ import annotations

from typing import Any, TypedDict

from steadyhand import observe
from steadyhand.contract import Turn, Usage


class Most(TypedDict, total=False):
    """The most that a turn may use."""

    max_input_tokens: int
    max_output_tokens: int
    max_cost_minor: int


class ModelTurn:
    """Filled in while the turn lasts. What stays unsaid is unknown, and unknown is not zero (F104)."""

    def __init__(self, most: Most) -> None:
        self._most = Usage.model_validate({name.removeprefix("max_"): number for name, number in most.items()})
        self._used: dict[str, Any] = {}
        self._text: str | None = None

    def used(self, *, text: str | None = None, **numbers: int) -> None:
        """What the model used: `input_tokens`, `output_tokens`, `cost_minor`; and what it said, if that is kept."""
        self._used.update(Usage.model_validate(numbers).model_dump(exclude_none=True))
        self._text = self._text if text is None else observe.clean(text, 2000)

    def begun(self) -> Turn:
        return Turn(phase="begin", usage=self._most)

    def ended(self) -> Turn:
        return Turn(phase="end", usage=Usage.model_validate(self._used), text=self._text)
