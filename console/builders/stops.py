"""The stop switches of the tenants in view, and the form that sets one more."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.urls import reverse

from console import looks
from console.access import Visit
from console.builders import words
from console.pages.common import Empty, Flash
from console.pages.confirm import Choice, Select
from console.pages.stops import SetForm, StopRow, StopsPage
from recovery.work import stops
from runs.models import Stop, Tenant
from runs.querysets import TenantQuerySet

MOST_SHOWN = 100
SCOPES = {
    "workflow": "One workflow",
    "tool": "One tool",
    "connector": "One connector",
    "run": "One run",
    "everything": "Everything of the tenant",
}
"""The widest stands last: nobody stops a whole tenant by leaving a form as it was."""
MODES = {
    "halt": "Halt: nothing leaves",
    "drain": "Drain: open runs go on",
    "quarantine": "Quarantine: to a person",
}


@dataclass(frozen=True)
class Typed:
    """What a form held when it came back, and what was wrong with it; `stop_id` where it was one that lifts."""

    values: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    stop_id: uuid.UUID | None = None


def page(visit: Visit, *, typed: Typed, flashes: list[Flash]) -> StopsPage:
    """The newest switches, those that stand first; `typed` is the form as somebody left it."""
    found = list(rows_of(visit)[:MOST_SHOWN])
    standing = [_row(visit, stop, typed) for stop in found if stops.is_standing(stop, visit.now)]
    past = [_row(visit, stop, typed) for stop in found if not stops.is_standing(stop, visit.now)]
    form = _form(visit, typed)
    return StopsPage(
        title="Stops",
        summary="1 switch standing" if len(standing) == 1 else f"{len(standing)} switches standing",
        standing=standing,
        past=past,
        empty=None if standing else Empty("Nothing is stopped.", f"Checked {words.clock(visit.now)}."),
        form=form,
        form_words="" if form else "Your role does not include this.",
        flashes=flashes,
    )


def named(stop: Stop) -> str:
    """What a switch stops, with its name as code."""
    return f"{SCOPES[stop.scope]} `{stop.name.replace('`', '')}`" if stop.name else SCOPES[stop.scope]


def rows_of(visit: Visit) -> TenantQuerySet[Stop]:
    """The switches of the tenants in view, the newest first."""
    return Stop.objects.filter(tenant_id__in=visit.scope).select_related("by", "lifted_by").order_by("-id")


def tenants_to_stop(visit: Visit) -> list[Tenant]:
    """The tenants in which this person may set a switch of some scope; the chosen one stands first."""
    may = [one for one in visit.tenants.values() if visit.may("stop", one.pk) or visit.may("stop_run", one.pk)]
    return sorted(may, key=lambda one: one != visit.chosen)


def may_lift(visit: Visit, stop: Stop) -> bool:
    return visit.may("stop", stop.tenant_id) or (stop.scope == "run" and visit.may("stop_run", stop.tenant_id))


def _row(visit: Visit, stop: Stop, typed: Typed) -> StopRow:
    standing = stops.is_standing(stop, visit.now)
    ours = typed.stop_id == stop.pk
    return StopRow(
        stop_id=str(stop.pk),
        state=looks.look("stop", "standing" if standing else "lifted" if stop.lifted_at else "ended"),
        what=named(stop),
        mode=MODES[stop.mode].partition(":")[0],
        reason=stop.reason,
        by=stop.by.name,
        tenant=visit.named(stop.tenant_id),
        set_at=stop.set_at,
        url=reverse("run", args=[stop.name]) if stop.scope == "run" else "",
        until=stop.until,
        lift_url=reverse("lift_stop", args=[stop.pk]) if standing and may_lift(visit, stop) else "",
        lift_error=typed.errors.get("lift_reason", "") if ours else "",
        lift_reason=typed.values.get("lift_reason", "") if ours else "",
        ended_at=stop.lifted_at or (None if standing else stop.until),
        ended_by=stop.lifted_by.name if stop.lifted_by else "",
        ended_words=stop.lift_reason,
    )


def _form(visit: Visit, typed: Typed) -> SetForm | None:
    tenants = tenants_to_stop(visit)
    if not tenants:
        return None
    scopes = SCOPES if any(visit.may("stop", one.pk) for one in tenants) else {"run": SCOPES["run"]}
    selects = [
        _select("tenant", "Tenant", {one.slug: one.name for one in tenants}, typed),
        _select("scope", "What is stopped", scopes, typed),
        _select("mode", "How", MODES, typed),
    ]
    own = typed.stop_id is None
    return SetForm(
        url=reverse("set_stop"),
        selects=selects,
        name=typed.values.get("name", ""),
        until=typed.values.get("until", ""),
        reason=typed.values.get("reason", ""),
        names=_names(),
        errors=dict(typed.errors) if own else {},
    )


def _names() -> list[str]:
    """What a switch can name, as the workflows declare it."""
    return sorted({name for scope in ("workflow", "tool", "connector") for name in stops.names(scope)})


def _select(name: str, label: str, options: dict[str, str], typed: Typed) -> Select:
    chosen = typed.values.get(name, "")
    choices = [Choice(value, text, value == chosen) for value, text in options.items()]
    return Select(name, label, choices, typed.errors.get(name, "") if typed.stop_id is None else "")
