"""The queue: open tasks by cause, the open cause with its tasks, money per currency, and what came since."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from django.db.models import QuerySet
from django.urls import reverse

from console import filters, forms, looks, places, presence
from console.access import Visit
from console.builders import beside, causes, changed, desk, readable, views, words
from console.builders.causes import Heap, Heaps, Mark
from console.filters import QueueView
from console.looks import Look
from console.narrowing import EVERYTHING, Narrow
from console.pages.common import Empty, Flash, Link, Live, Person, Sla, Tab, Verb
from console.pages.confirm import Choice
from console.pages.queue import ChosenBar, Group, News, QueuePage, Row
from recovery.models import HumanTask
from recovery.rules import bulk, pauses
from recovery.rules.policy import LABELS
from runs.ids import parse_id

log = logging.getLogger(__name__)

MAX_GROUPS = 25
MAX_ROWS = 25

_NOTHING_HAPPENED = ("external_outcome_resolved", "credentials_invalid", "credentials_revoked")
"""With nothing changed besides: the same call may be sent once the question is answered."""
_NOTHING = {
    "mine": "You hold no task",
    "offered": "No colleague offers you a task",
    "unowned": "Every open task is held by somebody",
    "unknown": "No write is unknown",
    "approval": "Nothing waits for an approval",
    "letters": "No dead letter waits",
    "soon": "No task is due soon",
    "breaching": "No task is past its time",
    "failed": "No undo has failed",
    "snoozed": "No task is snoozed",
}
RECOMMENDED = {"external_outcome_unknown": "reconcile", "postcondition_unproven": "reconcile"}


@dataclass(frozen=True)
class Address:
    """Where the reader stands: the tab and its filters, the saved view they came from, the open cause, and the place
    inside it."""

    view: QueueView
    tenant: str = ""
    open: str = ""
    after: Mark | None = None
    beyond: str = ""
    narrow: Narrow = EVERYTHING
    saved: str = ""

    def to(self, **changes: str) -> str:
        view = "" if self.view.name == "all" else self.view.name
        asked = {"view": view, "tenant": self.tenant, **self.narrow.given, "saved": self.saved, "open": self.open}
        asked["beyond"] = self.beyond
        return reverse("queue") + filters.query(**{**asked, **changes})

    @property
    def listed(self) -> QueueView:
        """The tab with the filters on it."""
        return self.view if self.narrow == EVERYTHING else self.view.with_filters(self.narrow)

    @property
    def at_first(self) -> Address:
        """The same list at its beginning, with no cause open."""
        return replace(self, open="", after=None, beyond="")

    @property
    def place(self) -> str:
        """What a saved view keeps of it."""
        return places.spelled(self.view.name, self.tenant, self.narrow)


def page(
    visit: Visit,
    address: Address,
    *,
    live: Live,
    counts: dict[str, int],
    found: Heaps,
    flashes: list[Flash],
    origin: str,
) -> QueuePage:
    """The whole queue as `address` says it; `found` are the causes of its tab that pass its filters."""
    tasks = address.listed.tasks(visit)
    shown = causes.described(visit, address.listed, found, limit=MAX_GROUPS, beyond=address.beyond)
    around = beside.read(visit)
    groups, unreadable = _groups(visit, address, tasks, shown.shown, around.deciding)
    return QueuePage(
        title=_page_title(address),
        summary=_summary(found),
        sums=words.sums(found.amounts),
        undeclared=found.undeclared,
        tabs=_tabs(address, counts),
        groups=groups,
        live=live,
        bulk_url=reverse("bulk") + filters.query(tenant=address.tenant),
        filters=_chosen(visit, address),
        flashes=flashes,
        empty=None if groups or unreadable else _empty(visit, address, counts),
        unreadable=unreadable,
        saved=views.bar(visit, address.place, address.saved, around.views, origin + address.at_first.to(saved="")),
        narrowing=views.form(address.narrow, address.view.name, address.tenant, found.every),
        next_url=address.to(open="", beyond=shown.shown[-1].key) if shown.more else "",
    )


def _summary(found: Heaps) -> str:
    if not found.every:
        return "no tasks"
    said = f"{words.plural(found.count, 'task')} in {words.plural(len(found.every), 'cause')}"
    return said if found.whole else f"the first {said}"


def heading(visit: Visit, address: Address, found: Heaps, *, live: Live, news: News | None) -> QueuePage:
    """Only what the polled title line shows."""
    return QueuePage(
        title=_page_title(address),
        summary=_summary(found),
        sums=words.sums(found.amounts),
        undeclared=found.undeclared,
        tabs=[],
        groups=[],
        live=live,
        news=news,
    )


def _page_title(address: Address) -> str:
    return "Queue" if address.view.name == "all" else address.view.label


def news(visit: Visit, address: Address, since: str) -> News | None:
    """What came after the newest task that the reader has been shown."""
    mark = parse_id(since)
    if mark is None:
        return None
    tasks = filters.fresh(visit, address.listed, mark)
    said = f"{filters.capped(tasks)} new tasks" if tasks > filters.CAP else words.plural(tasks, "new task")
    return News(f"{said}, show", address.at_first.to()) if tasks else None


def _groups(
    visit: Visit,
    address: Address,
    tasks: QuerySet[HumanTask],
    found: Sequence[Heap],
    deciding: dict[beside.Cause, list[str]],
) -> tuple[list[Group], list[str]]:
    groups: list[Group] = []
    unreadable: list[str] = []
    for heap in found:
        try:
            built = replace(group(visit, address, heap), company=desk.together(deciding.get(heap.cause, [])))
            if heap.key == address.open:
                built, broken = _opened(visit, address, tasks, heap, built)
                unreadable += broken
            groups.append(built)
        except Exception:
            # One record that cannot be shown must not take the queue away from the people who work on the others.
            log.exception("the cause of task %s cannot be shown", heap.one_id)
            unreadable.append(str(heap.one_id))
    return groups, unreadable


def group(visit: Visit, address: Address, heap: Heap) -> Group:
    """A cause by itself, closed."""
    tenant_id, workflow, reason, tool = heap.cause
    assert heap.first is not None and heap.last is not None and heap.due is not None  # noqa: S101, PT018  (count > 0)
    answer = changed.worst(list(heap.changed))
    opened = address.to(open=heap.key)
    single = reverse("task", args=[heap.one_id]) if heap.count == 1 else opened
    claimer = heap.claimer
    return Group(
        key=heap.key,
        title=causes.title_of(reason, tool),
        url=single,
        toggle_url=address.to(open="") if heap.key == address.open else opened,
        tenant=visit.named(tenant_id),
        reason_code=reason,
        tool=tool or "the run",
        workflow=workflow,
        changed=looks.ANYTHING_CHANGED[answer],
        retry=retry_look(answer, reason, tool, reads=heap.reads, looks_up=heap.looks_up),
        count=heap.count,
        at_risk=words.sums((money, currency) for currency, money in heap.amounts.items()),
        first_seen_at=heap.first,
        last_seen_at=heap.last,
        sla=Sla(heap.first, heap.due, pause=pauses.WORDS.get(heap.pause if not heap.sums["running"] else "", "")),
        priority=heap.why,
        owner=Person(claimer, you=claimer == visit.person.name) if claimer else None,
        owner_note=f"{heap.claimed} of {heap.count} claimed" if heap.count > 1 else "",
        verb=_shared_verb(visit, heap, address),
        open=False,
        undeclared=heap.undeclared,
        claim=_claim_single(visit, heap),
        claim_why=_why_no_claim(visit, tenant_id, claimer if heap.count == heap.claimed else ""),
    )


def retry_look(answer: str, reason: str, tool: str, *, reads: bool, looks_up: bool) -> Look:
    """The short form of "is retry safe" for a list; the task's page asks the rules about its own evidence."""
    if reason == "approval_required":
        return looks.RETRY_SAFE["after_approval"]
    if reason == "user_input_required":
        return looks.RETRY_SAFE["after_input"]
    if not tool or answer in ("yes", "undone"):
        return looks.RETRY_SAFE["nothing_to_retry"]
    if reads:
        return looks.RETRY_SAFE["yes"]
    if answer == "unknown" and looks_up:
        return looks.RETRY_SAFE["check_first"]
    return looks.RETRY_SAFE["yes" if reason in _NOTHING_HAPPENED else "no"]


