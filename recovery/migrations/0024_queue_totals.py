"""What lists of the queue read: a task says what its call changed, and totals say how many tasks are alike."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import runs.ids
from runs import ddl

FACTS = """
CREATE FUNCTION app_heap(tenant uuid, workflow text, reason text, tool text) RETURNS text LANGUAGE sql IMMUTABLE
  PARALLEL SAFE AS $$
  SELECT left(encode(sha256(convert_to(
    tenant::text || chr(31) || workflow || chr(31) || reason || chr(31) || tool, 'UTF8')), 'hex'), 12)
$$;

CREATE FUNCTION app_is_open(state text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  $$ SELECT state IN ('open', 'claimed', 'awaiting_approval', 'executing', 'reopened') $$;

CREATE FUNCTION app_contests(reason text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  $$ SELECT reason IN ('conflicting_evidence', 'duplicate_effect', 'idempotency_key_conflict') $$;

-- Did this call change anything? The first line that fits answers. `besides`: a task whose row is being written.
CREATE FUNCTION app_changed_by(tenant uuid, action uuid, besides uuid DEFAULT NULL) RETURNS text LANGUAGE plpgsql
  STABLE AS $$
  DECLARE a runs_action;
  BEGIN
    SELECT * INTO a FROM runs_action WHERE tenant_id = tenant AND id = action;
    IF a.id IS NULL OR a.effect = 'read' THEN RETURN 'no'; END IF;
    IF a.state = 'conflict' OR a.verdict = 'conflict' OR (app_contests(a.reason_code) AND a.settled_at IS NULL)
      OR EXISTS (SELECT FROM recovery_humantask t WHERE t.tenant_id = tenant AND t.run_id = a.run_id
        AND t.action_id = a.id AND t.id IS DISTINCT FROM besides AND app_is_open(t.state)
        AND app_contests(t.reason_code)) THEN RETURN 'conflict'; END IF;
    IF EXISTS (SELECT FROM runs_effect e WHERE e.action_id = a.id AND e.compensated_by_id IS NOT NULL
      AND e.residual <> '') THEN RETURN 'partly_undone'; END IF;
    IF a.state = 'compensated' THEN RETURN 'undone'; END IF;
    IF a.state IN ('succeeded', 'compensating', 'compensation_held') THEN RETURN 'yes'; END IF;
    IF a.settled_at IS NOT NULL OR a.verdict = 'absent_final' THEN RETURN 'no'; END IF;
    IF a.verdict IN ('partial', 'partial_final') OR EXISTS (SELECT FROM runs_action i WHERE i.tenant_id = tenant
      AND i.parent_id = a.id AND i.role = 'item' AND i.state = 'succeeded') THEN RETURN 'partly'; END IF;
    IF EXISTS (SELECT FROM runs_attempt t WHERE t.tenant_id = tenant AND t.action_id = a.id
      AND (t.observed IS NULL OR t.observed IN ('unknown', 'ok_invalid'))) THEN RETURN 'unknown'; END IF;
    RETURN 'no';
  END $$;

-- The same for a task: about its call, or about all that its run did where it is about the run itself.
CREATE FUNCTION app_changed_for(t recovery_humantask, besides uuid DEFAULT NULL) RETURNS text LANGUAGE plpgsql
  STABLE AS $$
  BEGIN
    IF t.action_id IS NOT NULL THEN
      IF t.reason_code = 'postcondition_unproven' AND EXISTS (SELECT FROM runs_action a
        WHERE a.tenant_id = t.tenant_id AND a.id = t.action_id AND a.settled_at IS NOT NULL) THEN RETURN 'unknown'; END IF;
      RETURN app_changed_by(t.tenant_id, t.action_id, besides);
    END IF;
    IF EXISTS (SELECT FROM runs_action a WHERE a.tenant_id = t.tenant_id AND a.run_id = t.run_id AND a.effect = 'write'
      AND a.settled_at IS NULL AND a.attempts > 0 AND a.state <> 'partial_final') THEN RETURN 'unknown'; END IF;
    RETURN coalesce((
      SELECT CASE WHEN bool_or(e.compensated_by_id IS NULL) THEN 'yes' WHEN bool_or(e.residual <> '') THEN 'partly_undone'
        WHEN count(*) > 0 THEN 'undone' END
      FROM runs_effect e JOIN runs_action a ON a.tenant_id = e.tenant_id AND a.id = e.action_id
      WHERE e.tenant_id = t.tenant_id AND e.run_id = t.run_id AND a.role <> 'undo'
    ), CASE WHEN t.reason_code = 'unadmitted_effect' THEN 'yes' ELSE 'no' END);
  END $$;

-- Whether a look-up could still say what happened: a call is held once none is left that would (rule 9h).
CREATE FUNCTION app_looks_up(t recovery_humantask) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT coalesce((
    SELECT (a.id IS NULL OR a.state <> 'held' OR a.verdict IN ('probe_failed', 'processing'))
      AND jsonb_path_exists(w.manifest, '$.tools[*] ? (@.name == $tool && @.reconcile != null)',
        jsonb_build_object('tool', t.tool))
    FROM runs_run r JOIN runs_workflow w ON w.tenant_id = r.tenant_id AND w.id = r.workflow_id
    LEFT JOIN runs_action a ON a.tenant_id = r.tenant_id AND a.id = t.action_id
    WHERE r.tenant_id = t.tenant_id AND r.id = t.run_id
  ), false)
$$;

CREATE FUNCTION app_describe_task() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.heap := app_heap(NEW.tenant_id, NEW.workflow_name, NEW.reason_code, NEW.tool);
    NEW.effect := coalesce(
      (SELECT a.effect FROM runs_action a WHERE a.tenant_id = NEW.tenant_id AND a.id = NEW.action_id), '');
    NEW.looks_up := app_looks_up(NEW);
    NEW.answer := CASE
      WHEN NEW.effect = 'write' AND app_is_open(NEW.state) AND app_contests(NEW.reason_code) THEN 'conflict'
      ELSE app_changed_for(NEW, NEW.id) END;
    RETURN NEW;
  END $$;
CREATE TRIGGER task_described_anew BEFORE INSERT ON recovery_humantask FOR EACH ROW
  EXECUTE FUNCTION app_describe_task();
CREATE TRIGGER task_described_again BEFORE UPDATE OF state, reason_code, tool, workflow_name, action_id
  ON recovery_humantask FOR EACH ROW
  WHEN ((OLD.state, OLD.reason_code, OLD.tool, OLD.workflow_name, OLD.action_id)
    IS DISTINCT FROM (NEW.state, NEW.reason_code, NEW.tool, NEW.workflow_name, NEW.action_id))
  EXECUTE FUNCTION app_describe_task();

-- What a run did has changed: its tasks say so, in the transaction that changed it.
CREATE FUNCTION app_follow_facts() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF EXISTS (SELECT FROM recovery_humantask t WHERE t.tenant_id = NEW.tenant_id AND t.run_id = NEW.run_id) THEN
      UPDATE recovery_humantask t SET answer = f.answer, looks_up = f.looks_up
      FROM (SELECT o.id, app_changed_for(o) AS answer, app_looks_up(o) AS looks_up FROM recovery_humantask o
        WHERE o.tenant_id = NEW.tenant_id AND o.run_id = NEW.run_id) f
      WHERE t.tenant_id = NEW.tenant_id AND t.id = f.id AND (t.answer, t.looks_up) <> (f.answer, f.looks_up);
    END IF;
    RETURN NULL;
  END $$;
CREATE TRIGGER tasks_follow_new AFTER INSERT ON runs_action FOR EACH ROW EXECUTE FUNCTION app_follow_facts();
CREATE TRIGGER tasks_follow AFTER UPDATE OF state, verdict, reason_code, settled_at, attempts ON runs_action
  FOR EACH ROW EXECUTE FUNCTION app_follow_facts();
CREATE TRIGGER tasks_follow_new AFTER INSERT ON runs_attempt FOR EACH ROW WHEN (NEW.number > 1)
  EXECUTE FUNCTION app_follow_facts();
CREATE TRIGGER tasks_follow AFTER UPDATE OF observed ON runs_attempt FOR EACH ROW EXECUTE FUNCTION app_follow_facts();
CREATE TRIGGER tasks_follow_new AFTER INSERT ON runs_effect FOR EACH ROW EXECUTE FUNCTION app_follow_facts();
CREATE TRIGGER tasks_follow AFTER UPDATE OF compensated_by_id, residual ON runs_effect FOR EACH ROW
  EXECUTE FUNCTION app_follow_facts();
-- An open question of contradicting records speaks for every task about the same call.
CREATE TRIGGER tasks_follow_new AFTER INSERT ON recovery_humantask FOR EACH ROW
  WHEN (app_contests(NEW.reason_code)) EXECUTE FUNCTION app_follow_facts();
CREATE TRIGGER tasks_follow AFTER UPDATE OF state, reason_code ON recovery_humantask FOR EACH ROW
  WHEN (app_contests(OLD.reason_code) OR app_contests(NEW.reason_code)) EXECUTE FUNCTION app_follow_facts();
"""

KEY = (
    "tenant_id, heap, workflow_name, reason_code, tool, kind, owner_team, currency, consequence, answer, "
    "asleep, free, asked, late"
)
SUMS = ("n", "money", "silent", "held", "reading", "looking", "running")
SUMMED = ", ".join(f"sum({name}) AS {name}" for name in SUMS)
ANY = " OR ".join(f"sum({name}) <> 0" for name in SUMS)
COUNTED = """
  SELECT t.tenant_id, t.heap, t.workflow_name, t.reason_code, t.tool, t.kind, t.owner_team, t.currency, t.consequence, t.answer,
    t.snoozed_until IS NOT NULL AS asleep, t.state IN ('open', 'reopened') AND t.owner_id IS NULL AS free,
    t.state = 'awaiting_approval' AS asked, t.breached_at IS NOT NULL AS late,
    t.sign AS n, t.sign * coalesce(t.value_minor, 0)::numeric AS money,
    t.sign * (t.effect = 'write' AND (t.value_minor IS NULL OR t.currency = ''))::int AS silent,
    t.sign * (t.state IN ('claimed', 'awaiting_approval'))::int AS held, t.sign * (t.effect = 'read')::int AS reading,
    t.sign * t.looks_up::int AS looking, t.sign * (t.pause = '')::int AS running
  FROM (@ROWS) t WHERE app_is_open(t.state)
"""
INTO = f"INSERT INTO recovery_causetotal (id, {KEY}, {', '.join(SUMS)}, folded)"


def differences(name: str, event: str, tables: str, rows: str) -> str:
    """A trigger that writes what one statement on tasks changed in the totals."""
    counted = COUNTED.replace("@ROWS", rows)
    return f"""
    CREATE FUNCTION app_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        {INTO} SELECT gen_random_uuid(), d.*, false FROM (
          SELECT {KEY}, {SUMMED} FROM ({counted}) c GROUP BY {KEY} HAVING {ANY}) d;
        RETURN NULL;
      END $$;
    CREATE TRIGGER {name} AFTER {event} ON recovery_humantask REFERENCING {tables} FOR EACH STATEMENT
      EXECUTE FUNCTION app_{name}();
    """  # noqa: S608  (our own names)


COME, GONE = "SELECT 1 AS sign, came.* FROM came", "SELECT -1 AS sign, gone.* FROM gone"
RECOUNTED = COUNTED.replace(
    "@ROWS", "SELECT 1 AS sign, o.* FROM recovery_humantask o WHERE o.tenant_id = app_tenant()"
)
NEGATED = ", ".join(f"-{name}" for name in SUMS)
TOTALS = f"""
-- Whoever deletes a row of differences owns it: of two folders each adds up only what it took away itself.
CREATE FUNCTION app_fold_totals() RETURNS bigint LANGUAGE plpgsql AS $$
  DECLARE taken bigint; put bigint;
  BEGIN
    WITH due AS MATERIALIZED (SELECT DISTINCT heap FROM recovery_causetotal
        WHERE tenant_id = app_tenant() AND NOT folded),
      gone AS (DELETE FROM recovery_causetotal t USING due
        WHERE t.tenant_id = app_tenant() AND t.heap = due.heap RETURNING t.*),
      came AS ({INTO} SELECT gen_random_uuid(), d.*, true FROM (
        SELECT {KEY}, {SUMMED} FROM gone GROUP BY {KEY} HAVING {ANY}) d RETURNING 1)
    SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM came) INTO taken, put;
    RETURN taken - put;
  END $$;

-- A count of the tasks beside the totals; what differs is written as one more difference.
CREATE FUNCTION app_recount_totals() RETURNS bigint LANGUAGE plpgsql AS $$
  DECLARE wrong bigint;
  BEGIN
    LOCK TABLE recovery_humantask, recovery_causetotal IN SHARE ROW EXCLUSIVE MODE;
    WITH missing AS (SELECT {KEY}, {SUMMED} FROM ({RECOUNTED}
        UNION ALL SELECT {KEY}, {NEGATED} FROM recovery_causetotal WHERE tenant_id = app_tenant()) b
        GROUP BY {KEY} HAVING {ANY}),
      put AS ({INTO} SELECT gen_random_uuid(), missing.*, false FROM missing RETURNING 1)
    SELECT count(*) FROM put INTO wrong;
    RETURN wrong;
  END $$;

CREATE POLICY ids_for_the_sweep ON recovery_causetotal FOR SELECT TO CURRENT_USER USING (true);
CREATE FUNCTION app_tenants_to_fold() RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  SELECT tenant_id FROM recovery_causetotal WHERE NOT folded GROUP BY tenant_id HAVING count(*) >= 200
$$;

REVOKE UPDATE, TRUNCATE ON recovery_causetotal FROM {ddl.APP_ROLE};
ALTER TABLE recovery_causetotal SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 500);
ALTER TABLE recovery_humantask SET (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_analyze_scale_factor = 0.02);
"""  # noqa: S608  (our own names)

# Tasks of before are described once, and counted.
ALL_ROWS = COUNTED.replace("@ROWS", "SELECT 1 AS sign, o.* FROM recovery_humantask o")
FIRST = (
    f"{INTO} SELECT gen_random_uuid(), d.*, true"  # noqa: S608  (our own names)
    f" FROM (SELECT {KEY}, {SUMMED} FROM ({ALL_ROWS}) c GROUP BY {KEY}) d"
)
CATCH_UP = """
ALTER TABLE runs_run NO FORCE ROW LEVEL SECURITY; ALTER TABLE runs_action NO FORCE ROW LEVEL SECURITY;
ALTER TABLE runs_attempt NO FORCE ROW LEVEL SECURITY; ALTER TABLE runs_effect NO FORCE ROW LEVEL SECURITY;
ALTER TABLE runs_workflow NO FORCE ROW LEVEL SECURITY; ALTER TABLE recovery_humantask NO FORCE ROW LEVEL SECURITY;
ALTER TABLE recovery_causetotal NO FORCE ROW LEVEL SECURITY;
UPDATE recovery_humantask t SET heap = app_heap(t.tenant_id, t.workflow_name, t.reason_code, t.tool),
  effect = coalesce((SELECT a.effect FROM runs_action a WHERE a.tenant_id = t.tenant_id AND a.id = t.action_id), ''),
  looks_up = app_looks_up(t), answer = app_changed_for(t);
