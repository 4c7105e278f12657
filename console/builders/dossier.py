"""Everything that the record holds about a run, as plain values for those who read it elsewhere; redacted as kept."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain, islice
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model

from console.builders.record import MOST_ACTIONS, MOST_EVENTS, answer_of
from console.builders.record import events as history_of
from console.builders.record import read as read_record
from recovery.models import HumanTask
from recovery.rules.decide import TABLE_VERSION
from runs.models import Run

MOST = 1000
"""Rows of a kind; `cut` names the kinds that have more."""

_RUN = (
    "id", "client_ref", "trace_id", "model", "prompt_version", "state", "goal", "outcome", "reason_code",
    "failed_step", "version", "origin", "turns", "tool_calls", "in_flight", "input_tokens", "output_tokens",
    "cost_minor", "usage_estimated", "max_turns", "max_tool_calls", "max_attempts", "max_input_tokens",
    "max_output_tokens", "max_cost_minor", "recoveries", "approved_plan", "opened_at", "elapses_at", "deadline_at",
    "finished_at", "ended_at",
)  # fmt: skip
_TOLD = ("intent", "scope", "requester", "customer_ref", "customer_message", "operator_detail", "claim")
"""What people wrote or are named in: part of the raw record, and no part of what is sent to a stranger."""
_ACTION = (
    "id", "parent_id", "role", "action_id", "step", "tool", "tool_version", "effect", "turn", "arguments_hash",
    "value_minor", "currency", "idempotency_key", "key_generation", "state", "version", "reason_code", "error_field",
    "verdict", "attempts", "looks", "due_at", "first_dispatched_at", "uncertain_since", "gate_open", "approved_at",
    "external_id", "created_at", "settled_at",
)  # fmt: skip
_ATTEMPT = (
    "id", "action_id", "number", "fence", "layer", "idempotency_key", "dispatched_at", "lease_until", "ended_at",
    "latency_ms", "observed", "reason_code", "retry_after_seconds", "circuit", "trial",
)  # fmt: skip
_EVIDENCE = (
    "id", "action_id", "kind", "verdict", "count", "source", "strength", "external_id", "after_attempt", "started_at",
    "recorded_at",
)  # fmt: skip
_EFFECT = (
    "id", "action_id", "step", "external_id", "amount_minor", "currency", "proven_by", "proven_at",
    "compensated_by_id", "residual", "residual_minor", "signed_off_at",
)  # fmt: skip
_DECISION = (
    "id", "action_id", "task_id", "verb", "actor_kind", "rule", "table_version", "evidence_hash", "state",
    "requested_at", "ended_at",
)  # fmt: skip
_TASK = (
    "id", "number", "action_id", "kind", "cause", "reason_code", "state", "owner_team", "consequence",
    "priority_reason", "opened_at", "due_at", "breached_at", "resolved_at",
)  # fmt: skip
_EVENT = ("id", "number", "action_id", "kind", "actor_kind", "from_state", "to_state", "request_id", "at")


def raw(run: Run) -> dict[str, Any]:
    """The whole record of a run: what stands in its rows, with arguments and answers redacted, and nothing sealed."""
    return _told(run, whole=True)


def bundle(run: Run) -> str:
    """What support may pass on: facts, states, rules and hashes, and no word of a customer or a reason."""
    told = _told(run, whole=False)
    lines = [
        f"# Run {run.pk}",
        "",
        f"- workflow: {run.workflow}",
        f"- state: {run.state}, outcome {run.outcome or 'none yet'}, reason {run.reason_code or 'none yet'}",
        f"- calls: {len(told['actions'])}, attempts {len(told['attempts'])}, proven effects {len(told['effects'])}",
        f"- decisions: {', '.join(_decided(told)) or 'none'}",
        f"- decision table: version {TABLE_VERSION}",
        "",
        "Arguments, answers, reasons and names are left out. Ids and hashes are whole.",
        "",
        "```json",
        as_text(told),
        "```",
        "",
    ]
    return "\n".join(lines)


def as_text(told: dict[str, Any]) -> str:
    """Strict JSON in ASCII: a control character or a turned direction stays an escape."""
    return json.dumps(told, cls=DjangoJSONEncoder, indent=2, allow_nan=False)


def _decided(told: dict[str, Any]) -> list[str]:
    return [f"{one['verb']} by rule {one['rule']}" for one in told["decisions"][:20]]


def _told(run: Run, *, whole: bool) -> dict[str, Any]:
    """`whole`: with what was said, asked and answered, beside what was done."""
    record = read_record(run)
    told: dict[str, Any] = {
        "format": 1,
        "run": _fields(run, _RUN + _TOLD if whole else _RUN),
        "workflow": {"name": run.workflow.name, "version": run.workflow.version, "hash": run.workflow.manifest_hash},
        "actions": [
            _fields(one, (*_ACTION, "arguments") if whole else _ACTION) | {"changed": answer_of(one)}
            for one in record.actions
        ],
        "attempts": _rows(chain.from_iterable(record.attempts.values()), _ATTEMPT, ["observation"] * whole),
        "evidence": _rows(chain.from_iterable(record.evidence.values()), _EVIDENCE, ["fact", "raw"] * whole),
        "effects": _rows(record.effects.values(), _EFFECT),
        "decisions": _rows(record.decisions, _DECISION, ["reason", "result"] * whole),
        "tasks": _rows(HumanTask.objects.filter(run=run).order_by("pk")[:MOST], _TASK, ["resolution"] * whole),
        "events": _rows(history_of(run), _EVENT, ["actor", "reason", "data"] * whole),
    }
    return told | {"cut": _cut(told)}


def _cut(told: dict[str, Any]) -> list[str]:
    """The kinds of which there may be more than stands here: nothing is left out in silence."""
    bounds = {"actions": MOST_ACTIONS, "events": MOST_EVENTS}
    return [name for name, rows in told.items() if isinstance(rows, list) and len(rows) >= bounds.get(name, MOST)]


def _rows(rows: Iterable[Model], names: Iterable[str], also: Iterable[str] = ()) -> list[dict[str, Any]]:
    wanted = (*names, *also)
    return [_fields(row, wanted) for row in islice(rows, MOST)]


def _fields(row: Model, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