def _claim_single(visit: Visit, heap: Heap) -> Verb | None:
    """The claim of a cause with one free task; several are opened first, for a person takes tasks and not causes."""
    if heap.count != 1 or heap.claimed or heap.one_id is None or not visit.may("claim", heap.cause[0]):
        return None
    return _claim_of(heap.one_id, heap.version)


def _why_no_claim(visit: Visit, tenant_id: uuid.UUID, claimer: str) -> str:
    """What a person hears whose claim key does nothing."""
    if not visit.may("claim", tenant_id):
        return "You cannot claim here: your role does not include this."
    if claimer == visit.person.name:
        return "You hold this already. Open it to extend your claim."
    return f"{claimer} holds this already." if claimer else ""


def _shared_verb(visit: Visit, heap: Heap, address: Address) -> Verb | None:
    """The one action that helps every task of this cause, for somebody whose role includes it; of several in bulk."""
    name = RECOMMENDED.get(heap.cause[2], "")
    if not name or not heap.looks_up or not visit.may(name, heap.cause[0]):
        return None
    several = heap.count > 1
    url = _for_all(name, heap, address) if several else reverse(name, args=[heap.one_id])
    label = f"Check all {heap.count}" if several else LABELS[name]
    method = "link" if several else "get"
    return Verb(name, label, looks.VERB_ICONS[name], url, "Asks the provider; reads only.", method=method)


