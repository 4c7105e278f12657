"""The workflows of the tenants in view, and one of them in one version: what it may do and who runs on it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import OuterRef, Q, QuerySet
from django.http import Http404, QueryDict
from django.urls import reverse

from console.access import Visit
from console.builders import manifests, readable, words
from console.filters import CappedCount, capped, query
from console.pages.common import Empty, Flash, Link, Tab
from console.pages.workflows import VersionRow, WorkflowPage, WorkflowRow, WorkflowsPage
from recovery import cautions
from runs import definitions
from runs.models import Run, Workflow
from runs.redact import clean_text

PAGE = 25
MOST_TOOLS = 60
MOST_VERSIONS = 20
MOST_RAW = 200_000
KNOWN = ("tenant", "name", "after")
UNTOLD = "not recorded"


@dataclass(frozen=True)
class Asked:
    """The list as its address says it: those of one name, and those behind a workflow (name, tenant's short name)."""

    name: str = ""
    after: tuple[str, str] | None = None

    @classmethod
    def read(cls, asked: QueryDict) -> Asked:
        """Http404 for a page mark that is none."""
        mark = asked.get("after", "")
        name, parted, slug = mark.partition("~")
        if mark and not parted:
            raise Http404
        return cls(_plain(asked.get("name", "")), (_plain(name), _plain(slug)) if mark else None)


def tabs(visit: Visit, current: str) -> list[Tab]:
    """The parts of the settings that this person may see."""
    slug = query(tenant=visit.chosen.slug) if visit.chosen else ""
    parts = [("Workflows", "settings_workflows"), ("Connectors", "settings_connectors")]
    if any(visit.may(ability, tenant) for ability in ("administer", "audit") for tenant in visit.scope):
        parts.append(("Members", "settings_members"))
    return [Tab(label, reverse(name) + slug, current=label == current) for label, name in parts]


def page(visit: Visit, asked: Asked, *, flashes: list[Flash]) -> WorkflowsPage:
    """By name, each in its newest version."""
    found = list(_newest(visit, asked)[: PAGE + 1])
    shown, more = found[:PAGE], len(found) > PAGE
    manifests_of = dict(Workflow.objects.filter(pk__in=[one.pk for one in shown]).values_list("pk", "manifest"))
    rows, unreadable = readable.rows(shown, partial(_row, visit, manifests_of))
    mark = f"{shown[-1].name}~{visit.tenants[shown[-1].tenant_id].slug}" if more else ""
    return WorkflowsPage(
        title="Settings",
        summary=words.plural(len(shown), "workflow") + (", and more" if more else ""),
        tabs=tabs(visit, "Workflows"),
        rows=rows,
        unreadable=unreadable,
        next_url=reverse("settings_workflows") + _address(visit, name=asked.name, after=mark) if more else "",
        empty=None if shown else _empty(visit, asked),
        flashes=flashes,
    )


def find(visit: Visit, name: str, number: int | None) -> Workflow | None:
    """One version, or the newest; where several tenants have the name, that of the first by name."""
    rows = Workflow.objects.filter(tenant_id__in=visit.scope, name=name)
    if number is not None:
        rows = rows.filter(version=number)
    order = list(visit.tenants)
    return min(rows.order_by("tenant_id", "-version").distinct("tenant_id"),
               key=lambda one: order.index(one.tenant_id), default=None)  # fmt: skip


def one(visit: Visit, workflow: Workflow, *, before: int | None, flashes: list[Flash]) -> WorkflowPage:
    """`before`: the list of versions begins under this number."""
    manifest = definitions.of_workflow(workflow, visit.tenants[workflow.tenant_id]).manifest
    told = _versions(visit, workflow, before)
    raw, note = _raw(workflow.manifest)
    here = address(visit, workflow)
    return WorkflowPage(
        title=workflow.name,
        subtitle=f"{clean_text(manifest.title, 200) or 'without a title'}, version {workflow.version} of "
        f"{visit.named(workflow.tenant_id)}",
        crumbs=[Link("Settings", reverse("settings")), Link("Workflows", reverse("settings_workflows")),
                Link(workflow.name, "")],
        facts=manifests.facts(manifest),
        cautions=[(path, f"{sentence}.") for path, sentence in cautions.of(manifest)],
        tools=[manifests.tool_row(tool) for tool in manifest.tools[:MOST_TOOLS]],
        more_tools=max(len(manifest.tools) - MOST_TOOLS, 0),
        versions=told[:MOST_VERSIONS],
        older_url=f"{here}&before={told[MOST_VERSIONS - 1].number}" if len(told) > MOST_VERSIONS else "",
        raw=raw,
        raw_note=note,
        flashes=flashes,
    )  # fmt: skip


def address(visit: Visit, workflow: Workflow, version: int | None = None) -> str:
    """The page of a workflow; the tenant is part of it, for two may have one of the same name."""
    slug = visit.tenants[workflow.tenant_id].slug
    return reverse("settings_workflow", args=[workflow.name]) + query(tenant=slug, version=version)


def open_runs() -> QuerySet[Run]:
    """The runs of a version that have not ended, for a row of it."""
    return Run.objects.filter(tenant=OuterRef("tenant"), workflow=OuterRef("pk"), ended_at__isnull=True)


def _newest(visit: Visit, asked: Asked) -> QuerySet[Workflow]:
    rows = Workflow.objects.filter(tenant_id__in=visit.scope).defer("manifest")
    if asked.name:
        rows = rows.filter(name=asked.name)
    if asked.after is not None:
        rows = rows.filter(_behind(visit, *asked.after))
    older = Run.objects.filter(
        tenant=OuterRef("tenant"), workflow__name=OuterRef("name"), workflow__version__lt=OuterRef("version"),
        ended_at__isnull=True,
    )  # fmt: skip
    counted = {"open_runs": CappedCount(open_runs()), "older_runs": CappedCount(older)}
    return rows.order_by("name", "tenant_id", "-version").distinct("name", "tenant_id").annotate(**counted)


def _behind(visit: Visit, name: str, slug: str) -> Q:
    """What follows this workflow in the list."""
    same = [tenant.pk for tenant in visit.tenants.values() if tenant.slug == slug]
    if not same:
        raise Http404
    return Q(name__gt=name) | Q(name=name, tenant_id__gt=same[0])


def _row(visit: Visit, manifests_of: dict[Any, Any], workflow: Workflow) -> WorkflowRow:
    workflow.manifest = manifests_of[workflow.pk]
    manifest = definitions.of_workflow(workflow, visit.tenants[workflow.tenant_id]).manifest
    told = len(cautions.of(manifest))
    return WorkflowRow(
        name=workflow.name,
        url=address(visit, workflow),
        tenant=visit.named(workflow.tenant_id),
        version=workflow.version,
        title=words.title(clean_text(manifest.title, 200)),
        tools=manifests.counted(manifest),
        registered_at=workflow.created_at,
        by=workflow.registered_by or UNTOLD,
        open_runs=capped(workflow.open_runs),  # type: ignore[attr-defined]
        older_runs=capped(workflow.older_runs),  # type: ignore[attr-defined]
        cautions=words.plural(told, "caution") if told else "",
    )


def _versions(visit: Visit, workflow: Workflow, before: int | None) -> list[VersionRow]:
    rows = Workflow.objects.filter(tenant=workflow.tenant_id, name=workflow.name).defer("manifest")
    if before is not None:
        rows = rows.filter(version__lt=before)
    counted = rows.order_by("-version").annotate(open_runs=CappedCount(open_runs()))
    return [_version(visit, one, workflow.version) for one in counted[: MOST_VERSIONS + 1]]


def _version(visit: Visit, version: Workflow, shown: int) -> VersionRow:
    number, slug = version.version, visit.tenants[version.tenant_id].slug
    where = query(**{"tenant": slug, "from": number - 1, "to": number})
    return VersionRow(
        number=number,
        url=address(visit, version, number),
        registered_at=version.created_at,
        by=version.registered_by or UNTOLD,
        open_runs=capped(version.open_runs) or "none",  # type: ignore[attr-defined]
        current=number == shown,
        diff_url=reverse("settings_diff", args=[version.name]) + where if number > 1 else "",
    )


def _raw(manifest: Any) -> tuple[str, str]:
    text = json.dumps(clean(manifest), indent=2, ensure_ascii=False)
    if len(text) <= MOST_RAW:
        return text, ""
    return text[:MOST_RAW], f"Cut: {len(text) - MOST_RAW} more characters are not shown."


def clean(value: Any) -> Any:
    """Text without secrets at any depth; what the fields of a schema are called is no secret."""
    if isinstance(value, dict):
        return {clean_text(str(name)): clean(item) for name, item in value.items()}
    if isinstance(value, list):
        return [clean(item) for item in value]
    return clean_text(value) if isinstance(value, str) else value


def _empty(visit: Visit, asked: Asked) -> Empty:
    checked = f"Checked {words.clock(visit.now)}."
    if asked.name or asked.after:
        return Empty("No workflow fits.", checked, Link("Show all workflows", reverse("settings_workflows")))
    how = "An agent registers one when it starts, or somebody with a shell runs manage.py load_workflow."
    return Empty("No workflow is registered yet.", f"{how} {checked}")


def _address(visit: Visit, **changes: object) -> str:
    return query(tenant=visit.chosen.slug if visit.chosen else "", **changes)


def _plain(text: str) -> str:
    return text[:120].replace("\0", "")
