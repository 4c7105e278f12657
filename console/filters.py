"""Which rows a list shows: one object per list gives the rows, the tabs, their counts and the addresses."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, IntegerField, OuterRef, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce, JSONObject
from django.http import Http404, QueryDict
from django.urls import reverse

from console import looks
from console import newest as newest_rows
from console.access import Visit
from console.narrowing import Narrow
from console.pages.common import Flash, Link
from recovery import offers
from recovery.letters import ENDED
from recovery.models import BulkOperation, DeadLetter, HumanTask
from recovery.totals import CauseTotal
from runs.ids import parse_id
from runs.models import Action, Circuit, Person, Run, Stop, Tenant
from runs.states import RUN_OPEN, TASK_OPEN

CAP = 1000
MOST_NAMED = 5
QUEUE_KNOWS = ("view", "tenant", "open", "after", "beyond", "saved")
LETTERS_KNOW = ("view", "tenant", "before")
RUNS_KNOW = ("q", "state", "outcome", "workflow", "tenant", "before")
TASK_NUMBER = re.compile(r"[Tt]-(\d{1,15})")
ACTION_ID = re.compile(r"[0-9a-f]{40}")
WAITS_FOR_APPROVAL = Q(reason_code="approval_required") | Q(state="awaiting_approval")
RUNNING: dict[str, Any] = {"paused_at__isnull": True, "breached_at__isnull": True}
"""Tasks whose clock runs and has not run out."""
BREACHED = Q(breached_at__isnull=False)
UNKNOWN_REASONS = ("external_outcome_unknown", "postcondition_unproven")
UNKNOWN, LETTERS, UNDOS = Q(reason_code__in=UNKNOWN_REASONS), Q(kind="dead_letter"), Q(kind="compensation")
FREE = Q(state__in=("open", "reopened"), owner__isnull=True)


class CappedCount(Subquery):
    """How many rows there are, counted no further than needed to say "1000+"."""

    template = "(SELECT count(*) FROM (%(subquery)s) AS capped)"
    output_field = IntegerField()

    def __init__(self, rows: QuerySet[Any]) -> None:
        super().__init__(rows.order_by().values("pk")[: CAP + 1])


def capped(count: int) -> str:
    """A count as it is printed; empty where there is no work."""
    return f"{CAP}+" if count > CAP else str(count or "")


def query(**parameters: object) -> str:
    """A query string of what is set; "?" alone where nothing is."""
    return "?" + urlencode({name: value for name, value in parameters.items() if value})


@dataclass(frozen=True)
class QueueView:
    """One tab of the queue. What is snoozed stands in its own tab and in no other.

    totals      which of the kept totals it adds up (recovery.totals.CauseTotal); none for one read row by row.
    rows        the part that is not in the totals because it follows the clock or a person, soonest first.
    marked      the tasks behind those totals, apart by the index that finds them; each with its only reason, if any.
    """

    name: str
    label: str
    narrow: Callable[[Visit], Q]
    totals: Q | None = None
    rows: Callable[[Visit], Q] | None = None
    rows_by: str = "due_at"
    marked: tuple[tuple[Q, str], ...] = ((Q(), ""),)

    def tasks(self, visit: Visit) -> QuerySet[HumanTask]:
        """The open tasks of this tab, of the tenants that the visit covers."""
        return self._awake(visit).filter(self.narrow(visit))

    def by_cause(self, visit: Visit) -> list[tuple[QuerySet[HumanTask], str]]:
        """The same for a tab with totals, one list for each index; with the only reason that it is about, if any."""
        return [(self._awake(visit).filter(which), reason) for which, reason in self.marked]

    def row_by_row(self, visit: Visit) -> QuerySet[HumanTask]:
        """The tasks that no total counts."""
        awake = self._awake(visit)
        return awake.filter(self.rows(visit)).order_by(self.rows_by) if self.rows else awake.none()

    def with_filters(self, narrow: Narrow) -> QueueView:
        """This tab with filters on it; read row by row where a filter is about more than totals know."""
        asked = narrow.q()
        narrowed = replace(self, narrow=lambda visit: self.narrow(visit) & asked)
        if self.totals is None or not narrow.of_totals:
            return replace(narrowed, totals=None, rows=narrowed.narrow)
        marked = tuple((which & asked, reason) for which, reason in self.marked)
        rows, own = self.rows, self.rows
        if own is not None:
            rows = lambda visit: own(visit) & asked  # noqa: E731
        return replace(narrowed, totals=self.totals & asked, rows=rows, marked=marked)

    def summed(self) -> Q:
        """The totals of this tab."""
        return (self.totals or Q()) & Q(asleep=self.name == "snoozed")

    def _awake(self, visit: Visit) -> QuerySet[HumanTask]:
        return open_tasks(visit).filter(snoozed_until__isnull=self.name != "snoozed")


def _mine(visit: Visit) -> Q:
    return Q(state="claimed", claimed_by=visit.person) | Q(owner=visit.person)


def _offered(visit: Visit) -> Q:
    return Q(Exists(offers.to(visit.person, visit.now)))


def _soon(visit: Visit) -> Q:
    return Q(soon_at__lte=visit.now, due_at__gt=visit.now, **RUNNING)


def _unmarked(visit: Visit) -> Q:
    """Past their time, and not found so by the sweep yet."""
    return Q(due_at__lte=visit.now, **RUNNING)


QUEUE_VIEWS = (
    QueueView("all", "All", lambda visit: Q(), Q()),
    QueueView("mine", "Mine", _mine, rows=_mine),
    QueueView("offered", "Offered to me", _offered, rows=_offered),
    QueueView(
        "unowned",
        "Unowned",
        lambda visit: FREE,
        Q(free=True),
        marked=((FREE, ""),),
    ),
    QueueView("unknown", "Unknown writes", lambda visit: UNKNOWN, UNKNOWN),
    QueueView(
        "approval",
        "Waiting for approval",
        lambda visit: WAITS_FOR_APPROVAL,
        Q(reason_code="approval_required") | Q(asked=True),
        marked=((Q(), "approval_required"), (Q(state="awaiting_approval"), "")),
    ),
    QueueView("letters", "Dead letters", lambda visit: LETTERS, LETTERS, marked=((LETTERS, ""),)),
    QueueView("soon", "Due soon", _soon, rows=_soon, rows_by="soon_at"),
    QueueView(
        "breaching",
        "Breaching",
        lambda visit: BREACHED | _unmarked(visit),
        Q(late=True),
        _unmarked,
        marked=((BREACHED, ""),),
    ),
    QueueView("failed", "Compensation failed", lambda visit: UNDOS, UNDOS, marked=((UNDOS, ""),)),
    QueueView("snoozed", "Snoozed", lambda visit: Q(), Q()),
)


def open_tasks(visit: Visit) -> QuerySet[HumanTask]:
    """The open tasks of the tenants that this visit covers."""
    return HumanTask.objects.filter(tenant_id__in=visit.scope, state__in=TASK_OPEN)


def queue_view(name: str) -> QueueView:
    """The tab of that name; Http404 for one that does not exist."""
    found = next((view for view in QUEUE_VIEWS if view.name == (name or "all")), None)
    if found is None:
        raise Http404
    return found


def standing_stops(visit: Visit) -> QuerySet[Stop]:
    lasting = Q(until__isnull=True) | Q(until__gt=visit.now)
    return Stop.objects.filter(lasting, tenant_id__in=visit.scope, lifted_at__isnull=True)


def stops_notice(visit: Visit, count: int) -> list[Flash]:
    """While something is stopped, the queue says so: what waits behind a switch opens no task."""
    if not count:
        return []
    title = "1 stop switch stands." if count == 1 else f"{capped(count)} stop switches stand."
    where = Link("Open the stops", reverse("stops") + query(tenant=visit.chosen.slug if visit.chosen else ""))
    return [Flash(looks.NOTICE["moved"], title, "Calls behind it do not leave, and open no task here.", action=where)]


class Counts(dict[str, int]):
    """How many there are of what the frame and the tabs count; `newest` is the id of the task that came last."""

    newest: str = ""


def counts(visit: Visit) -> Counts:
    """How many open tasks each tab holds, how many switches stand, circuits are not closed and letters are open; in
    one statement. What is not in the totals is counted no further than it is printed."""
    counted = {view.name: CappedCount(view.row_by_row(visit)) for view in QUEUE_VIEWS if view.rows is not None}
    counted["stops"] = CappedCount(standing_stops(visit))
    counted["circuits"] = CappedCount(Circuit.objects.filter(~Q(state="closed"), tenant_id__in=visit.scope))
    unended = BulkOperation.objects.filter(tenant_id__in=visit.scope, ended_at__isnull=True)
    counted["bulk"] = CappedCount(unended)
    counted["dead_letters"] = CappedCount(LetterFilter().rows(visit))
    mine = Person.objects.filter(pk=visit.person.pk)
    row: dict[str, Any] = dict(mine.values(kept=_kept(visit), last=ArraySubquery(_last(visit)), **counted).get())
    kept, last = row.pop("kept") or {}, row.pop("last")
    found = Counts({name: int(kept.get(name) or 0) + (row.get(name) or 0) for name in {**kept, **row}})
    found.newest = _latest(last or [])
    return found


def _kept(visit: Visit) -> Coalesce:
    """The tabs that the totals count, as one document."""
    summed = {view.name: Sum("n", filter=view.summed()) for view in QUEUE_VIEWS if view.totals is not None}
    rows = CauseTotal.objects.filter(tenant_id__in=visit.scope).annotate(together=Value(1)).values("together")
    nothing = {name: Value(0) for name in summed}
    return Coalesce(Subquery(rows.annotate(told=JSONObject(**summed)).values("told")), JSONObject(**nothing))


def newest(visit: Visit) -> str:
    """The id of the open task that came last; empty where there is none."""
    return _latest(list(_last(visit)))


def _last(visit: Visit) -> QuerySet[Tenant, Any]:
    """The last task of each tenant: one look at an index for each."""
    last = HumanTask.objects.filter(tenant=OuterRef("pk"), state__in=TASK_OPEN).order_by("-pk").values("pk")[:1]
    return Tenant.objects.filter(pk__in=visit.scope).values_list(Subquery(last), flat=True)


def _latest(found: list[uuid.UUID | None]) -> str:
    return max((str(task_id) for task_id in found if task_id), default="")


def fresh(visit: Visit, view: QueueView, mark: uuid.UUID) -> int:
    """How many tasks of a tab came after the one with this id, of the first CAP + 1 that came at all."""
    came = open_tasks(visit).filter(pk__gt=mark).values("pk")[: CAP + 1]
    return view.tasks(visit).filter(pk__in=came).count()


def unread(asked: QueryDict, known: tuple[str, ...]) -> list[Flash]:
    """A notice that names what an address asks for and this list does not know: nothing is ignored silently."""
    odd = sorted(name for name in asked if name not in known)[:MOST_NAMED]
    if not odd:
        return []
    named = ", ".join("`" + name[:40].replace("`", "'").replace("\0", "") + "`" for name in odd)
    title = "A part of this address was not used."
    return [Flash(looks.NOTICE["info"], title, f"This list does not know {named}. It knows {', '.join(known)}.")]


@dataclass(frozen=True)
class RunFilter:
    """The list of runs as its address says it. `before` is the id that the page begins under, `q` what is looked up:
    a run id, an action id, a task's number or a customer reference, in full."""

    state: str = ""
    outcome: str = ""
    workflow: str = ""
    q: str = ""
    before: uuid.UUID | None = None

    @classmethod
    def read(cls, asked: QueryDict) -> RunFilter:
        """Http404 for a page mark that is no id; other unknown values match nothing."""
        mark = asked.get("before", "")
        before = parse_id(mark) if mark else None
        if mark and before is None:
            raise Http404
        words = {name: asked.get(name, "")[:80].replace("\0", "") for name in ("state", "outcome", "workflow")}
        q = asked.get("q", "").replace("\0", "").strip()[:200]
        return cls(before=before, q=q, **words)

    def rows(self, visit: Visit) -> QuerySet[Run]:
        """Newest first."""
        rows = Run.objects.filter(tenant_id__in=visit.scope)
        if self.state == "live":
            rows = rows.filter(state__in=RUN_OPEN)
        elif self.state:
            rows = rows.filter(state=self.state)
        if self.outcome:
            rows = rows.filter(outcome=self.outcome)
        if self.workflow:
            rows = rows.filter(workflow__name=self.workflow)
        if self.q:
            rows = rows.filter(_named(self.q))
        if self.before:
            rows = rows.filter(pk__lt=self.before)
        return rows.order_by("-pk")

    def address(self, visit: Visit, **changes: object) -> str:
        """The query string of this filter with some parts changed; a changed filter begins at its first page."""
        kept = {"state": self.state, "outcome": self.outcome, "workflow": self.workflow, "q": self.q}
        return query(tenant=visit.chosen.slug if visit.chosen else "", **{**kept, **changes})