def _for_all(verb: str, heap: Heap, address: Address) -> str:
    view = "" if address.view.name == "all" else address.view.name
    narrow = address.narrow.given  # exactly what the list shows, and nothing beside it (U01)
    return reverse("bulk_new") + filters.query(verb=verb, tenant=address.tenant, view=view, **narrow, cause=heap.key)


def _chosen_bar(visit: Visit, address: Address, heap: Heap) -> ChosenBar | None:
    """What can be done for the tasks of this cause that are ticked; the most useful first."""
    may = [name for name in bulk.VERBS if visit.may(bulk.ability_of(name), heap.cause[0])]
    best = RECOMMENDED.get(heap.cause[2], "claim")
    choices = [Choice(name, LABELS[name]) for name in sorted(may, key=lambda name: name != best)]
    return ChosenBar(reverse("bulk_new"), address.tenant, choices) if choices else None


def _opened(
    visit: Visit, address: Address, tasks: QuerySet[HumanTask], heap: Heap, built: Group
) -> tuple[Group, list[str]]:
    tasks = tasks.annotate(company=presence.of_task(visit.person, visit.now))
    found = causes.members(tasks, heap, limit=MAX_ROWS + 1, after=address.after)
    shown, unreadable = readable.rows(found[:MAX_ROWS], partial(_member, visit, built))
    more = len(found) > MAX_ROWS
    left = heap.count - MAX_ROWS if more and not address.after else 0
    return (
        replace(
            built,
            open=True,
            rows=shown,
            more=left or (1 if more else 0),
            more_url=address.to(after=Mark.of(found[MAX_ROWS - 1]).text) if more else "",
            chosen=_chosen_bar(visit, address, heap),
        ),
        unreadable,
    )


def _member(visit: Visit, group: Group, task: HumanTask) -> Row:
    """A task under its cause, which has said already why most of them are urgent."""
    built = row(visit, task)
    return replace(built, priority="") if built.priority == group.priority else built


