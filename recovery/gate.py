"""What stands between a proposal and its permit, read under the run's lock (DESIGN: policy before dispatch).

Each question is one function with a plain answer; recovery/permits.py asks them in order and says what follows.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.db import connection
from django.db.models import Max
from steadyhand.manifest import Precondition
from steadyhand.paths import MISSING, dig

from recovery import case as cases
from recovery.proposal import Prepared, Refusal
from runs import record, vault
from runs.ids import new_id
from runs.models import WITHOUT_EFFECT, Action, Event, Run

NOT_SENT_OR_FREE = ("proposed", "awaiting_approval", "approved", "refused_transient", "absent_final")
"""States in which a call has done nothing, as far as that is certain, and may still be sent."""
OUTCOME_NOT_OPEN = (*NOT_SENT_OR_FREE, "permitted")
REFUSED = ("rejected", "refused_permanent", "void")
CLOSED_TO_CALLS = ("escalated", "compensating", "cancelling")
REPEATED = "refused_again"


def needs_care(prepared: Prepared) -> bool:
    """Whether a person must agree to this call first."""
    over = cases.over_threshold(prepared.facts.definition, prepared.tool, prepared.value_minor)
    return prepared.tool.effect == "write" and (prepared.tool.requires_approval or over)


def times_refused(action: Action) -> int:
    """How often this refusal was given, the first time included."""
    return 1 + Event.objects.filter(action=action, kind=REPEATED).count()


def unmet(run: Run, action: Action | None, prepared: Prepared) -> Refusal | None:
    """The precondition that has to be read again, or does not hold; None where the call was never held back.

    `suggested` is filled where reading again can help; else the call is refused for good.
    """
    since = _held_until(run, action) if prepared.tool.preconditions else None
    if since is None:
        return None
    found = (_unmet(run, prepared, condition, since) for condition in prepared.tool.preconditions)
    return next((refusal for refusal in found if refusal is not None), None)


def is_taken(run: Run, prepared: Prepared) -> bool:
    """Whether another call of the tenant already stands for what `once_per` names; who asks second waits for the
    first one's transaction."""
    if not prepared.business_key:
        return False
    record.lock_name(f"{run.tenant_id}/{prepared.tool.name}/{prepared.business_key}")
    same = Action.objects.filter(tool=prepared.tool.name, business_key=prepared.business_key)
    return same.exclude(state__in=WITHOUT_EFFECT).exclude(action_id=prepared.action_id).exists()


def reserve_rate(run: Run, prepared: Prepared, now: datetime) -> datetime | None:
    """Take one call of the tool's window; where none is left, when the next window begins."""
    limit = prepared.tool.rate_limit
    if limit is None:
        return None
    window = int(now.timestamp()) // limit.per_seconds
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_ONE, [new_id(), run.tenant_id, prepared.tool.name, window, limit.calls])
        taken = cursor.rowcount == 1
    return None if taken else datetime.fromtimestamp((window + 1) * limit.per_seconds, tz=now.tzinfo)


_TAKE_ONE = """
INSERT INTO runs_ratewindow AS w (id, tenant_id, tool, "window", calls) VALUES (%s, %s, %s, %s, 1)
ON CONFLICT (tenant_id, tool, "window") DO UPDATE SET calls = w.calls + 1 WHERE w.calls < %s
"""


def under_its_own_name(action: Action | None, prepared: Prepared) -> Prepared:
    """Under whatever step it is asked for, this is the first one's action: its id and step stand on every answer,
    for the id that is sent is the id that a look-up will ask for (I9)."""
    return prepared if action is None else replace(prepared, action_id=action.action_id, step=action.step)


def tools_that_ask_for(prepared: Prepared) -> list[str]:
    """Tools whose held-back calls wait for a fresh result of this read: they must not keep it waiting in turn."""
    tools = prepared.facts.definition.manifest.tools
    return [tool.name for tool in tools if any(one.tool == prepared.tool.name for one in tool.preconditions)]


def _held_until(run: Run, action: Action | None) -> datetime | None:
    """Until when a call was held back: an approval, a refusal, or an earlier write whose outcome was not known."""
    moments = [run.actions.filter(uncertain_since__isnull=False, role="call").aggregate(at=Max("settled_at"))["at"]]
    if action is not None:
        moments.append(action.approved_at)
        moments.append(action.tries.aggregate(at=Max("ended_at"))["at"])
    return max((moment for moment in moments if moment is not None), default=None)


def _unmet(run: Run, prepared: Prepared, condition: Precondition, since: datetime) -> Refusal | None:
    reads = run.actions.filter(tool=condition.tool, state="succeeded", created_at__gt=since)
    latest = reads.order_by("-id").first()
    if latest is None:
        return Refusal(
            "precondition_failed",
            sentence=f"What {prepared.tool.name} rests on was read before it was held back.",
            suggested=(f"call {condition.tool} again", "then repeat this call"),
        )
    sealed = bytes(latest.sealed_result) if latest.sealed_result else None
    result = vault.unseal(prepared.facts.definition.keys, sealed) if sealed else None
    value = dig(result, condition.path)
    if value is not MISSING and value == condition.equals:
        return None
    return Refusal("precondition_failed", sentence=f"{condition.tool} now shows another {condition.path}.")
