"""Two versions of a workflow side by side: what differs, in words, and what that takes away."""

from __future__ import annotations

import json
from typing import Any

from django.urls import reverse

from console import looks
from console.access import Visit
from console.builders import words
from console.builders.workflows import address, clean
from console.pages.common import Empty, Link
from console.pages.workflows import DiffPage, DiffRow
from recovery.rules.revisions import Difference, differences
from runs import definitions
from runs.models import Workflow
from runs.redact import clean_text

MOST_SHOWN = 400
MOST_VALUE = 600
MOST_NUMBERS = 200


def page(visit: Visit, old: Workflow, new: Workflow, numbers: list[int]) -> DiffPage:
    """`numbers`: the versions that can be chosen, the newest first. What is weaker stands first."""
    tenant = visit.tenants[new.tenant_id]
    before, after = (definitions.of_workflow(one, tenant).manifest for one in (old, new))
    found = sorted(differences(before, after), key=lambda one: not one.weaker)
    weaker = sum(bool(one.weaker) for one in found)
    return DiffPage(
        title=f"{new.name}, version {old.version} to {new.version}",
        summary=_summary(len(found), weaker),
        crumbs=[Link("Settings", reverse("settings")), Link("Workflows", reverse("settings_workflows")),
                Link(new.name, address(visit, new, new.version)), Link("What differs", "")],
        numbers=sorted({*numbers[:MOST_NUMBERS], old.version, new.version}, reverse=True),
        url=reverse("settings_diff", args=[new.name]),
        tenant=tenant.slug,
        old=old.version,
        new=new.version,
        rows=[_row(one) for one in found[:MOST_SHOWN]],
        weaker=weaker,
        cut=max(len(found) - MOST_SHOWN, 0),
        empty=None if found else _empty(old, new),
    )  # fmt: skip


def _row(one: Difference) -> DiffRow:
    return DiffRow(
        where=_where(one),
        look=looks.CHANGE[one.change],
        old=_value(one.old),
        new=_value(one.new),
        weaker=one.weaker,
        mark=looks.CHANGE["weaker"] if one.weaker else None,
    )


def _where(one: Difference) -> str:
    path = clean_text(".".join(one.path), 300)
    whole = f"{one.of} `{one.name}`" if one.name else one.of
    return f"{whole}: `{path}`" if path else whole


def _value(value: Any) -> str:
    if value is None:
        return ""
    text = json.dumps(clean(value), ensure_ascii=False)
    return text if len(text) <= MOST_VALUE else f"{text[:MOST_VALUE]}… and {len(text) - MOST_VALUE} more characters"


def _summary(count: int, weaker: int) -> str:
    said = words.plural(count, "difference")
    return f"{said}, {weaker} weaker" if weaker else f"{said}, none known to be weaker" if count else said


def _empty(old: Workflow, new: Workflow) -> Empty:
    same = old.version == new.version
    told = "It is the same version twice." if same else "What holds is the same; at most it is written another way."
    return Empty("Nothing differs.", told)
