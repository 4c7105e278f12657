"""Years of a busy installation in seconds: runs with calls, tries, effects, events, evidence, tasks and letters.

Set-based, as the superuser with triggers and foreign keys aside; the rows are such as the product writes, and what
its triggers would have said of them is said as well. Growth tests and benchmarks share it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

A_STEP = 100_000

# A tenth of the runs wait with an open task; the first tasks are in people's hands, whose number does not grow with
# the rows. `b`: the time of the run. Ids sort by it, as the product's do.
SETUP = """
CREATE FUNCTION pg_temp.gid(kind int, g bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
  SELECT (lpad(to_hex(1700000000000 + g * 20), 12, '0') || '7' || lpad(to_hex(kind), 3, '0') || '8'
    || lpad(to_hex(g), 15, '0'))::uuid $$;
CREATE TEMP TABLE w AS SELECT (row_number() OVER (ORDER BY w.id))::int - 1 AS place, w.id, w.name, w.tenant_id,
    (SELECT c.id FROM runs_agentclient c WHERE c.tenant_id = w.tenant_id LIMIT 1) AS client_id,
    (SELECT array_agg(a.id ORDER BY a.email) FROM runs_person a) AS people
  FROM runs_workflow w;
CREATE TEMP TABLE reasons (place int, reason text, kind text, rank int, answer text, tool text);
INSERT INTO reasons VALUES
  (0, 'external_outcome_unknown', 'reconcile', 3, 'unknown', 'apply_credit'),
  (1, 'external_outcome_unknown', 'reconcile', 2, 'unknown', 'draft_reply'),
  (2, 'approval_required', 'approve', 2, 'no', 'apply_credit'),
  (3, 'retry_exhausted', 'dead_letter', 2, 'no', 'apply_credit'),
  (4, 'external_outcome_unknown', 'reconcile', 2, 'unknown', 'apply_credit'),
  (5, 'budget_exhausted', 'decide_next', 1, 'no', ''),
  (6, 'compensation_failed', 'compensation', 2, 'yes', 'apply_credit'),
  (7, 'conflicting_evidence', 'contradiction', 3, 'conflict', 'apply_credit'),
  (8, 'user_input_required', 'ask_requester', 0, 'no', 'apply_credit'),
  (9, 'retry_exhausted', 'dead_letter', 1, 'no', 'load_invoice');
"""

RUNS = """
CREATE TEMP TABLE r ON COMMIT DROP AS
SELECT g, pg_temp.gid(0, g) AS id, w.tenant_id, w.id AS workflow_id, w.name, w.client_id, w.people,
  app_now() - interval '1 hour' - (%(last)s - g) * interval '20 milliseconds' AS b,
  g / 10 AS k, x.*, g %% 100 AS m, g %% 10 = 0 AS asks
FROM generate_series(%(first)s::bigint, %(last)s::bigint) g
JOIN w ON w.place = (g / 10 + g / 1000) %% (SELECT count(*) FROM w)
JOIN reasons x ON x.place = g / 10 %% 10;
CREATE INDEX ON r (g); ANALYZE r;

INSERT INTO runs_run (id, tenant_id, workflow_id, client_id, client_ref, intent, scope, requester, customer_ref,
  trace_id, model, prompt_version, state, goal, outcome, reason_code, customer_message, operator_detail, claim,
    version,
  turns, tool_calls, in_flight, input_tokens, output_tokens, cost_minor, usage_estimated, max_turns, max_tool_calls,
  max_attempts, opened_at, elapses_at, ended_at)
SELECT id, tenant_id, workflow_id, client_id, 'case-' || g, 'Refund the double charge on invoice INV-' || g,
    '{}', '',
  CASE WHEN g %% 3 = 0 THEN 'CUS-' || g ELSE '' END, '', 'model', 'v3', s.state, 'forward', s.outcome,
  CASE WHEN asks THEN reason ELSE s.why END, '', '', '', 6, 2, 2, 0, 1800, 240, 0, false, 12, 20, 3, b,
  b + interval '30 days', CASE WHEN s.state IN ('completed', 'failed', 'cancelled') THEN b + interval '20 s' END
FROM r, LATERAL (SELECT CASE
    WHEN asks AND m < 80 THEN 'escalated' WHEN asks THEN 'verifying' WHEN m < 91 THEN 'completed' WHEN m < 94
    THEN 'failed'
    WHEN m < 96 THEN 'cancelled' WHEN m = 96 THEN 'recovering' WHEN m = 97 THEN 'executing' ELSE
    'waiting_for_tool' END,
  CASE WHEN asks AND reason = 'user_input_required' THEN 'needs_input' WHEN asks THEN 'needs_human'
    WHEN m < 91 THEN 'ok' WHEN m < 94 THEN 'fatal' WHEN m < 96 THEN 'cancelled' WHEN m = 96 THEN 'retryable' END,
  CASE WHEN m < 91 THEN 'completed' WHEN m < 94 THEN 'permission_denied' WHEN m < 96 THEN 'cancelled_by_operator'
    WHEN m = 96 THEN 'provider_rate_limited' END) s (state, outcome, why);

INSERT INTO runs_action (id, tenant_id, run_id, action_id, step, tool, tool_version, effect, turn, arguments_hash,
  arguments, sealed_arguments, value_minor, currency, idempotency_key, key_generation, state, version, reason_code,
  error_field, verdict, attempts, fence, looks, gate_open, external_id, first_dispatched_at, uncertain_since,
    created_at,
  settled_at)
SELECT pg_temp.gid(n, g), tenant_id, id, lpad(to_hex(g * 2 + n), 40, '0'), c.call, c.call, 1, c.effect, n,
    md5(g::text),
  '{"invoice": "INV-1"}', '', CASE WHEN c.effect = 'write' THEN 4200 END,
  CASE WHEN c.effect <> 'write' THEN '' WHEN g %% 4 = 0 THEN 'GBP' ELSE 'EUR' END, '', 1,
  CASE WHEN NOT c.unsettled THEN 'succeeded' WHEN answer = 'conflict' THEN 'conflict' WHEN answer = 'unknown'
    THEN 'unknown'
    WHEN reason = 'approval_required' THEN 'awaiting_approval' ELSE 'held' END,
  3, CASE WHEN c.unsettled THEN reason ELSE 'completed' END, '', 'none', 1, 1, 0, false,
  CASE WHEN c.unsettled THEN '' ELSE 'cr_' || g END, b,
  CASE WHEN c.unsettled AND answer = 'unknown' THEN b + interval '30 s' END, b + n * interval '2 s',
  CASE WHEN NOT c.unsettled THEN b + n * interval '3 s' END
FROM r, LATERAL (VALUES (1, 'load_invoice', 'read', false),
  (2, CASE WHEN tool IN ('', 'load_invoice') THEN 'apply_credit' ELSE tool END, 'write',
    asks AND tool NOT IN ('', 'load_invoice') AND answer <> 'yes')) c (n, call, effect, unsettled);

INSERT INTO runs_attempt (id, tenant_id, run_id, action_id, number, fence, layer, idempotency_key, circuit,
  dispatched_at, lease_until, ended_at, latency_ms, observed, reason_code)
SELECT pg_temp.gid(10 + n, g), tenant_id, id, pg_temp.gid(n, g), 1, 1, 'agent', '', '', b + n * interval '2 s',
  b + interval '1 minute', b + n * interval '3 s', 210,
  CASE WHEN n = 2 AND asks AND answer = 'unknown' THEN 'unknown' WHEN n = 2 AND asks THEN 'transient_reject'
    ELSE 'ok_valid' END, 'completed'
FROM r, generate_series(1, 2) n WHERE NOT (n = 2 AND asks AND reason = 'approval_required');

INSERT INTO runs_effect (id, tenant_id, run_id, action_id, step, external_id, amount_minor, currency, proven_by,
  proven_at)
SELECT pg_temp.gid(20, g), tenant_id, id, pg_temp.gid(2, g), 'apply_credit', 'cr_' || g, 4200, 'EUR', 'response',
  b + interval '6 s' FROM r WHERE NOT asks OR answer = 'yes' OR tool IN ('', 'load_invoice');

INSERT INTO runs_event (id, tenant_id, run_id, action_id, kind, actor, actor_kind, from_state, to_state, reason,
  request_id, data, at, txid, number)
SELECT pg_temp.gid(30 + n, g), tenant_id, id, CASE WHEN n > 1 THEN pg_temp.gid(n / 2, g) END,
  (ARRAY['opened', 'permitted', 'succeeded', 'permitted', 'reported'])[n], 'billing-agent', 'agent', '', '', '', '',
  '{}', b + n * interval '1 s', g, g * 5 + n
FROM r, generate_series(1, 5) n;

INSERT INTO runs_evidence (id, tenant_id, run_id, action_id, kind, verdict, count, source, strength, fact,
    external_id,
  after_attempt, started_at, recorded_at)
SELECT pg_temp.gid(40 + n, g), tenant_id, id, pg_temp.gid(2, g), 'probe', 'absent', 0, 'payments', 4,
  'Nothing was found.', '', 1, b + n * interval '1 minute', b + n * interval '1 minute'
FROM r, generate_series(1, 2) n WHERE asks AND answer = 'unknown';

INSERT INTO recovery_humantask (id, tenant_id, run_id, action_id, number, kind, cause, reason_code,
    workflow_name, tool,
  state, version, owner_team, owner_id, claimed_by_id, claimed_until, consequence, priority_reason, value_minor,
  currency, opened_at, due_at, soon_at, breached_at, snoozed_at, snoozed_until, resolved_at, resolution, heap,
    effect,
  answer, looks_up)
SELECT pg_temp.gid(50, g), tenant_id, id, about, 1000000 + g, kind, g::text, reason, name, tool,
  CASE WHEN NOT asks THEN 'resolved' WHEN k BETWEEN 100 AND 119 THEN 'claimed'
    WHEN k BETWEEN 140 AND 149 THEN 'awaiting_approval' ELSE 'open' END,
  1, 'billing-support', CASE WHEN asks AND k BETWEEN 120 AND 139 THEN people[1 + k %% 5] END,
  CASE WHEN asks AND k BETWEEN 100 AND 119 THEN people[1 + k %% 5] END,
  CASE WHEN asks AND k BETWEEN 100 AND 119 THEN app_now() + interval '20 minutes' END,
  rank, 'a write below the threshold', CASE WHEN about IS NOT NULL THEN 4200 END,
  CASE WHEN about IS NULL THEN '' WHEN g %% 4 = 0 THEN 'GBP' ELSE 'EUR' END, b + interval '40 s', d.due,
  d.due - interval '15 minutes', CASE WHEN d.due < app_now() THEN d.due END,
  CASE WHEN asks AND k BETWEEN 200 AND 259 THEN b END,
  CASE WHEN asks AND k BETWEEN 200 AND 259 THEN app_now() + interval '1 day' END,
  CASE WHEN NOT asks THEN b + interval '5 minutes' END, CASE WHEN asks THEN '' ELSE 'A look found the effect.' END,
  app_heap(tenant_id, name, reason, tool), CASE tool WHEN '' THEN '' WHEN 'load_invoice' THEN 'read' ELSE
    'write' END,
  CASE WHEN NOT asks THEN 'yes' WHEN tool = '' THEN 'yes' ELSE answer END,
  tool IN ('apply_credit', 'draft_reply') AND answer = 'unknown'
FROM r, LATERAL (SELECT CASE tool WHEN '' THEN NULL WHEN 'load_invoice' THEN pg_temp.gid(1, g) ELSE
    pg_temp.gid(2, g) END)
    a (about),
  LATERAL (SELECT app_now() + CASE WHEN k %% 5 = 1 THEN - interval '1 hour' WHEN k %% 20 = 2 THEN interval
    '5 minutes'
    ELSE interval '2 hours' END + (k %% 997) * interval '7 seconds') d (due)
WHERE asks OR m = 1;

INSERT INTO recovery_deadletter (id, tenant_id, run_id, action_id, state, version, generation, request, identity,
  completed_effects, failure_class, attempts, next_action, owner_team, recorded_at, ended_at)
SELECT pg_temp.gid(60, g), tenant_id, id, pg_temp.gid(2, g), CASE WHEN k %% 2 = 0 THEN 'recovered' ELSE
    'recorded' END, 0,
  1, '{"tool": "apply_credit", "step": "apply_credit", "arguments": {}, "arguments_hash": "0"}', lpad(to_hex(g),
    40, '0'), '[]',
  'retry_exhausted', '[{"number": 1, "at": "2026-03-14T10:00:00+00:00", "layer": "agent", "observed":
    "transient_reject", "reason_code": "provider_unavailable", "status": 503, "latency_ms": 12}]', 'Replay it
    once.', 'billing-support', b, CASE WHEN k %% 2 = 0 THEN b END
