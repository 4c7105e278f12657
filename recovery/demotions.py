"""Connectors that did not keep a declared bound: for their tenant it counts as undeclared from then on (F028).

It holds for every version of a workflow that was registered before; a later version promises anew. Else a person who
administers the tenant lifts it, with a reason.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import lru_cache

from django.db.models import Exists, OuterRef, Subquery

from recovery import permissions
from recovery.models import Demotion
from recovery.rules import trust
from recovery.rules.known import Known
from runs import definitions, gathering, record, redact, wall
from runs.models import Action, Attempt, Evidence, Person, Run, Workflow
from runs.querysets import TenantQuerySet, read_clock
from runs.record import Actor

LONGEST_REASON = 500


class Refused(Exception):
    """It stays as it is; the message says why in a sentence, `field` which field of the form is at fault."""

    def __init__(self, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.field = field


def standing(workflow_id: uuid.UUID, connector: str) -> TenantQuerySet[Demotion]:
    """The demotion of this connector that holds for a run of this version, if there is one."""
    registered = Subquery(Workflow.objects.filter(pk=workflow_id).values("created_at")[:1])
    return Demotion.objects.filter(connector=connector, lifted_at__isnull=True, since__gte=registered)


def beside(run: Run, connector: str) -> Exists:
    """The same as a part of the question for the tries of a call."""
    return _beside(run.workflow_id, connector)


@lru_cache(maxsize=1000)
def _beside(workflow_id: uuid.UUID, connector: str) -> Exists:
    """Put together once: every case asks it, and to write it down takes longer than to answer it."""
    return Exists(standing(workflow_id, connector).filter(tenant=OuterRef("tenant")))


def is_demoted(run: Run, connector: str, tries: Sequence[Attempt]) -> bool:
    """Whether a demotion holds, from the tries that were read with it; those read ahead for many runs know nothing of
    it, and there it is asked once for each version and connector."""
    known = getattr(tries[0], "demoted", None)
    if known is not None:
        return bool(known)
    key = (Demotion, run.tenant_id, run.workflow_id, connector)
    return gathering.once(key, lambda: standing(run.workflow_id, connector).exists())


def note(run: Run, action: Action, known: Known, actor: Actor) -> Demotion | None:
    """Demote the connector of this call if its evidence shows that a bound was not kept; once for each call."""
    rule = definitions.of_run(run).tools[action.tool].reconcile
    if rule is None or not trust.violated(known.facts) or _noted(action):
        return None
    evidence = Evidence.objects.filter(action=action).exclude(verdict="none").order_by("-id").first()
    sentence = _sentence(rule.connector, rule.max_in_flight_seconds, rule.max_visibility_lag_seconds, action)
    made, _ = Demotion.objects.get_or_create(
        tenant_id=run.tenant_id, connector=rule.connector, workflow=run.workflow, lifted_at__isnull=True,
        defaults={"action": action, "run": run, "reason": sentence, "since": read_clock()},
    )  # fmt: skip
    data = {"connector": rule.connector, "demotion": str(made.pk), "evidence": str(evidence.pk) if evidence else ""}
    record.write_event(run, "bound_violated", actor, action=action, reason=sentence, data=data)
    return made


def lift(by: Person, tenant_id: uuid.UUID, demotion_id: uuid.UUID, *, reason: str, request_id: str = "") -> Demotion:
    """Trust the connector's bounds again. Raises Refused, and Demotion.DoesNotExist."""
    if not permissions.may(by, "administer", tenant_id):
        raise Refused("your role does not include this.")
    if not reason.strip():
        raise Refused("say why, in a few words.", "reason")
    with wall.within(tenant_id, by="person"):
        found = Demotion.objects.select_related("run").get(pk=demotion_id)
        words = redact.clean_text(reason, LONGEST_REASON)
        still = Demotion.objects.filter(pk=demotion_id, lifted_at__isnull=True)
        if not still.update(lifted_at=read_clock(), lifted_by=by, lift_reason=words):
            raise Refused("it was lifted already.")
        data = {"connector": found.connector, "demotion": str(found.pk)}
        record.write_event(
            found.run, "demotion_lifted", Actor("person", str(by), request_id), reason=words, data=data
        )
        found.refresh_from_db()
        return found


def of_call(run: Run, action: Action) -> Demotion | None:
    """Why the look-ups about this call are never final, if that is so."""
    rule = definitions.of_run(run).tools[action.tool].reconcile
    return standing(run.workflow_id, rule.connector).select_related("action").first() if rule else None


def _noted(action: Action) -> bool:
    return action.run.events.filter(kind="bound_violated", action=action).exists()


def _sentence(connector: str, in_flight: float | None, lag: float | None, action: Action) -> str:
    seconds = (in_flight or 0) + (lag or 0)
    return (
        f"{connector} had said, {seconds:g} seconds or more after {action.step} was over, that it had no effect, and "
        "yet one turned up. Its look-ups prove no absence any more."
    )
