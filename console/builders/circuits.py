"""The circuits of the tenants in view, and the form that holds one open."""

from __future__ import annotations

from collections import Counter

from django.urls import reverse

from console import looks
from console.access import Visit
from console.builders import words
from console.builders.stops import Typed
from console.pages.circuits import CircuitRow, CircuitsPage, HoldForm
from console.pages.common import Empty, Flash
from console.pages.confirm import Choice, Select
from recovery.work import holds
from runs.models import Circuit, Tenant
from runs.querysets import TenantQuerySet

MOST_SHOWN = 200
NOTHING = (
    "A connector appears here once a call through it met a fault of its own. While its circuit is open, calls and "
    "look-ups wait instead of making things worse."
)


def page(visit: Visit, *, typed: Typed, flashes: list[Flash]) -> CircuitsPage:
    """Those that keep something back first; `typed` is a form as somebody left it."""
    found = list(rows_of(visit)[:MOST_SHOWN])
    kept: Counter[tuple[object, str]] = Counter()
    for tenant_id in {circuit.tenant_id for circuit in found if circuit.state != "closed"}:
        kept.update({(tenant_id, name): calls for name, calls in holds.waiting(tenant_id).items()})
    rows = [(circuit, _row(visit, circuit, typed, kept[circuit.tenant_id, circuit.name])) for circuit in found]
    troubled = [row for circuit, row in rows if circuit.state != "closed"]
    form = _form(visit, typed)
    return CircuitsPage(
        title="Circuits",
        summary="1 circuit not closed" if len(troubled) == 1 else f"{len(troubled)} circuits not closed",
        troubled=troubled,
        well=[row for circuit, row in rows if circuit.state == "closed"],
        empty=None if troubled else Empty("No circuit is open.", f"{NOTHING} Checked {words.clock(visit.now)}."),
        form=form,
        form_words="" if form else "Your role does not include this.",
        flashes=flashes,
    )


def named(circuit: Circuit) -> str:
    """What a circuit stands for, with its name as code."""
    kind, _, name = circuit.name.partition(":")
    connector, _, account = name.partition("/")
    whose = f", account `{account}`" if account else ""
    return f"{'Connector' if kind == 'connector' else 'Tool'} `{connector}`{whose}"


def rows_of(visit: Visit) -> TenantQuerySet[Circuit]:
    """The circuits of the tenants in view, what changed last first."""
    return Circuit.objects.filter(tenant_id__in=visit.scope).select_related("by").order_by("-since")


def _row(visit: Visit, circuit: Circuit, typed: Typed, waiting: int) -> CircuitRow:
    ours = typed.stop_id == circuit.pk
    held = circuit.state == "held_open"
    releasable = held and visit.may(holds.ABILITY, circuit.tenant_id)
    return CircuitRow(
        circuit_id=str(circuit.pk),
        state=looks.look("circuit", circuit.state),
        what=named(circuit),
        tenant=visit.named(circuit.tenant_id),
        cause=_cause(circuit),
        counted=_counted(circuit),
        waiting="1 call waits" if waiting == 1 else f"{waiting} calls wait" if waiting else "",
        since=circuit.since,
        by=circuit.by.name if circuit.by else "",
        until=circuit.until,
        release_url=reverse("release_circuit", args=[circuit.pk]) if releasable else "",
        fixed="your role does not include this" if held else "not held by a person",
        error=typed.errors.get("release_reason", "") if ours else "",
        reason=typed.values.get("release_reason", "") if ours else "",
    )


def _cause(circuit: Circuit) -> str:
    if not circuit.reason:
        return "Single faults, too few to open it."
    return f"Trials went well. Last noted: {circuit.reason}" if circuit.state == "closed" else circuit.reason


def _counted(circuit: Circuit) -> str:
    """The faults that opened it last; one that a failed trial opened again still holds those of the time before."""
    faults = len(circuit.faults)
    if circuit.state == "closed":
        return f"{faults} latest faults" if faults != 1 else "1 latest fault"
    if not circuit.trips:
        return "never opened by itself"
    opened = f"opened {circuit.trips} times" if circuit.trips != 1 else "opened once"
    counted = words.plural(min(faults, circuit.volume), "fault")
    return f"{counted} among {words.plural(circuit.volume, 'call')}, {opened}" if circuit.volume else opened


def _form(visit: Visit, typed: Typed) -> HoldForm | None:
    tenants = _tenants(visit)
    if not tenants:
        return None
    own = typed.stop_id is None
    chosen, error = typed.values.get("tenant", ""), typed.errors.get("tenant", "") if own else ""
    choices = [Choice(one.slug, one.name, one.slug == chosen) for one in tenants]
    return HoldForm(
        url=reverse("hold_circuit"),
        selects=[Select("tenant", "Tenant", choices, error)],
        names=holds.names(),
        name=typed.values.get("name", "") if own else "",
        reason=typed.values.get("reason", "") if own else "",
        errors=dict(typed.errors) if own else {},
    )


def _tenants(visit: Visit) -> list[Tenant]:
    """The tenants in which this person may hold one open; the chosen one stands first."""
    may = [one for one in visit.tenants.values() if visit.may(holds.ABILITY, one.pk)]
    return sorted(may, key=lambda one: one != visit.chosen)