@COUNT;
ALTER TABLE runs_run FORCE ROW LEVEL SECURITY; ALTER TABLE runs_action FORCE ROW LEVEL SECURITY;
ALTER TABLE runs_attempt FORCE ROW LEVEL SECURITY; ALTER TABLE runs_effect FORCE ROW LEVEL SECURITY;
ALTER TABLE runs_workflow FORCE ROW LEVEL SECURITY; ALTER TABLE recovery_humantask FORCE ROW LEVEL SECURITY;
ALTER TABLE recovery_causetotal FORCE ROW LEVEL SECURITY;
""".replace("@COUNT", FIRST)


def statements() -> str:
    return "\n".join(
        [
            ddl.wall("recovery_causetotal"),
            ddl.belongs("recovery_causetotal"),
            FACTS,
            CATCH_UP,
            differences("tasks_came", "INSERT", "NEW TABLE AS came", COME),
            differences("tasks_went", "DELETE", "OLD TABLE AS gone", GONE),
            differences("tasks_moved", "UPDATE", "OLD TABLE AS gone NEW TABLE AS came", f"{GONE} UNION ALL {COME}"),
            TOTALS,
        ]
    )


class Migration(migrations.Migration):
    dependencies = [
        ("recovery", "0023_bulk"),
        ("runs", "0012_slots_that_are_over"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CauseTotal",
            fields=[
                ("id", models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("heap", models.CharField(max_length=12)),
                ("workflow_name", models.CharField(max_length=80)),
                ("reason_code", models.CharField(max_length=40)),
                ("tool", models.CharField(blank=True, max_length=120)),
                ("kind", models.CharField(max_length=30)),
                ("owner_team", models.CharField(max_length=80)),
                ("currency", models.CharField(blank=True, max_length=3)),
                ("consequence", models.PositiveSmallIntegerField()),
                ("answer", models.CharField(max_length=13)),
                ("asleep", models.BooleanField()),
                ("free", models.BooleanField()),
                ("asked", models.BooleanField()),
                ("late", models.BooleanField()),
                ("n", models.BigIntegerField()),
                ("money", models.DecimalField(decimal_places=0, max_digits=30)),
                ("silent", models.BigIntegerField()),
                ("held", models.BigIntegerField()),
                ("reading", models.BigIntegerField()),
                ("looking", models.BigIntegerField()),
                ("running", models.BigIntegerField()),
                ("folded", models.BooleanField(db_default=False, default=False)),
            ],
        ),
        migrations.AddField(
            model_name="humantask",
            name="answer",
            field=models.CharField(db_default="no", default="no", editable=False, max_length=13),
        ),
        migrations.AddField(
            model_name="humantask",
            name="effect",
            field=models.CharField(db_default="", default="", editable=False, max_length=5),
        ),
        migrations.AddField(
            model_name="humantask",
            name="heap",
            field=models.CharField(db_default="", default="", editable=False, max_length=12),
        ),
        migrations.AddField(
            model_name="humantask",
            name="looks_up",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.AddField(
            model_name="causetotal",
            name="tenant",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="runs.tenant",
            ),
        ),
        migrations.AddIndex(
            model_name="causetotal",
            index=models.Index(fields=["tenant", "heap"], name="total_by_cause"),
        ),
        migrations.AddIndex(
            model_name="causetotal",
            index=models.Index(condition=models.Q(("folded", False)), fields=["tenant"], name="total_unfolded"),
        ),
        migrations.RunSQL(statements(), migrations.RunSQL.noop),
    ]