def _named(text: str) -> Q:
    """The runs that a text names in full; each form of it has an index, so that no look-up reads a whole table."""
    number, run_id = TASK_NUMBER.fullmatch(text), parse_id(text)
    ids: list[uuid.UUID] = [run_id] if run_id is not None else []
    if number is not None:
        ids += HumanTask.objects.filter(number=int(number[1])).values_list("run_id", flat=True)[:CAP]
    if ACTION_ID.fullmatch(text):
        ids += Action.objects.filter(action_id=text).values_list("run_id", flat=True)[:CAP]
    return Q(pk__in=ids) | Q(customer_ref=text) if ids else Q(customer_ref=text)


@dataclass(frozen=True)
class LetterFilter:
    """The list of dead letters as its address says it. `before` is the id that the page begins under."""

    ended: bool = False
    before: uuid.UUID | None = None

    @classmethod
    def read(cls, asked: QueryDict) -> LetterFilter:
        """Http404 for a view that does not exist, and for a page mark that is no id."""
        view, mark = asked.get("view", ""), asked.get("before", "")
        before = parse_id(mark) if mark else None
        if view not in ("", "ended") or (mark and before is None):
            raise Http404
        return cls(view == "ended", before)

    def rows(self, visit: Visit) -> QuerySet[DeadLetter]:
        """Newest first."""
        return self._all().filter(tenant_id__in=visit.scope).order_by("-pk")

    def first(self, visit: Visit, limit: int) -> QuerySet[DeadLetter]:
        """The rows of one page."""
        return newest_rows.first(self._all(), {"tenant_id": "uuid"}, [(tenant,) for tenant in visit.scope], limit)

    def _all(self) -> QuerySet[DeadLetter]:
        rows = DeadLetter.objects.all()
        rows = rows.filter(state__in=ENDED) if self.ended else rows.exclude(state__in=ENDED)
        return rows.filter(pk__lt=self.before) if self.before else rows

    def address(self, visit: Visit, **changes: object) -> str:
        """The query string of this filter with some parts changed; a changed filter begins at its first page."""
        kept = {"view": "ended" if self.ended else ""}
        return query(tenant=visit.chosen.slug if visit.chosen else "", **{**kept, **changes})
