"""A selection before it is frozen: how many tasks it holds, of which tenants and workflow versions, and what stands
in the way of doing a verb for all of them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from django.db.models import Count
from django.urls import reverse

from console import filters, forms, looks
from console.access import Visit
from console.builders import words
from console.pages.bulk import NewPage
from console.pages.common import Flash, Link, Tab
from console.pages.confirm import Choice, Select
from console.selections import Selection
from recovery.models import HumanTask
from recovery.rules import bulk as rules
from recovery.rules.policy import LABELS
from runs.models import Tenant

DOES = {
    "reconcile": "Asks each provider what happened. It reads only; nothing is sent again.",
    "claim": "Each task becomes yours for 30 minutes, and nothing is sent for it by itself meanwhile.",
    "release": "Each task that you hold goes back to the queue.",
    "assign": "Each task is given to one colleague, or back to its team.",
    "snooze": "Each task is put off until one time, or until something new is learned about it.",
    "comment": "One note is left at each task. It proves nothing and moves nothing.",
    "retry": "Each call that is proven safe to repeat may be sent again, under its identity and workflow version.",
    "resume": "Each run goes on from its last proven state, under the workflow version it was begun with.",
    "replay": "Each dead letter gets one more try of exactly its call, under the version it was begun with.",
    "discard": "Each dead letter is given up for good. Nothing more is sent, and the record stays.",
    "cancel": "Each run ends. What is proven stays; what is unknown keeps its task until it is settled.",
}
ALL = "all"


@dataclass(frozen=True)
class Found:
    """What a selection comes to: how many tasks of which tenant, and of which workflow version."""

    tenants: dict[uuid.UUID, int]
    versions: dict[uuid.UUID, tuple[str, int]]

    @property
    def total(self) -> int:
        return sum(self.tenants.values())


def found(visit: Visit, selection: Selection) -> Found:
    """In one statement, and counted no further than a list may be long."""
    some = selection.tasks(visit).order_by().values("pk")[: rules.MOST_ITEMS + 1]
    rows = HumanTask.objects.filter(pk__in=some).order_by()
    counted = rows.values_list("tenant_id", "run__workflow", "run__workflow__name", "run__workflow__version")
    tenants: dict[uuid.UUID, int] = {}
    versions: dict[uuid.UUID, tuple[str, int]] = {}
    for tenant_id, workflow_id, name, version, count in counted.annotate(n=Count("pk")):
        tenants[tenant_id] = tenants.get(tenant_id, 0) + count
        versions[workflow_id] = (f"{name} v{version}", count)
    return Found(tenants, dict(sorted(versions.items(), key=lambda one: one[1])))


def ids(visit: Visit, selection: Selection, versions: str) -> list[uuid.UUID]:
    """The tasks themselves, the most consequential first; `versions` is a workflow version's id, or all of them."""
    rows = selection.tasks(visit)
    if versions not in ("", ALL):
        rows = rows.filter(run__workflow_id=versions)
    return list(rows.order_by("-consequence", "due_at", "pk").values_list("pk", flat=True)[: rules.MOST_ITEMS + 1])


def page(visit: Visit, verb: str, selection: Selection, *, error: str = "", flashes: list[Flash]) -> NewPage:
    """The confirmation: the selection in words, the exact number, and the form that freezes it."""
    what = found(visit, selection)
    number = words.plural(what.total, "task") if what.total <= rules.MOST_ITEMS else f"{rules.MOST_ITEMS:,}+ tasks"
    label = LABELS[verb]
    tenants = _tenants(visit, verb, selection, what) if len(what.tenants) > 1 else []
    return NewPage(
        title=f"{label}: {number}",
        words=f"{selection.words(visit)}.",
        number=number,
        does=DOES.get(verb, ""),
        url=reverse("bulk_new") + selection.address(verb=verb),
        key=forms.new_key(),
        button=f"Freeze {number} and look at each",
        crumbs=[Link("Queue", reverse("queue")), Link("Bulk operations", reverse("bulk")), Link(label, "")],
        verbs=_others(visit, verb, selection, what),
        never=[(LABELS[name], why) for name, why in rules.ONE_BY_ONE.items()],
        blocked="" if tenants else why_not(visit, verb, selection, what),
        tenants=tenants,
        narrower=Link("Narrow it in the queue", reverse("queue") + filters.query(tenant=selection.tenant)),
        facts=_facts(visit, what),
        versions=_versions(what, error),
        flashes=flashes,
    )


def why_not(visit: Visit, verb: str, selection: Selection, what: Found) -> str:
    """Why this selection cannot be frozen for this verb; empty where it can."""
    if verb not in rules.VERBS:
        return f"Never in bulk: {rules.ONE_BY_ONE[verb]}"
    if not what.total:
        return "There is no open task in this selection now."
    if what.total > rules.MOST_ITEMS:
        return f"A list holds at most {rules.MOST_ITEMS:,} tasks. Narrow it first, by a cause, a tenant or a time."
    if verb in rules.CLOSING and not selection.is_narrow:
        return "Nothing is closed without a filter. Choose a cause or a view, so that it is clear what is closed."
    [tenant_id] = what.tenants
    return rules.refusal(visit.grants.get(tenant_id, frozenset()), verb, what.total)


def tenant_of(what: Found) -> uuid.UUID | None:
    """The one tenant that the selection is of; None where one has to be chosen first."""
    return next(iter(what.tenants)) if len(what.tenants) == 1 else None


def version_fault(what: Found, chosen: str) -> str:
    """What is wrong with the choice of versions; empty where it will do (U25)."""
    if len(what.versions) < 2:
        return ""
    if chosen != ALL and chosen not in map(str, what.versions):
        return "These tasks are of several workflow versions. Say which you mean."
    return ""


def version_words(what: Found, chosen: str) -> str:
    named = {str(workflow_id): name for workflow_id, (name, _) in what.versions.items()}
    return named.get(chosen) or ", ".join(named.values())[:200]


def _versions(what: Found, error: str) -> Select | None:
    if len(what.versions) < 2:
        return None
    each = [
        Choice(str(workflow_id), f"Only {name}: {words.plural(count, 'task')}")
        for workflow_id, (name, count) in what.versions.items()
    ]
    every = Choice(ALL, f"All {len(what.versions)}, each run under its own version")
    return Select("versions", "Workflow version", [Choice("", "Choose one"), every, *each], error)


def _facts(visit: Visit, what: Found) -> list[tuple[str, str]]:
    named = ", ".join(f"{name} ({count})" for name, count in what.versions.values())
    tenants = ", ".join(visit.named(tenant_id) for tenant_id in what.tenants)
    return [("Tenant", tenants or "none"), ("Workflow version", named or "none")]


def _tenants(visit: Visit, verb: str, selection: Selection, what: Found) -> list[Link]:
    def link(tenant: Tenant) -> Link:
        address = replace(selection, tenant=tenant.slug).address(verb=verb)
        return Link(f"{tenant.name}: {words.plural(what.tenants[tenant.pk], 'task')}", reverse("bulk_new") + address)

    return [link(tenant) for tenant in visit.tenants.values() if tenant.pk in what.tenants]


def _others(visit: Visit, verb: str, selection: Selection, what: Found) -> list[Tab]:
    """The verbs that this person may do somewhere in this selection."""
    may = [name for name in rules.VERBS if any(visit.may(rules.ability_of(name), tenant) for tenant in what.tenants)]
    return [
        Tab(LABELS[name], reverse("bulk_new") + selection.address(verb=name), "", name == verb)
        for name in may
        if name in looks.VERB_ICONS
    ]