FROM r WHERE asks AND kind = 'dead_letter';
"""


def fill(dsn: str, *, runs: int, already: int = 0) -> None:
    """Write runs number `already` + 1 to `runs` for the workflows, agents and people that are there.

    `dsn` is the superuser's. The tables are in order afterwards, as autovacuum would leave them.
    """
    with _aside(dsn) as session:
        for first in range(already + 1, runs + 1, A_STEP):
            with session.transaction():
                session.execute(RUNS, {"first": first, "last": min(first + A_STEP - 1, runs)})
    in_order(dsn)


def in_order(dsn: str) -> None:
    """Totals that say what stands in the tables, and statistics."""
    with psycopg.connect(dsn, autocommit=True) as session:
        for (tenant,) in session.execute("SELECT id FROM runs_tenant").fetchall():
            with session.transaction():
                session.execute("SELECT set_config('app.tenants', %s, true)", [str(tenant)])
                session.execute("SELECT app_recount_totals()")
                session.execute("SELECT app_fold_totals()")
        session.execute("VACUUM ANALYZE")


@contextmanager
def _aside(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True, cursor_factory=psycopg.ClientCursor) as session:
        session.execute("SET session_replication_role = replica")
        session.execute("SET synchronous_commit = off")
        session.execute(SETUP)
        yield session
