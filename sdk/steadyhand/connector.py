"""What a connector written in Python is asked and may answer (entry-point group `steadyhand.connectors`).

A connector is an object with `reconcile`, and where it can do so `execute`, `compensate` and `list_effects`. It asks
the other system once and tells what it saw; what that proves is worked out by Steadyhand (DECISIONS 5). The endpoint
of a host product (connector kind `webhook`) speaks the same words as JSON. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, get_args

from steadyhand.paths import word

GROUP = "steadyhand.connectors"
Verdict = Literal["present", "absent", "partial", "undone", "processing", "conflict", "failed"]
VERDICTS: tuple[str, ...] = get_args(Verdict)
MAX_LISTED = 1000
MAX_COUNT = 1_000_000


@dataclass(frozen=True)
class Ask:
    """One call of a tool: what is to be found out about it, or to be done.

    `action_id` and `key` are what the other system saw of us; `key` is what a repeat carries again. `arguments` are
    the real ones. `tenant` tells apart the accounts of a connector that serves several.
    """

    tool: str
    action_id: str
    run_id: str
    key: str
    arguments: dict[str, Any]
    tenant: str = ""
    attempt: int = 1


@dataclass(frozen=True)
class Answer:
    """What a look-up saw. `failed`: the look-up itself got no answer, which says nothing about the effect. `undone`:
    the effect was there, and was taken back where it stands.

    `count` is the number of effects that carry our reference, None where it cannot be counted. `record` is the effect
    as the other system holds it; the manifest's `match` compares its fields.
    """

    verdict: Verdict
    count: int | None = None
    external_id: str = ""
    record: Any = None
    fact: str = ""


@dataclass(frozen=True)
class Listed:
    """One effect that the other system made in an interval: its id, when, and our reference if it carries one."""

    external_id: str
    at: datetime
    reference: str = ""
    key: str = ""
    record: Any = None


@dataclass(frozen=True)
class Page:
    """A part of a listing. `cursor` asks for the next part; without one the listing is complete."""

    effects: Sequence[Listed] = field(default_factory=tuple)
    cursor: str = ""


class Connector(Protocol):
    """What the worker calls. Only `reconcile` has to be there; an exception is a look-up that failed."""

    def reconcile(self, ask: Ask) -> Answer: ...


class Executing(Protocol):
    def execute(self, ask: Ask) -> Any:
        """Make the call once and return what came back, as a tool would; what is raised is read like a tool's."""


class Compensating(Protocol):
    def compensate(self, ask: Ask) -> Any:
        """Make the undo once; `ask` is the undo's own, with its own key."""


class Listing(Protocol):
    def list_effects(self, since: datetime, until: datetime, cursor: str) -> Page:
        """What was made from `since` up to and without `until`, a page at a time. Raises where it cannot be told."""


class Unclear(ValueError):
    """An answer that is none; the message says what is wrong with it."""


def answer_in(document: Any) -> Answer:
    """The answer in a JSON document of a host product. Raises Unclear."""
    if not isinstance(document, Mapping):
        raise Unclear("the answer is no object")
    return checked(
        Answer(
            verdict=document.get("verdict"),  # type: ignore[arg-type]
            count=document.get("count"),
            external_id=_text(document, "external_id"),
            record=document.get("record"),
            fact=_text(document, "fact"),
        )
    )


def checked(answer: Any) -> Answer:
    """The answer, if its parts fit together: a presence has an id and at least one effect. Raises Unclear."""
    if not isinstance(answer, Answer):
        raise Unclear("a look-up answers with an Answer")
    if answer.verdict not in VERDICTS:
        raise Unclear(f"the verdict is none of {', '.join(VERDICTS)}")
    if not _is_count(answer.count):
        raise Unclear(f"the count is no whole number from zero to {MAX_COUNT}")
    if not isinstance(answer.external_id, str) or not isinstance(answer.fact, str):
        raise Unclear("external_id and fact are text")
    found = answer.verdict in ("present", "partial", "undone")
    if found and not word(answer.external_id):
        raise Unclear(f"the verdict is {answer.verdict} and external_id is empty")
    if found and answer.count == 0:
        raise Unclear(f"the verdict is {answer.verdict} and the count is 0")
    if answer.verdict == "absent" and answer.count:
        raise Unclear("the verdict is absent and the count is not 0")
    return answer


def page_in(document: Any) -> Page:
    """The page of a listing in a JSON document of a host product. Raises Unclear."""
    effects = document.get("effects") if isinstance(document, Mapping) else None
    if not isinstance(effects, list) or not isinstance(document.get("complete", True), bool):
        raise Unclear("the answer has no list of effects")
    cursor = _text(document, "cursor")
    if document.get("complete") is False and not cursor:
        raise Unclear("the listing goes on and names no cursor")
    return checked_page(Page(tuple(_listed(one) for one in effects), cursor))


def checked_page(page: Any) -> Page:
    """The page, if it is one and no longer than agreed. Raises Unclear."""
    if not isinstance(page, Page) or not all(isinstance(one, Listed) for one in page.effects):
        raise Unclear("a listing answers with a Page of Listed")
    if len(page.effects) > MAX_LISTED:
        raise Unclear(f"a page holds at most {MAX_LISTED} effects")
    if not isinstance(page.cursor, str):
        raise Unclear("cursor is text")
    for one in page.effects:
        if not all(isinstance(text, str) for text in (one.external_id, one.reference, one.key)):
            raise Unclear("external_id, reference and key are text")
        if not word(one.external_id) or not isinstance(one.at, datetime) or one.at.tzinfo is None:
            raise Unclear("each effect has an external_id and a time with its zone")
    return page


def moment(text: Any) -> datetime:
    """A time as JSON carries it. Raises Unclear."""
    try:
        at = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        raise Unclear(f"{str(text)[:60]} is no time in ISO 8601") from None
    if at.tzinfo is None:
        raise Unclear(f"{str(text)[:60]} names no time zone")
    return at


def _listed(document: Any) -> Listed:
    if not isinstance(document, Mapping):
        raise Unclear("an effect is no object")
    return Listed(
        external_id=_text(document, "external_id"),
        at=moment(document.get("at")),
        reference=_text(document, "reference"),
        key=_text(document, "key"),
        record=document.get("record"),
    )


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Unclear(f"{name} is text")
    return value


def _is_count(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT)
