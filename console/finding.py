"""What a search looks for: every form that a text may be, each by an index, all of them in one statement."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import BooleanField, CharField, Model, Q, QuerySet, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast
from django.http import QueryDict

from console.access import Visit
from recovery.models import DeadLetter, Decision, HumanTask
from runs.ids import parse_id
from runs.models import Action, AgentClient, Effect, Run

MOST_CHARS = 200
MOST = 20
"""How many of a kind are listed; one more is fetched, to know that there are more."""
SHORTEST_PREFIX = 8
TASK_NUMBER = re.compile(r"(#|[Tt]-?)?(\d{1,15})")
ACTION_ID = re.compile(r"[0-9a-fA-F]{40}")
HEX = re.compile(r"[0-9a-fA-F-]+")
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Hit:
    """One row that fits: its kind (run, task, call, letter or decision), its id, and by what it was found."""

    kind: str
    id: uuid.UUID
    why: str


@dataclass(frozen=True)
class Sought:
    """A text as somebody typed or pasted it, on one line and cut at MOST_CHARS."""

    text: str

    @classmethod
    def read(cls, asked: QueryDict) -> Sought:
        return cls(" ".join(asked.get("q", "").replace("\0", " ").split())[:MOST_CHARS])

    @property
    def id(self) -> uuid.UUID | None:
        return parse_id(self.text)

    @property
    def number(self) -> int | None:
        """The number of a task: T-12, #12 or 12."""
        found = TASK_NUMBER.fullmatch(self.text)
        return int(found[2]) if found else None

    @property
    def names_one(self) -> bool:
        """Whether the text is the whole id of one thing, and nothing that is merely found in others."""
        numbered = self.number is not None and not self.text.isdigit()
        return numbered or self.id is not None or ACTION_ID.fullmatch(self.text) is not None

    @property
    def words(self) -> list[str]:
        return WORD.findall(self.text)

    @property
    def started_id(self) -> tuple[uuid.UUID, uuid.UUID] | None:
        """The first and the last id that begin with this text, where it is long enough and not whole."""
        digits = self.text.replace("-", "")
        if self.id is not None or not HEX.fullmatch(self.text) or not SHORTEST_PREFIX <= len(digits) < 32:
            return None
        return uuid.UUID(digits.ljust(32, "0")), uuid.UUID(digits.ljust(32, "f"))


def hits(visit: Visit, sought: Sought) -> list[Hit]:
    """All that fits among the tenants in view, at most MOST + 1 of a form; each row once, by its first form."""
    if not sought.text:
        return []
    first, *others = [
        _named(rows.filter(tenant_id__in=visit.scope), kind, key, why)
        for kind, key, why, rows in _forms(visit, sought)
    ]
    found: dict[tuple[str, uuid.UUID], Hit] = {}
    for kind, pk, why in first.union(*others, all=True):
        found.setdefault((kind, pk), Hit(kind, pk, why))
    return list(found.values())


def _named(rows: QuerySet, kind: str, key: str, why: str) -> QuerySet:
    """Newest first, by the id as text: by the id itself PostgreSQL would rather walk all rows than sort the few."""
    text = CharField()
    named: QuerySet = (
        rows.order_by(Cast("pk", text).desc())
        .annotate(a_kind=Value(kind, output_field=text), a_key=Cast(key, rows.model._meta.pk), a_why=Value(why, text))
        .values_list("a_kind", "a_key", "a_why")
    )
    return named[: MOST + 1]


def _forms(visit: Visit, sought: Sought) -> Iterator[tuple[str, str, str, QuerySet]]:
    """Kind, column of its id, what it was found by, rows."""
    text = sought.text
    if sought.id is not None:
        by_id: list[tuple[str, type[Model]]] = [
            ("run", Run), ("task", HumanTask), ("letter", DeadLetter), ("decision", Decision)
        ]  # fmt: skip
        yield from ((kind, "pk", "id", model._default_manager.filter(pk=sought.id)) for kind, model in by_id)
    if sought.started_id is not None:
        yield "run", "pk", "beginning of its id", Run.objects.filter(pk__range=sought.started_id)
    if sought.number is not None:
        yield "task", "pk", "number", HumanTask.objects.filter(number=sought.number)
    if ACTION_ID.fullmatch(text):
        yield "call", "pk", "action id", Action.objects.filter(action_id=text.lower())
    clients = AgentClient.objects.filter(tenant_id__in=visit.scope).values("pk")
    yield "run", "pk", "the agent's own name for it", Run.objects.filter(client_ref=text, client_id__in=clients)
    yield "run", "pk", "customer reference", Run.objects.filter(customer_ref=text)
    yield "call", "action_id", "external id", Effect.objects.filter(external_id=text)
    unproven = Q(external_id=text, settled_at__isnull=True)
    yield "call", "pk", "external id, not proven yet", Action.objects.filter(unproven)
    if sought.words:
        yield "run", "pk", "intent", Run.objects.filter(_saying(visit, text))


def _saying(visit: Visit, text: str) -> RawSQL:
    """Whether a run's intent has these words or begins of words (runs/migrations/0014); asked once for all runs."""
    sql = "runs_run.id = ANY (ARRAY(SELECT app_runs_saying(%s, %s, %s)))"
    return RawSQL(sql, [text, visit.scope, MOST + 1], BooleanField())  # noqa: S611
