"""Which tasks a bulk operation is about: as an address, in words, and as rows of the visitor's own tenants."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import BooleanField, CharField, F, Func, Q, QuerySet, Value
from django.db.models.functions import Coalesce, JSONObject
from django.http import Http404, QueryDict
from django.utils.dateparse import parse_datetime

from console import filters
from console.access import Visit
from console.builders import causes, words
from console.builders.causes import CAUSE, Cause
from console.narrowing import EVERYTHING, NAMES, Narrow
from recovery.models import BulkItem, HumanTask
from recovery.rules.bulk import MOST_ITEMS
from runs.ids import parse_id

KNOWS = ("verb", "tenant", "view", "cause", "connector", "since", "until", "task", "from", *NAMES)
BEGAN = Coalesce("action__uncertain_since", "opened_at")
"""When a write became unknown; a success that nobody could confirm became doubtful when that was asked."""


class Unreadable(Exception):
    """A part of the address cannot be read; the message names it and says what would be right."""


class Through(Func):
    """Whether a tool's look-ups go through a connector or, where it has none, its calls do."""

    function = "jsonb_path_exists"
    arg_joiner = (
        ", '$.tools[*] ? (@.name == $tool && (@.reconcile.connector == $connector "
        "|| (!exists(@.reconcile.connector) && @.send.connector == $connector)))'::jsonpath, "
    )
    output_field = BooleanField()


@dataclass(frozen=True)
class Selection:
    """A selection as an address says it; every part narrows it, and no part at all means every open task.

    view        a tab of the queue by its name, with its filters (`narrow`); `cause` the key of a cause there
    connector   the name of the connector that the call goes through
    since, until    between which moments the write became unknown
    task        ids that were chosen one by one
    left_of     the operation of which what is not done is taken (`from` in the address)
    """

    tenant: str = ""
    view: str = ""
    cause: str = ""
    connector: str = ""
    since: datetime | None = None
    until: datetime | None = None
    task: tuple[uuid.UUID, ...] = ()
    left_of: uuid.UUID | None = None
    narrow: Narrow = EVERYTHING

    @classmethod
    def read(cls, asked: QueryDict) -> Selection:
        """Raises Unreadable for a time that is none or too many tasks, Http404 for ids and views that are none."""
        chosen = asked.getlist("task")
        if len(chosen) > MOST_ITEMS:
            raise Unreadable(f"task: at most {MOST_ITEMS:,} can be chosen one by one; narrow the list by a filter.")
        filters.queue_view(asked.get("view", ""))
        narrow = Narrow.read(asked)
        if narrow.wrong:
            raise Unreadable("; ".join(narrow.wrong))
        return cls(
            tenant=_text(asked, "tenant"),
            view=_text(asked, "view"),
            cause=_text(asked, "cause")[:12],
            connector=_text(asked, "connector"),
            since=_moment(asked, "since"),
            until=_moment(asked, "until"),
            task=tuple(dict.fromkeys(_id(one) for one in chosen)),
            left_of=_id(asked.get("from", "")) if asked.get("from") else None,
            narrow=narrow,
        )

    @property
    def is_narrow(self) -> bool:
        """Whether anything but the tenant narrows it (U06)."""
        return self.view not in ("", "all") or replace(self, tenant="", view="") != Selection()

    def parts(self) -> list[tuple[str, str]]:
        """What an address or a form carries, in order."""
        told = {
            "tenant": self.tenant, "view": self.view, "cause": self.cause, "connector": self.connector,
            "since": self.since.isoformat() if self.since else "",
            "until": self.until.isoformat() if self.until else "", "from": str(self.left_of or ""),
            **self.narrow.given,
        }  # fmt: skip
        return [*((name, value) for name, value in told.items() if value), *(("task", str(one)) for one in self.task)]

    def address(self, **more: str) -> str:
        """The query string; `more` stands before it."""
        asked = QueryDict(mutable=True)
        for name, value in [*more.items(), *self.parts()]:
            asked.appendlist(name, value)
        return f"?{asked.urlencode()}"

    def tasks(self, visit: Visit) -> QuerySet[HumanTask]:
        """The open tasks of this selection in the tenants that the visit covers."""
        if self.left_of is not None:
            left = BulkItem.objects.filter(operation=self.left_of).exclude(state="done")
            found = filters.open_tasks(visit).filter(pk__in=left.values("task"))
        elif self.task:
            found = filters.open_tasks(visit).filter(pk__among=self.task)
        else:
            found = filters.queue_view(self.view).tasks(visit)
        if self.since is not None or self.until is not None:
            found = self._between(found)
        if self.connector:
            name = JSONObject(tool=F("tool"), connector=Value(self.connector, output_field=CharField()))
            found = found.annotate(through=Through(F("run__workflow__manifest"), name)).filter(through=True)
        found = found.filter(self.narrow.q())
        return found.filter(_of_cause(self.cause_of(visit))) if self.cause else found

    def _between(self, found: QuerySet[HumanTask]) -> QuerySet[HumanTask]:
        """Those that became unknown at `since` or later and before `until`."""
        dated = found.annotate(began=BEGAN)
        dated = dated.filter(began__gte=self.since) if self.since is not None else dated
        return dated.filter(began__lt=self.until) if self.until is not None else dated

    def cause_of(self, visit: Visit) -> Cause | None:
        """The cause behind the key; None where no open task has it any more."""
        found: Cause | None = filters.open_tasks(visit).filter(heap=self.cause).values_list(*CAUSE).first()
        return found

    def words(self, visit: Visit) -> str:
        """The selection as a sentence without its tenant."""
        if self.left_of is not None:
            return "What another operation left: its items that were not done"
        if self.task:
            return f"{words.plural(len(self.task), 'task')} chosen one by one"
        cause = self.cause_of(visit) if self.cause else None
        said = [
            "Every open task" if self.view in ("", "all") else f"“{filters.queue_view(self.view).label}”",
            f"of the cause “{causes.title_of(cause[2], cause[3])}” in {cause[1]}" if cause else "",
            "of a cause that no open task has any more" if self.cause and cause is None else "",
            f"through the connector {self.connector}" if self.connector else "",
            f"that became unknown from {words.moment(self.since, visit.now)}" if self.since else "",
            f"{'' if self.since else 'that became unknown '}before {words.moment(self.until, visit.now)}"
            if self.until else "",
            f"({', '.join(text for text, _ in self.narrow.tokens())})" if self.narrow.given else "",
        ]  # fmt: skip
        return " ".join(filter(None, said))


def _of_cause(cause: Cause | None) -> Q:
    return Q(**dict(zip(CAUSE, cause, strict=True))) if cause is not None else Q(pk__in=[])


def _text(asked: QueryDict, name: str) -> str:
    return asked.get(name, "")[:120].replace("\0", "")


def _id(text: str) -> uuid.UUID:
    found = parse_id(text)
    if found is None:
        raise Http404
    return found


def _moment(asked: QueryDict, name: str) -> datetime | None:
    text = asked.get(name, "").replace(" ", "+")
    if not text:
        return None
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise Unreadable(f"{name}: write a moment with its offset, as 2026-03-14T10:02:00+00:00.")
    return found
