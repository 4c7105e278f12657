"""Stop switches: a person keeps calls from leaving, with a reason and, if it has one, an end.

Asked before anything is sent: by the permit, in its one statement (runs/hot.py) and under the lock, by the worker,
by the heartbeat. What is only looked up is never stopped.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from datetime import datetime

from django.db.models import Q
from steadyhand.manifest import Tool

from recovery import permissions
from recovery.rules.situation import moment
from runs import definitions, record, redact, wall
from runs.ids import parse_id
from runs.models import Person, Run, Stop, Workflow
from runs.querysets import TenantQuerySet, database_now, read_clock
from runs.record import Actor

SCOPES = ("everything", "workflow", "tool", "connector", "run")
MODES = ("quarantine", "halt", "drain")
"""Strictest first: of several switches that stand, this one answers."""
LONGEST_REASON = 2000


class Refused(Exception):
    """The switch cannot be set or lifted so; the message says why, `field` which part of the form it concerns."""

    def __init__(self, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.field = field


class NoSuchStop(Exception):
    """There is no such switch for this person, or it was lifted before."""


def set_stop(
    by: Person,
    tenant_id: uuid.UUID,
    *,
    scope: str,
    name: str = "",
    mode: str,
    until: datetime | None = None,
    reason: str,
    request_id: str = "",
) -> Stop:
    """Set a switch; a second click gets the result of the first (F116).

    Raises Refused: no right, a part of the form that cannot be used, or somebody has set it already (F117).
    """
    _check_right(by, tenant_id, scope)
    _check_form(scope, mode, reason)
    with wall.within(tenant_id):
        if until is not None and until <= read_clock():
            raise Refused("the end has passed already.", "until")
        run = _check_name(scope, name)
        words = redact.clean_text(reason, LONGEST_REASON)
        record.lock_name(f"{tenant_id}/stop")  # of two who set the same at once, the second sees the first's
        alike = Stop.objects.filter(scope=scope, name=name, mode=mode, until=until, lifted_at__isnull=True)
        same = alike.select_related("by").first()
        if same is not None and (same.by, same.reason) != (by, words):
            raise Refused(f"{same.by} set this stop already, at {moment(same.set_at, read_clock())}.", "scope")
        if same is not None:
            return same
        stop = Stop.objects.create(
            tenant_id=tenant_id, scope=scope, name=name, mode=mode, until=until, by=by, reason=words
        )
        _write_event(stop, "stop_set", by, stop.reason, run, request_id)
        stop.refresh_from_db()
        return stop


def lift_stop(by: Person, tenant_id: uuid.UUID, stop_id: uuid.UUID, *, reason: str, request_id: str = "") -> Stop:
    """Lift a switch; the runs that it stopped go on with their next proposal. Raises Refused or NoSuchStop."""
    with wall.within(tenant_id):
        stop = Stop.objects.filter(pk=stop_id, lifted_at__isnull=True).first()
        if stop is None:
            raise NoSuchStop
        _check_right(by, tenant_id, stop.scope)
        _check_form(stop.scope, stop.mode, reason)
        words = redact.clean_text(reason, LONGEST_REASON)
        still = Stop.objects.filter(pk=stop_id, lifted_at__isnull=True)
        if not still.update(lifted_at=database_now(), lifted_by=by, lift_reason=words):
            raise NoSuchStop  # somebody else lifted it at the same moment
        _write_event(stop, "stop_lifted", by, words, _run_named(stop.name), request_id)
        stop.refresh_from_db()
        return stop


def listed(tenant_id: uuid.UUID) -> TenantQuerySet[Stop]:
    """Every switch of the tenant, the newest first; the wall is open."""
    return Stop.objects.for_tenant(tenant_id).select_related("by", "lifted_by").order_by("-id")


def is_standing(stop: Stop, now: datetime) -> bool:
    return stop.lifted_at is None and (stop.until is None or stop.until > now)


def for_call(run: Run, tool: Tool) -> Stop | None:
    """The strictest switch that keeps this call from leaving; None if it may leave. The wall is open."""
    definition = definitions.of_run(run)
    connectors = definition.connectors_of(tool)
    found = concerning(run.tenant_id, workflow=definition.name, tool=tool.name, connectors=connectors, run_id=run.pk)
    return strictest(found, run)


def concerning(
    tenant_id: uuid.UUID, *, workflow: str, tool: str, connectors: Collection[str], run_id: uuid.UUID
) -> TenantQuerySet[Stop]:
    """The switches that stand in front of a call; the permit's own statement says the same (_STANDING_STOP)."""
    concerned = (
        Q(scope="everything")
        | Q(scope="workflow", name=workflow)
        | Q(scope="tool", name=tool)
        | Q(scope="connector", name__in=list(connectors))
        | Q(scope="run", name=str(run_id))
    )
    lasting = Q(until__isnull=True) | Q(until__gt=database_now())
    return Stop.objects.for_tenant(tenant_id).filter(concerned, lasting, lifted_at__isnull=True)


