"""The connectors of the tenants in view: what they promise, where they stand, and what their last test said."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, OuterRef, QuerySet
from django.db.models.functions import JSONObject
from django.urls import reverse

from console import forms, looks
from console.access import Visit
from console.builders import words
from console.builders.stops import Typed
from console.builders.workflows import address, tabs
from console.filters import query
from console.pages.common import Empty, Flash, Link, Live
from console.pages.connectors import CheckResult, ConnectorRow, ConnectorsPage, DemotionRow
from recovery.models import ConnectorCheck, Demotion, OutsideSweep
from recovery.work import checks
from runs import definitions
from runs.definitions import Definition
from runs.models import Circuit, Tenant, Workflow
from runs.redact import clean_text

PAGE = 50
MOST_WORKFLOWS = 200
MOST_KNOWN = 500
LIFT = "administer"
Facts = dict[str, Any]


@dataclass(frozen=True)
class Standing:
    """What is known of the connectors of one tenant, by name; demotions by name, several each."""

    checks: dict[str, Facts]
    circuits: dict[str, Facts]
    sweeps: dict[str, Facts]
    demotions: list[Facts] = field(default_factory=list)


@dataclass(frozen=True)
class Board:
    """Everything that the page is drawn from, in two statements."""

    workflows: list[Workflow]
    standing: dict[uuid.UUID, Standing]

    @property
    def busy(self) -> bool:
        """Whether a test is under way."""
        found = (check for one in self.standing.values() for check in one.checks.values())
        return any(check["ended_at"] is None for check in found)

    def version(self) -> tuple[object, ...]:
        return ([str(one.pk) for one in self.workflows], repr(self.standing))


def read(visit: Visit) -> Board:
    """The newest version of each workflow, and what is known of their connectors."""
    rows = Workflow.objects.filter(tenant_id__in=visit.scope).order_by("tenant_id", "name", "-version")
    told = Tenant.objects.filter(pk__in=visit.scope).annotate(
        checks=_of(ConnectorCheck.objects.order_by("connector", "-id").distinct("connector"),
                   "connector", "outcome", "fact", "ended_at", "asked_at", "latency_ms", by=F("by__name")),
        circuits=_of(Circuit.objects.exclude(state="closed").filter(name__startswith="connector:"), "name", "state"),
        sweeps=_of(OutsideSweep.objects.all(), "connector", "listed_until", "due_at", "failures", "failure"),
        demotions=_of(Demotion.objects.filter(lifted_at__isnull=True).order_by("-id"),
                      "id", "connector", "reason", "since", "run_id"),
    )  # fmt: skip
    standing = {
        tenant.pk: Standing(
            {one["connector"]: one for one in tenant.checks},
            {one["name"].partition(":")[2].partition("/")[0]: one for one in tenant.circuits},
            {one["connector"]: one for one in tenant.sweeps},
            tenant.demotions,
        )
        for tenant in told
    }
    return Board(list(rows.distinct("tenant_id", "name")[:MOST_WORKFLOWS]), standing)


def page(
    visit: Visit, board: Board, *, typed: Typed, live: Live, after: int = 0, flashes: list[Flash]
) -> ConnectorsPage:
    """By tenant and name; `after`: how many stand on the pages before. `typed`: a form as somebody left it."""
    found = list(_declared(visit, board))
    shown = found[after : after + PAGE]
    rows = [_row(visit, board.standing[one.tenant_id], one, name, typed) for one, name in shown]
    more = len(found) > after + PAGE
    slug = visit.chosen.slug if visit.chosen else ""
    return ConnectorsPage(
        title="Settings",
        summary=words.plural(len(found), "connector"),
        tabs=tabs(visit, "Connectors"),
        rows=rows,
        live=live,
        next_url=reverse("settings_connectors") + query(tenant=slug, after=after + PAGE) if more else "",
        empty=None if rows else _empty(visit),
        flashes=flashes,
    )


def _declared(visit: Visit, board: Board) -> Iterator[tuple[Workflow, str]]:
    """Each connector once for each way in which it is declared: two workflows may mean two systems by one name."""
    seen: set[tuple[object, ...]] = set()
    for workflow in board.workflows:
        definition = definitions.of_workflow(workflow, visit.tenants[workflow.tenant_id])
        for name, connector in sorted(definition.manifest.connectors.items()):
            alike = (workflow.tenant_id, name, connector.model_dump_json())
            if alike not in seen:
                seen.add(alike)
                yield workflow, name


def _row(visit: Visit, standing: Standing, workflow: Workflow, name: str, typed: Typed) -> ConnectorRow:
    definition = definitions.of_workflow(workflow, visit.tenants[workflow.tenant_id])
    connector = definition.manifest.connectors[name]
    check, circuit, sweep = standing.checks.get(name), standing.circuits.get(name), standing.sweeps.get(name)
    may = visit.may(checks.ABILITY, definition.tenant_id)
    refusal = checks.unaskable(definition, name) or ("" if may else "your role does not include this.")
    slug = visit.tenants[definition.tenant_id].slug
    return ConnectorRow(
        name=name,
        kind=connector.kind,
        host=clean_text(urlsplit(connector.base_url or "").netloc.rpartition("@")[2], 200),
        tenant=visit.named(definition.tenant_id),
        workflow=Link(f"{definition.name}, version {definition.version}", address(visit, workflow)),
        promises=_promises(definition, name),
        check=_check(check),
        key=forms.new_key(),
        test_url="" if refusal else reverse("test_connector", args=[definition.id, name]),
        fixed=refusal,
        circuit=looks.look("circuit", circuit["state"]) if circuit else None,
        circuit_url=reverse("circuits") + query(tenant=slug),
        listed=_listed(sweep, visit.now),
        trouble=sweep["failure"] if sweep and sweep["failures"] else "",
        demotions=[
            _demotion(visit, definition.tenant_id, one, typed) for one in standing.demotions
            if one["connector"] == name and _time(one["since"]) >= workflow.created_at
        ],
    )  # fmt: skip


def _check(check: Facts | None) -> CheckResult:
    if check is None:
        return CheckResult(looks.look("check", "never"), "Nobody has tested it yet.")
    state = check["outcome"] or "waiting"
    at = _time(check["ended_at"] or check["asked_at"])
    fact = check["fact"] or "A worker asks it something harmless."
    return CheckResult(looks.look("check", state), fact, check["by"], at, check["latency_ms"])


def _promises(definition: Definition, name: str) -> list[str]:
    """What the look-ups through it promise, and how it is asked for its health and for what it did."""
    connector = definition.manifest.connectors[name]
    told = [
        f"looks up `{tool.name}`" for tool in definition.manifest.tools if tool.reconcile and
        tool.reconcile.connector == name
    ]  # fmt: skip
    sends = [
        f"sends `{tool.name}`" for tool in definition.manifest.tools if tool.send and tool.send.connector == name
    ]
    more = [
        "says how its health is read" if connector.health else "",
        f"lists what it did, every {words.lasting(connector.lists.every_seconds)}" if connector.lists else "",
        f"answers within {connector.timeout_seconds:g} s" if connector.kind != "manual" else "a person looks there",
    ]
    return [*told[:20], *sends[:20], *filter(None, more)]


def _listed(sweep: Facts | None, now: datetime) -> str:
    if sweep is None:
        return ""
    until = f"listed up to {words.moment(_time(sweep['listed_until']), now)}"
    if sweep["due_at"] is None:
        return f"{until}; no longer listed"
    times = words.plural(sweep["failures"], "time")
    return f"{until}; could not be listed {times} since" if sweep["failures"] else until


def _demotion(visit: Visit, tenant_id: uuid.UUID, one: Facts, typed: Typed) -> DemotionRow:
    ours = str(typed.stop_id) == one["id"]
    return DemotionRow(
        demotion_id=one["id"],
        reason=one["reason"],
        since=_time(one["since"]),
        run_url=reverse("run", args=[one["run_id"]]),
        lift_url=reverse("lift_demotion", args=[one["id"]]) if visit.may(LIFT, tenant_id) else "",
        error=typed.errors.get("lift_reason", "") if ours else "",
        typed=typed.values.get("lift_reason", "") if ours else "",
    )


def _of(rows: QuerySet[Any], *names: str, **more: F) -> ArraySubquery:
    """These rows of a tenant as JSON, at most MOST_KNOWN of them."""
    made = JSONObject(**{name: F(name) for name in names}, **more)
    return ArraySubquery(rows.filter(tenant=OuterRef("pk")).values(json=made)[:MOST_KNOWN])


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _empty(visit: Visit) -> Empty:
    told = "A workflow that names one in its manifest brings it along."
    where = Link("Show the workflows", reverse("settings_workflows"))
    return Empty("No connector is declared.", f"{told} Checked {words.clock(visit.now)}.", where)
