"""Every row of a run as plain values, so that two runs that went the same way can be held against each other."""

from __future__ import annotations

import json
import re
from typing import Any

from django.db.models import Model

from recovery.models import DeadLetter, Decision, HumanTask
from runs import wall
from runs.models import Action, Attempt, Effect, Event, Evidence, Run
from tests.factories import Case

_ITS_OWN = {
    "action_id", "arguments_hash", "business_key", "cause", "client_ref", "evidence_hash", "idempotency_key",
    "identity", "key", "number", "sealed_arguments", "sealed_record", "sealed_result", "txid",
}  # fmt: skip
"""What says which run it is, or is sealed anew each time."""
_TABLES: tuple[type[Model], ...] = (Action, Attempt, Evidence, Effect, HumanTask, Decision, DeadLetter, Event)
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{64}|[0-9a-f]{32}")


def of(case: Case) -> dict[str, Any]:
    """Table by table, rows in the order in which they came about; ids are numbered as they turn up."""
    with wall.within(case.tenant.pk):
        found: dict[str, Any] = {"Run": [_plain(Run.objects.get(pk=case.run_id))]}
        for model in _TABLES:
            rows = model._default_manager.filter(run_id=case.run_id).order_by("pk")
            found[model.__name__] = [_plain(row) for row in rows]
    met: dict[str, str] = {}
    text = _ID.sub(lambda id: met.setdefault(id[0], f"#{len(met)}"), json.dumps(found, default=str, sort_keys=True))
    numbered: dict[str, Any] = json.loads(text)
    return numbered


def _plain(row: Model) -> dict[str, Any]:
    own = _ITS_OWN - ({"number"} if isinstance(row, Attempt) else set())
    return {
        field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields if field.attname not in own
    }
