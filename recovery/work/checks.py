"""Testing a connector: a person asks for it, a worker asks the question, the row says what came of it.

Nothing is written outside, and no circuit counts it. One test of a connector runs at a time; a second click, and a
colleague's, find the one that runs.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Q

from recovery import permissions
from recovery.connectors import reach
from recovery.connectors.base import Question
from recovery.connectors.reach import Reached
from recovery.models import ConnectorCheck
from recovery.work import nudges, sending
from runs import definitions, record, wall
from runs.definitions import Definition
from runs.models import Person, Workflow
from runs.querysets import read_clock
from runs.record import Actor

ABILITY = "circuit"
REST = timedelta(seconds=10)
MOST_AN_HOUR = 60
MOST_TAKES = 3
RING_AGAIN = timedelta(seconds=2)
GRACE = timedelta(seconds=15)
BATCH = 100
BY_HAND = "nobody can be asked there: a person looks and attests."
NOTHING_TO_ASK = "there is nothing harmless to ask: declare its health, or a look-up that goes through it."
_SLOT = re.compile(r"\{arguments\.([\w.\-]+)\}")


class Refused(Exception):
    """The connector is not tested now; the message says why in a sentence."""


class NoSuchConnector(Exception):
    """There is no such version for this person, or it has no such connector."""


@dataclass(frozen=True)
class Take:
    """A lease on a test."""

    tenant_id: uuid.UUID
    check_id: uuid.UUID
    fence: int
    question: Question


def order(
    by: Person,
    tenant_id: uuid.UUID,
    workflow_id: uuid.UUID,
    connector: str,
    *,
    key: str,
    ring: nudges.Ring,
    request_id: str = "",
) -> ConnectorCheck:
    """Have a connector asked, as this version declares it. The same key, and a test that runs, give what is there.

    Raises NoSuchConnector, and Refused: no right, nothing to ask, or it was asked a moment ago (SEC-18).
    """
    with wall.within(tenant_id, by="person"):
        workflow = Workflow.objects.select_related("tenant").filter(pk=workflow_id).first()
        definition = definitions.of_workflow(workflow, workflow.tenant) if workflow is not None else None
        if workflow is None or definition is None or connector not in definition.manifest.connectors:
            raise NoSuchConnector
        if not permissions.may(by, ABILITY, tenant_id):
            raise Refused("your role does not include this.")
        refusal = unaskable(definition, connector)
        if refusal:
            raise Refused(refusal)
        there = ConnectorCheck.objects.filter(Q(key=key) | Q(connector=connector, ended_at__isnull=True)).first()
        if there is not None:
            return there
        _check_rest(connector)
        made = _made(tenant_id, workflow, connector, by, key)
        if made is None:
            return ConnectorCheck.objects.filter(Q(key=key) | Q(connector=connector)).latest("id")
        data = {"connector": connector, "check": str(made.pk)}
        actor = Actor("person", str(by), request_id)
        record.write_event(None, "connector_check_asked", actor, tenant_id=tenant_id, data=data)
        nudges.after_commit(made.pk, ring)
        return made


def unaskable(definition: Definition, name: str) -> str:
    """Why there is no test of this connector; empty if there is one."""
    connector = definition.manifest.connectors[name]
    if connector.kind == "manual":
        return BY_HAND
    asked = any(tool.reconcile is not None and tool.reconcile.connector == name for tool in definition.manifest.tools)
    return "" if connector.health or asked else NOTHING_TO_ASK


def execute(check_id: uuid.UUID) -> None:
    """Ask, outside any transaction; a message that comes twice finds the lease taken."""
    tenant_id = wall.tenant_of_check(check_id)
    take = _take(tenant_id, check_id) if tenant_id is not None else None
    if take is not None:
        _end(take, reach.ask(take.question))


def due(tenant_id: uuid.UUID, ring: nudges.Ring) -> int:
    """Ring again for tests whose message was lost or whose worker died; one that nobody ends is given up."""
    with wall.within(tenant_id, by="timer"):
        now = read_clock()
        free = Q(lease_until__isnull=True) | Q(lease_until__lte=now)
        rows = ConnectorCheck.objects.select_for_update(skip_locked=True).filter(
            free, ended_at__isnull=True, nudged_at__lte=now - RING_AGAIN
        )
        ids = list(rows.order_by("nudged_at").values_list("pk", flat=True)[:BATCH])
        found = ConnectorCheck.objects.filter(pk__in=ids)
        found.filter(fence__gte=MOST_TAKES).update(
            ended_at=now, outcome="abandoned", fact="Every worker that asked was lost before it had an answer."
        )
        found.update(nudged_at=now)
    for check_id in ids:
        nudges.now(check_id, ring)
    return len(ids)


def _check_rest(connector: str) -> None:
    """Not again at once, and not without end."""
    now = read_clock()
    asked = ConnectorCheck.objects.filter(asked_at__gt=now - timedelta(hours=1))
    latest = asked.filter(connector=connector).order_by("-id").values_list("asked_at", flat=True).first()
    if latest is not None and latest > now - REST:
        again = int((latest + REST - now).total_seconds()) + 1
        raise Refused(f"it was asked a moment ago; it may be asked again in {again} s.")
    if asked.count() >= MOST_AN_HOUR:
        raise Refused(f"{MOST_AN_HOUR} tests were made in the last hour; that is all that are made.")


def _made(tenant_id: uuid.UUID, workflow: Workflow, connector: str, by: Person, key: str) -> ConnectorCheck | None:
    """None where somebody asked at the same moment: the indexes let one through."""
    try:
        with transaction.atomic():
            now = read_clock()
            return ConnectorCheck.objects.create(
                tenant_id=tenant_id,
                workflow=workflow,
                connector=connector,
                by=by,
                key=key,
                asked_at=now,
                nudged_at=now,
            )
    except IntegrityError:
        return None


def _take(tenant_id: uuid.UUID, check_id: uuid.UUID) -> Take | None:
    with wall.within(tenant_id, by="worker"):
        now = read_clock()
        rows = ConnectorCheck.objects.select_for_update(of=("self",)).select_related("workflow__tenant")
        check = rows.filter(pk=check_id, ended_at__isnull=True).first()
        if check is None or (check.lease_until is not None and check.lease_until > now):
            return None
        definition = definitions.of_workflow(check.workflow, check.workflow.tenant)
        question = _question(definition, check.connector)
        lease = now + timedelta(seconds=2 * question.connector.timeout_seconds) + GRACE
        ConnectorCheck.objects.filter(pk=check_id).update(lease_until=lease, fence=F("fence") + 1)
        return Take(tenant_id, check_id, check.fence + 1, question)


def _end(take: Take, reached: Reached) -> None:
    """Only who still holds the lease ends it."""
    with wall.within(take.tenant_id, by="worker"):
        ours = ConnectorCheck.objects.filter(pk=take.check_id, fence=take.fence, ended_at__isnull=True)
        told = {"outcome": reached.outcome, "fact": reached.fact, "status": reached.status}
        ours.update(ended_at=read_clock(), lease_until=None, latency_ms=reached.latency_ms, **told)


def _question(definition: Definition, name: str) -> Question:
    """A question about something that cannot exist, as the first look-up through this connector would put it."""
    nothing = f"check-{uuid.uuid4().hex}"
    asks = (tool for tool in definition.manifest.tools if tool.reconcile and tool.reconcile.connector == name)
    tool = next(asks, None)
    look = tool.reconcile.look if tool is not None and tool.reconcile is not None else None
    written = look.model_dump_json() if look is not None else ""
    return Question(
        action_id=nothing,
        run_id=nothing,
        key=nothing,
        arguments=_arguments(written, nothing),
        connector=definition.manifest.connectors[name],
        look=look,
        tool=tool.name if tool is not None else "",
        whom=sending.whom(definition, name),
    )


def _arguments(templates: str, value: str) -> dict[str, Any]:
    """Arguments in which every field that a template names is there."""
    found: dict[str, Any] = {}
    for path in _SLOT.findall(templates):
        *above, last = path.split(".")
        part = found
        for name in above:
            deeper = part.setdefault(name, {})
            part = deeper if isinstance(deeper, dict) else {}
        part[last] = value
    return found
