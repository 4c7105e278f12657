"""How much went through a circuit lately: the calls and looks that its faults and repetitions are a share of."""

from __future__ import annotations

import time
import uuid
from datetime import datetime
from typing import Any

from django.db import connection

from recovery.rules import circuit as rules
from runs.models import Circuit

CLOCKS_MAY_DIFFER_SECONDS = 10.0
"""Ids carry the time of the machine that made them, rows the database's."""
_COUNT = """
SELECT (SELECT count(*) FROM (SELECT FROM runs_attempt
    WHERE tenant_id = %(tenant)s AND id >= %(from)s AND circuit = %(name)s AND dispatched_at >= %(since)s
      AND ended_at IS NOT NULL LIMIT %(limit)s) calls)
  + (SELECT count(*) FROM (SELECT FROM runs_evidence
    WHERE tenant_id = %(tenant)s AND id >= %(from)s AND kind = 'probe' AND source = %(source)s
      AND started_at >= %(since)s LIMIT %(limit)s) looks)
"""


def calls(circuit: Circuit, since: datetime, now: datetime, *, limit: int = 20_000) -> int:
    """How many calls and looks there were; ids grow with time, so that the newest rows are found without an index."""
    age = (now - since).total_seconds() + CLOCKS_MAY_DIFFER_SECONDS
    oldest = uuid.UUID(int=int((time.time() - age) * 1000) << 80)
    params: dict[str, Any] = {
        "tenant": circuit.tenant_id,
        "from": oldest,
        "name": circuit.name,
        "since": since,
        "source": rules.connector_in(circuit.name) or "",
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, params)
        counted: int = cursor.fetchone()[0]
    return counted
