"""The statements of the hot path: permit, refusal, report, each one commit and one round trip (PERFORMANCE 1 and 5).

Each is a single guarded statement that authenticates the agent, checks the ordinary case and writes everything, or
writes nothing and says what stood in the way. Everybody who changes a run locks its row first; these statements do
so by updating it. No ORM here: it would cost more than both commits.
"""

from __future__ import annotations

from typing import Any

from django.db import connection

from runs import wire
from runs.wire import Row

# One plan for all calls: left to itself PostgreSQL plans a statement of this size anew each time whenever its guess
# of the costs comes out that way, which takes as long as carrying it out.
OPEN = """SELECT set_config('app.tenants', %(tenants)s, true), set_config('app.acting', 'agent', true),
  set_config('plan_cache_mode', 'force_generic_plan', true)"""

_CLIENT = """
client AS MATERIALIZED (
  SELECT c.id, c.name FROM runs_agentclient c
  WHERE c.tenant_id = %(tenant)s AND c.id = %(client)s AND c.secret_hash = %(secret)s
    AND c.revoked_at IS NULL AND c.expires_at > app_now()
)"""

_SEEN = """
seen AS MATERIALIZED (
  SELECT r.id, r.state, r.goal, r.version, r.turns, r.opened_at FROM client
  JOIN runs_run r ON r.tenant_id = %(tenant)s AND r.id = %(run)s AND r.client_id = client.id
), known AS MATERIALIZED (
  SELECT a.state, a.sealed_result, a.reason_code, a.error_field FROM runs_action a
  WHERE a.tenant_id = %(tenant)s AND a.action_id = %(action_id)s
)"""

# A call waits for every unsettled write of an earlier turn (or of those it is declared to come after), for the same
# call under another step, and for other arguments under the same step; a write that was refused, or whose tool was
# denied, does not pass under another name, and the same answer again and again is a loop. All that is one pass over
# the run's calls. What was granted after the statement's snapshot it cannot see: where the run has changed since, its
# version differs, and the case is read under the lock.
_PAST = """
past AS MATERIALIZED (
  SELECT count(*) FILTER (WHERE b.effect = 'write' AND b.settled_at IS NULL AND b.role <> 'item'
        AND b.action_id <> %(action_id)s
      AND (b.step = %(step)s OR (b.turn < seen.turns
        AND (%(after)s::text[] IS NULL OR b.tool = ANY (%(after)s::text[]))))) AS unsettled,
    count(*) FILTER (WHERE b.same AND (
      b.effect = 'write' AND (b.settled_at IS NULL OR b.state IN ('rejected', 'refused_permanent'))
      OR b.effect = 'read' AND b.settled_at IS NULL AND b.state <> 'permitted')) AS met_before,
    count(*) FILTER (WHERE b.effect = 'write' AND %(effect)s = 'write' AND b.tool = %(tool)s AND b.role = 'call'
      AND b.reason_code = 'policy_denied') AS denials,
    count(*) FILTER (WHERE b.same AND b.settled_at IS NOT NULL) AS repeats
  FROM seen CROSS JOIN LATERAL (
    SELECT a.*, a.role = 'call' AND a.tool = %(tool)s AND a.arguments_hash = %(arguments_hash)s AS same
    FROM runs_action a WHERE a.tenant_id = %(tenant)s AND a.run_id = %(run)s
  ) b
)"""

# The same conditions as recovery/work/stops.py reads under the lock.
_STANDING_STOP = """
  SELECT FROM runs_stop s
  WHERE s.tenant_id = %(tenant)s AND s.lifted_at IS NULL AND (s.until IS NULL OR s.until > app_now())
    AND (s.mode <> 'drain' OR seen.opened_at >= s.set_at)
    AND CASE s.scope WHEN 'everything' THEN true WHEN 'workflow' THEN s.name = %(workflow_name)s
      WHEN 'tool' THEN s.name = %(tool)s WHEN 'connector' THEN s.name = ANY (%(connectors)s::text[])
      ELSE s.name = %(run)s::uuid::text END
"""

# Through a circuit that is not closed a call goes as a trial or not at all, and that is decided under the lock.
_SHUT_CIRCUIT = """
  SELECT FROM runs_circuit c WHERE c.tenant_id = %(tenant)s AND c.name = %(circuit)s AND c.state <> 'closed'
"""

_TAKES_CALLS = f"""
  r.tenant_id = %(tenant)s AND r.id = %(run)s AND r.version = seen.version AND r.workflow_id = %(workflow)s
    AND r.state IN ('planning', 'executing', 'waiting_for_tool') AND r.goal = 'forward'
    AND r.tool_calls < r.max_tool_calls AND r.elapses_at > app_now()
    AND (r.deadline_at IS NULL OR r.deadline_at > app_now())
    AND NOT EXISTS (SELECT FROM known)
    AND NOT EXISTS ({_STANDING_STOP})
"""