def row(visit: Visit, task: HumanTask) -> Row:
    """One task of an open cause."""
    answer = task.answer
    here = presence.read(task.company)  # type: ignore[attr-defined]
    names = [one.name for one in here if one.deciding]
    owner = _owner(visit, task, names)
    return Row(
        task_id=str(task.pk),
        number=words.number(task.number),
        title=words.title(task.run.intent),
        url=reverse("task", args=[task.pk]),
        changed=looks.ANYTHING_CHANGED[answer],
        retry=retry_look(answer, task.reason_code, task.tool, reads=task.effect == "read", looks_up=task.looks_up),
        at_risk=words.sums([(task.value_minor, task.currency)]),
        last_seen_at=task.opened_at,
        sla=Sla(task.opened_at, task.due_at, pause=pauses.WORDS.get(task.pause, "")),
        priority=task.priority_reason,
        owner=owner,
        company=desk.together([name for name in names if owner is None or name != owner.name]),
        owner_note=_left(visit, task),
        claim=_claim(visit, task),
        claim_why=_why_no_claim(
            visit, task.tenant_id, task.claimed_by.name if task.state == "claimed" and task.claimed_by else ""
        ),
        undeclared=int(task.effect == "write" and not (task.value_minor is not None and task.currency)),
    )


def _owner(visit: Visit, task: HumanTask, deciding: list[str]) -> Person | None:
    has = task.claimed_by if task.state == "claimed" else task.owner
    return Person(has.name, has.pk == visit.person.pk, has.name in deciding) if has is not None else None


def _left(visit: Visit, task: HumanTask) -> str:
    if task.snoozed_until is not None:
        return f"sleeps until {words.moment(task.snoozed_until, visit.now)}"
    if task.state != "claimed" or task.claimed_until is None:
        return "was given it" if task.owner is not None else ""
    return desk.remaining(task.claimed_until - visit.now)


def _claim(visit: Visit, task: HumanTask) -> Verb | None:
    if task.state not in ("open", "reopened") or not visit.may("claim", task.tenant_id):
        return None
    return _claim_of(task.pk, task.version)


def _claim_of(task_id: uuid.UUID, version: int) -> Verb:
    url = reverse("claim", args=[task_id])
    return Verb(
        "claim", LABELS["claim"], looks.VERB_ICONS["claim"], url, "Yours for 30 minutes.",
        method="post", version=str(version), key=forms.new_key(),
    )  # fmt: skip


def _tabs(address: Address, counts: dict[str, int]) -> list[Tab]:
    return [
        Tab(
            view.label,
            Address(view, address.tenant).to(),
            filters.capped(counts[view.name]),
            view == address.view,
            "bad" if view.name == "breaching" and counts[view.name] else "",
        )
        for view in filters.QUEUE_VIEWS
    ]


def _chosen(visit: Visit, address: Address) -> list[Link]:
    at = address.at_first
    told = [Link(f"Tenant: {visit.chosen.name}", at.to(tenant=""))] if visit.chosen else []
    return told + [Link(text, at.to(**dict.fromkeys(names, ""))) for text, names in address.narrow.tokens()]


def _empty(visit: Visit, address: Address, counts: dict[str, int]) -> Empty:
    checked = f"Checked {words.clock(visit.now)}."
    if not visit.tenants:
        return Empty("You belong to no tenant yet.", "An admin of a tenant can give you a role there.")
    if address.view.name == "all" and not address.narrow.given:
        text = f"Every call of these tenants is settled, or is being settled without a person. {checked}"
        return Empty(
            "No open tasks.", text, Link("Open runs", reverse("runs") + filters.query(tenant=address.tenant))
        )
    if address.narrow.given:
        text = f"{words.plural(counts[address.view.name], 'task')} in this tab without the filters. {checked}"
        return Empty(
            "No task passes the filters.",
            text,
            Link("Remove the filters", Address(address.view, address.tenant).to()),
        )
    all_url = Address(filters.queue_view("all"), address.tenant).to()
    others = words.plural(counts["all"], "open task")
    return Empty(f"{_NOTHING[address.view.name]}.", f"{others} without this filter. {checked}",
                 Link("Show all", all_url))  # fmt: skip
