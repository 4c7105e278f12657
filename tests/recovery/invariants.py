"""Queries that must return nothing, whatever happened before (FAULTS 2.1, F157)."""

from __future__ import annotations

import uuid

from django.db import connection

from runs import wall

OPEN_TASK = "t.state IN ('open', 'claimed', 'awaiting_approval', 'executing', 'reopened')"
QUERIES = {
    # The agent's turn: it may propose or finish now, and its time is not over.
    "I2: nobody and nothing will take this run further": f"""
        SELECT r.id FROM runs_run r
        WHERE r.ended_at IS NULL
          AND NOT (r.state IN ('planning', 'executing', 'recovering') AND r.elapses_at > app_now())
          AND NOT EXISTS (SELECT FROM runs_attempt a WHERE a.run_id = r.id AND a.ended_at IS NULL)
          AND NOT EXISTS (SELECT FROM runs_action a WHERE a.run_id = r.id AND a.due_at IS NOT NULL)
          AND NOT EXISTS (SELECT FROM recovery_humantask t WHERE t.run_id = r.id AND {OPEN_TASK})
          AND NOT EXISTS (SELECT FROM recovery_decision d
                          WHERE d.run_id = r.id AND d.state IN ('requested', 'running'))
    """,
    "I2: a run rests escalated without an open task": f"""
        SELECT r.id FROM runs_run r WHERE r.state = 'escalated'
          AND NOT EXISTS (SELECT FROM recovery_humantask t WHERE t.run_id = r.id AND {OPEN_TASK})
    """,
    "I2: an unknown write that no look and no person will settle": f"""
        SELECT a.id FROM runs_action a
        WHERE a.state IN ('unknown', 'probing', 'absent', 'probe_failed', 'processing', 'partial')
          AND a.due_at IS NULL AND a.role <> 'item'
          AND NOT EXISTS (SELECT FROM recovery_humantask t WHERE t.action_id = a.id AND {OPEN_TASK})
          AND NOT EXISTS (SELECT FROM recovery_decision d
                          WHERE d.action_id = a.id AND d.state IN ('requested', 'running'))
    """,
    "I4: ok without its effects": """
        SELECT a.id FROM runs_action a WHERE a.effect = 'write' AND a.state = 'succeeded'
          AND NOT EXISTS (SELECT FROM runs_effect e WHERE e.action_id = a.id)
          AND NOT EXISTS (SELECT FROM runs_action part WHERE part.parent_id = a.id AND part.role = 'item')
    """,
    "I4: an effect of a call that is not proven": """
        SELECT e.id FROM runs_effect e JOIN runs_action a ON a.id = e.action_id
        WHERE a.state NOT IN ('succeeded', 'compensating', 'compensated', 'compensation_held', 'conflict')
    """,
    "I5: a run that ended well beside an unsettled write": """
        SELECT r.id FROM runs_run r JOIN runs_action a ON a.run_id = r.id
        WHERE r.state IN ('completed', 'failed') AND a.settled_at IS NULL
    """,
    "I7: more than one end": """
        SELECT run_id FROM runs_event WHERE kind IN ('completed', 'failed', 'cancelled')
        GROUP BY run_id HAVING count(*) > 1
    """,
    "I8: the calls in flight are miscounted": """
        SELECT r.id FROM runs_run r WHERE r.in_flight <> (
          SELECT count(*) FROM runs_attempt a WHERE a.run_id = r.id AND a.ended_at IS NULL)
    """,
    "I18: tries are not numbered from one without gaps": """
        SELECT a.id FROM runs_action a LEFT JOIN runs_attempt t ON t.action_id = a.id
        GROUP BY a.id, a.attempts HAVING count(t.id) <> a.attempts OR coalesce(max(t.number), 0) <> a.attempts
    """,
    "I18: an open run says how it ended, or an ended one does not": """
        SELECT id FROM runs_run WHERE (state IN ('completed', 'failed', 'cancelled')) <> (ended_at IS NOT NULL)
          OR (ended_at IS NOT NULL AND (outcome IS NULL OR reason_code IS NULL))
    """,
    "settled and unsettled are mixed up": """
        SELECT id FROM runs_action WHERE (settled_at IS NOT NULL) <> (state IN (
          'succeeded', 'rejected', 'refused_permanent', 'void', 'compensated', 'compensation_held', 'compensating'))
    """,
}


def broken(tenant_id: uuid.UUID) -> dict[str, int]:
    """Every invariant that does not hold for this tenant, with how many rows break it."""
    with wall.within(tenant_id), connection.cursor() as cursor:
        found = {}
        for name, query in QUERIES.items():
            cursor.execute(query)
            found[name] = len(cursor.fetchall())
    return {name: rows for name, rows in found.items() if rows}
