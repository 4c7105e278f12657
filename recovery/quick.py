"""The proposals that one statement can answer: a first attempt, a refusal, and what is settled already."""

from __future__ import annotations

import json
from typing import Any

from steadyhand.contract import Permit

from recovery import answers, gate
from recovery.answers import NotFound
from recovery.clients import Credentials, NotAuthenticated
from recovery.proposal import Prepared, Refusal
from runs import hot, redact
from runs.ids import new_id
from runs.states import RUN_OPEN
from runs.wire import Row


def is_ordinary(prepared: Prepared) -> bool:
    """Whether one statement can answer: nobody has to agree, nobody else is charged, and nothing is looked up."""
    tool = prepared.tool
    asks_more = tool.rate_limit or tool.preconditions or tool.batch or tool.once_per or tool.dispatch == "host"
    return not (prepared.facts.has_parent or asks_more or gate.needs_care(prepared))


def permit(who: Credentials, prepared: Prepared, *, request_id: str) -> Permit | None:
    """Grant a first attempt, or repeat what is settled, in one statement; None where the case has to be read.

    Raises NotAuthenticated, NotFound, and IntegrityError when a twin was granted at the same moment.
    """
    attempt_pk = new_id()
    row = hot.permit(
        **_identity(who, prepared),
        attempt=attempt_pk,
        layer=prepared.layer,
        lease=prepared.lease_seconds,
        request=request_id,
    )
    _check(row)
    if row["granted"]:
        return answers.execute(prepared, attempt_pk, number=1, fence=1, key=prepared.key())
    return _settled(prepared, row)


def refuse(who: Credentials, prepared: Prepared, refusal: Refusal, *, request_id: str) -> Permit | None:
    """Write a refusal down, or repeat what is settled, in one statement; None where the case has to be read.

    Raises NotAuthenticated, NotFound, and IntegrityError when a twin was refused at the same moment.
    """
    row = hot.reject(
        **_identity(who, prepared),
        reason=refusal.reason,
        field=refusal.field[:300],
        sentence=redact.clean_text(refusal.sentence),
        request=request_id,
    )
    _check(row)
    return answers.deny(prepared, refusal) if row["rejected"] else _settled(prepared, row)


def _check(row: Row) -> None:
    if row["client"] is None:
        raise NotAuthenticated
    if row["run_state"] is None:
        raise NotFound


def _settled(prepared: Prepared, row: Row) -> Permit | None:
    """What the record says of this very call, where that is all there is to say."""
    if row["action_state"] == "succeeded":
        return answers.replay(prepared, row["sealed_result"])
    goes_on = row["run_state"] in RUN_OPEN and row["goal"] == "forward"
    if goes_on and row["action_state"] in gate.REFUSED and row["reason_code"] != "business_rule_violation":
        return answers.deny(prepared, Refusal(row["reason_code"] or "not_applied", row["error_field"]))
    return None


def _identity(who: Credentials, prepared: Prepared) -> dict[str, Any]:
    tool, definition = prepared.tool, prepared.facts.definition
    return {
        "tenant": who.tenant_id,
        "client": who.client_id,
        "secret": who.secret_hash,
        "run": prepared.run_id,
        "workflow": definition.id,
        "workflow_name": definition.name,
        "connectors": list(definition.connectors_of(tool)),
        "same_answers": definition.manifest.budgets.max_same_answers,
        "after": list(tool.after) if tool.after is not None else None,
        "action": new_id(),
        "event": new_id(),
        "action_id": prepared.action_id,
        "step": prepared.step,
        "tool": tool.name,
        "tool_version": tool.version,
        "effect": tool.effect,
        "arguments_hash": prepared.arguments_hash,
        "arguments": json.dumps(prepared.redacted),
        "sealed": prepared.sealed,
        "value": prepared.value_minor,
        "currency": prepared.currency,
        "key": prepared.key(),
        "circuit": prepared.circuit,
    }