PERMIT = f"""
WITH {_CLIENT}, {_SEEN}, {_PAST}, run AS (
  UPDATE runs_run r
  SET tool_calls = r.tool_calls + 1, in_flight = r.in_flight + 1, version = r.version + 1, finished_at = NULL,
    state = 'waiting_for_tool'
  FROM seen, past
  WHERE {_TAKES_CALLS}
    AND past.unsettled = 0 AND past.met_before = 0 AND past.denials = 0 AND past.repeats < %(same_answers)s
    AND NOT EXISTS ({_SHUT_CIRCUIT})
  RETURNING r.id, r.turns
), action AS (
  INSERT INTO runs_action (id, tenant_id, run_id, action_id, step, tool, tool_version, effect, turn, arguments_hash,
    arguments, sealed_arguments, value_minor, currency, idempotency_key, key_generation, state, version, error_field,
    verdict, attempts, fence, looks, first_dispatched_at, gate_open, external_id)
  SELECT %(action)s, %(tenant)s, run.id, %(action_id)s, %(step)s, %(tool)s, %(tool_version)s, %(effect)s, run.turns,
    %(arguments_hash)s, %(arguments)s::jsonb, %(sealed)s, %(value)s, %(currency)s, %(key)s, 1, 'permitted', 0, '',
    'none', 1, 1, 0, app_now(), false, ''
  FROM run RETURNING id, run_id
), attempt AS (
  INSERT INTO runs_attempt (id, tenant_id, run_id, action_id, number, fence, layer, idempotency_key, circuit,
    lease_until)
  SELECT %(attempt)s, %(tenant)s, action.run_id, action.id, 1, 1, %(layer)s, %(key)s, %(circuit)s,
    app_now() + make_interval(secs => %(lease)s)
  FROM action RETURNING id
), event AS (
  INSERT INTO runs_event (id, tenant_id, run_id, action_id, kind, actor, actor_kind, from_state, to_state, reason,
    request_id, data)
  SELECT %(event)s, %(tenant)s, action.run_id, action.id, 'permitted', client.name, 'agent', seen.state,
    'waiting_for_tool', '', %(request)s,
    jsonb_build_object('step', %(step)s::text, 'tool', %(tool)s::text, 'attempt', 1)
  FROM action, client, seen
)
SELECT client.name AS client, seen.state AS run_state, seen.goal, known.state AS action_state, known.sealed_result,
  known.reason_code, known.error_field, EXISTS (SELECT FROM attempt) AS granted
FROM client LEFT JOIN seen ON true LEFT JOIN known ON true
"""

# A proposal that its shape or the run's scope refuses: written down as over, and counted as a call (F082, F100).
REJECT = f"""
WITH {_CLIENT}, {_SEEN}, {_PAST}, run AS (
  UPDATE runs_run r SET tool_calls = r.tool_calls + 1, version = r.version + 1
  FROM seen, past
  WHERE {_TAKES_CALLS} AND past.met_before = 0 AND past.repeats < %(same_answers)s
  RETURNING r.id, r.turns
), action AS (
  INSERT INTO runs_action (id, tenant_id, run_id, action_id, step, tool, tool_version, effect, turn, arguments_hash,
    arguments, sealed_arguments, value_minor, currency, idempotency_key, key_generation, state, version, reason_code,
    error_field, verdict, attempts, fence, looks, gate_open, external_id, settled_at)
  SELECT %(action)s, %(tenant)s, run.id, %(action_id)s, %(step)s, %(tool)s, %(tool_version)s, %(effect)s, run.turns,
    %(arguments_hash)s, %(arguments)s::jsonb, %(sealed)s, %(value)s, %(currency)s, %(key)s, 1, 'rejected', 0,
    %(reason)s, %(field)s, 'none', 0, 0, 0, false, '', app_now()
  FROM run RETURNING id, run_id
), event AS (
  INSERT INTO runs_event (id, tenant_id, run_id, action_id, kind, actor, actor_kind, from_state, to_state, reason,
    request_id, data)
  SELECT %(event)s, %(tenant)s, action.run_id, action.id, 'rejected', client.name, 'agent', '', 'rejected',
    %(sentence)s, %(request)s,
    jsonb_build_object('step', %(step)s::text, 'tool', %(tool)s::text, 'reason_code', %(reason)s::text)
  FROM action, client
)
SELECT client.name AS client, seen.state AS run_state, seen.goal, known.state AS action_state, known.sealed_result,
  known.reason_code, known.error_field, EXISTS (SELECT FROM action) AS rejected
FROM client LEFT JOIN seen ON true LEFT JOIN known ON true
"""

