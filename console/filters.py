"""Which rows a list shows: one object per list gives the rows, the tabs, their counts and the addresses."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import IntegerField, Q, QuerySet, Subquery
from django.http import Http404, QueryDict

from console.access import Visit
from recovery.models import HumanTask
from runs.ids import parse_id
from runs.models import Person, Run
from runs.states import RUN_OPEN, TASK_OPEN

CAP = 1000
UNKNOWN_REASONS = ("external_outcome_unknown", "postcondition_unproven")


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
    """One tab of the queue."""

    name: str
    label: str
    narrow: Callable[[Visit], Q]


QUEUE_VIEWS = (
    QueueView("all", "All", lambda visit: Q()),
    QueueView("mine", "Mine", lambda visit: Q(state="claimed", claimed_by=visit.person)),
    QueueView("unowned", "Unowned", lambda visit: Q(state__in=("open", "reopened"))),
    QueueView("unknown", "Unknown writes", lambda visit: Q(reason_code__in=UNKNOWN_REASONS)),
    QueueView("approval", "Waiting for approval", lambda visit: Q(reason_code="approval_required")),
    QueueView("breaching", "Breaching", lambda visit: Q(due_at__lte=visit.now)),
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


def counts(visit: Visit) -> dict[str, int]:
    """How many open tasks each tab holds, in one statement."""
    counted = {view.name: CappedCount(open_tasks(visit).filter(view.narrow(visit))) for view in QUEUE_VIEWS}
    row: dict[str, Any] = dict(Person.objects.filter(pk=visit.person.pk).values(**counted).get())
    return {name: count or 0 for name, count in row.items()}


@dataclass(frozen=True)
class RunFilter:
    """The list of runs as its address says it. `before` is the id that the page begins under."""

    state: str = ""
    outcome: str = ""
    workflow: str = ""
    before: uuid.UUID | None = None

    @classmethod
    def read(cls, asked: QueryDict) -> RunFilter:
        """Http404 for a page mark that is no id; other unknown values match nothing."""
        mark = asked.get("before", "")
        before = parse_id(mark) if mark else None
        if mark and before is None:
            raise Http404
        words = {name: asked.get(name, "")[:80].replace("\0", "") for name in ("state", "outcome", "workflow")}
        return cls(before=before, **words)

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
        if self.before:
            rows = rows.filter(pk__lt=self.before)
        return rows.order_by("-pk")

    def address(self, visit: Visit, **changes: object) -> str:
        """The query string of this filter with some parts changed; a changed filter begins at its first page."""
        kept = {"state": self.state, "outcome": self.outcome, "workflow": self.workflow}
        return query(tenant=visit.chosen.slug if visit.chosen else "", **{**kept, **changes})