def strictest(switches: Iterable[Stop], run: Run) -> Stop | None:
    """The one that answers; a drain lets runs go on that were open before it."""
    holding = (stop for stop in switches if stop.mode != "drain" or run.opened_at >= stop.set_at)
    return min(holding, key=lambda stop: MODES.index(stop.mode), default=None)


def names(scope: str) -> list[str]:
    """What a switch of this scope can name, as the tenant's workflows declare it; the wall is open."""
    if scope == "workflow":
        return sorted(set(Workflow.objects.values_list("name", flat=True)))
    manifests = Workflow.objects.values_list("manifest", flat=True)
    if scope == "tool":
        return sorted({tool["name"] for manifest in manifests for tool in manifest["tools"]})
    if scope == "connector":
        return sorted({name for manifest in manifests for name in manifest.get("connectors", {})})
    return []


def _check_right(by: Person, tenant_id: uuid.UUID, scope: str) -> None:
    held = permissions.grants(by).get(tenant_id, frozenset())
    if "stop" not in held and not ("stop_run" in held and scope == "run"):
        only_runs = " You may stop single runs." if "stop_run" in held else ""
        raise Refused(f"your role does not include this.{only_runs}")


def _check_form(scope: str, mode: str, reason: str) -> None:
    if scope not in SCOPES:
        raise Refused(f"use one of {', '.join(SCOPES)}.", "scope")
    if mode not in MODES:
        raise Refused(f"use one of {', '.join(MODES)}.", "mode")
    if not reason.strip():
        raise Refused("say why, in a few words.", "reason")


def _check_name(scope: str, name: str) -> Run | None:
    """A switch on a name that nothing has would stop nothing, unnoticed. Gives back the run it names, if any."""
    if scope == "everything":
        if name:
            raise Refused("everything has no name: leave it empty.", "name")
        return None
    if scope == "run":
        found = _run_named(name)
        if found is None or name != str(found.pk):
            raise Refused("there is no such run.", "name")
        return found
    if not name:
        raise Refused(f"name the {scope} that is to be stopped.", "name")
    if scope == "workflow" and name not in names(scope):
        raise Refused("no workflow of that name is registered.", "name")
    if name not in names(scope):
        raise Refused(f"no workflow declares such a {scope}.", "name")
    return None


def _run_named(name: str) -> Run | None:
    run_id = parse_id(name)
    return Run.objects.filter(pk=run_id).first() if run_id is not None else None


def _write_event(stop: Stop, kind: str, by: Person, words: str, run: Run | None, request_id: str) -> None:
    data = {"stop": str(stop.pk), "scope": stop.scope, "name": stop.name, "mode": stop.mode}
    actor = Actor("person", str(by), request_id)
    record.write_event(run, kind, actor, tenant_id=stop.tenant_id, reason=words, data=data)