# The ordinary case of a report: the only attempt, still leased, nothing else known, and a reply that proves itself.
SETTLE = f"""
WITH {_CLIENT}, found AS (
  SELECT a.id AS action, r.state AS run_state, client.name AS client
  FROM client
  JOIN runs_run r ON r.tenant_id = %(tenant)s AND r.client_id = client.id
  JOIN runs_action a ON a.tenant_id = %(tenant)s AND a.run_id = r.id
  JOIN runs_attempt t ON t.tenant_id = %(tenant)s AND t.action_id = a.id
  WHERE t.id = %(attempt)s AND t.fence = %(fence)s AND t.ended_at IS NULL AND t.lease_until > app_now()
    AND NOT t.trial
    AND a.run_id = %(run)s AND a.tool = %(tool)s AND a.state = 'permitted' AND a.fence = t.fence
    AND a.attempts = 1 AND a.looks = 0 AND a.verdict = 'none'
    AND (%(ceiling)s::bigint IS NULL OR a.value_minor IS NULL OR a.value_minor <= %(ceiling)s)
    AND NOT EXISTS (SELECT FROM jsonb_each_text(%(echo)s::jsonb) e
      WHERE a.arguments #>> string_to_array(e.key, '.') <> e.value)
    AND r.goal = 'forward' AND r.finished_at IS NULL AND r.workflow_id = %(workflow)s
    AND r.state IN ('waiting_for_tool', 'executing', 'recovering', 'verifying')
    AND NOT EXISTS (SELECT FROM runs_evidence e WHERE e.tenant_id = %(tenant)s AND e.action_id = a.id)
  FOR NO KEY UPDATE OF r, a, t
), attempt AS (
  UPDATE runs_attempt t SET ended_at = app_now(), observed = 'ok_valid', reason_code = 'completed',
    latency_ms = %(latency)s, observation = %(observation)s::jsonb
  FROM found WHERE t.tenant_id = %(tenant)s AND t.id = %(attempt)s
), action AS (
  UPDATE runs_action a SET state = 'succeeded', version = a.version + 1, settled_at = app_now(),
    reason_code = 'completed', sealed_result = %(result)s, external_id = %(external_id)s,
    due_at = app_now() + make_interval(secs => %(recount)s::float8)
  FROM found WHERE a.tenant_id = %(tenant)s AND a.id = found.action
  RETURNING a.id, a.run_id, a.step, a.tool, a.effect, a.value_minor, a.currency, a.external_id
), run AS (
  UPDATE runs_run r SET in_flight = r.in_flight - 1, version = r.version + 1,
    state = CASE WHEN r.state = 'waiting_for_tool' AND r.in_flight = 1 THEN 'executing' ELSE r.state END
  FROM found WHERE r.tenant_id = %(tenant)s AND r.id = %(run)s
  RETURNING r.id, r.state
), effect AS (
  INSERT INTO runs_effect (id, tenant_id, run_id, action_id, step, external_id, amount_minor, currency, proven_by)
  SELECT %(effect)s, %(tenant)s, action.run_id, action.id, action.step, action.external_id, action.value_minor,
    action.currency, 'response'
  FROM action WHERE action.effect = 'write'
), event AS (
  INSERT INTO runs_event (id, tenant_id, run_id, action_id, kind, actor, actor_kind, from_state, to_state, reason,
    request_id, data)
  SELECT %(event)s, %(tenant)s, run.id, action.id, 'succeeded', found.client, 'agent', found.run_state, run.state,
    '', %(request)s, jsonb_build_object('step', action.step, 'tool', action.tool, 'rule', %(rule)s::text)
  FROM action, run, found
)
SELECT client.name AS client, (SELECT action.step FROM action) AS step FROM client
"""


def permit(**params: Any) -> Row:
    """Run PERMIT. The row says who asks, what stood before, and whether the call is `granted`.

    Raises IntegrityError when a twin of this call was granted at the same moment: nothing is written.
    """
    return _round_trip(PERMIT, params) or {"client": None}


def reject(**params: Any) -> Row:
    """Run REJECT. The row says who asks, what stood before, and whether the refusal is written: `rejected`.

    Raises IntegrityError when a twin was refused at the same moment: nothing is written.
    """
    return _round_trip(REJECT, params) or {"client": None}


def settle(*, echo: str | None = None, **params: Any) -> Row:
    """Run SETTLE. `step` is None when the case was not ordinary: nothing was written, read the evidence.

    `echo`: what the reply repeats of the request, as a JSON object from path to text; it must be what was sent.
    """
    return _round_trip(SETTLE, params | {"echo": echo}) or {"client": None, "step": None}


def _round_trip(statement: str, params: dict[str, Any]) -> Row | None:
    """The tenant and the statement in one implicit transaction, one Sync."""
    connection.ensure_connection()
    # Django's wrapper also notes when the connection is broken, so that the next request gets a new one (F061).
    with connection.wrap_database_errors:
        return wire.ask(connection.connection, (OPEN, {"tenants": str(params["tenant"])}), (statement, params))
