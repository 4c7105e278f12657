"""The tenant wall around tasks and decisions, their moves, and the two questions asked from outside the wall."""

from django.db import migrations

from runs import ddl

TABLES = ("humantask", "decision", "comment")
LINKS = (
    ("recovery_humantask", "run_id", "runs_run"),
    ("recovery_humantask", "action_id", "runs_action"),
    ("recovery_decision", "run_id", "runs_run"),
    ("recovery_decision", "action_id", "runs_action"),
    ("recovery_decision", "task_id", "recovery_humantask"),
    ("recovery_comment", "task_id", "recovery_humantask"),
)

# A sweep or a worker knows no tenant yet. These functions answer with ids and nothing else; they run as the owner,
# whom the read policies below let see the few tables that the answer needs (SEC-29).
QUESTIONS = """
CREATE POLICY ids_for_the_sweep ON runs_attempt FOR SELECT TO CURRENT_USER USING (true);
CREATE POLICY ids_for_the_sweep ON runs_run FOR SELECT TO CURRENT_USER USING (true);
CREATE POLICY ids_for_the_sweep ON runs_action FOR SELECT TO CURRENT_USER USING (true);
CREATE POLICY ids_for_the_sweep ON recovery_humantask FOR SELECT TO CURRENT_USER USING (true);
CREATE POLICY ids_for_the_sweep ON recovery_decision FOR SELECT TO CURRENT_USER USING (true);
CREATE POLICY ids_for_the_door ON runs_tenant FOR SELECT TO CURRENT_USER USING (true);

CREATE FUNCTION app_due_tenants() RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT tenant_id FROM runs_attempt WHERE ended_at IS NULL AND lease_until <= app_now()
  UNION SELECT tenant_id FROM runs_action WHERE due_at <= app_now()
  UNION SELECT tenant_id FROM runs_run
        WHERE ended_at IS NULL AND (elapses_at <= app_now() OR deadline_at <= app_now())
          AND state IN ('planning', 'executing', 'recovering')
  UNION SELECT tenant_id FROM recovery_humantask WHERE state = 'claimed' AND claimed_until <= app_now()
  UNION SELECT tenant_id FROM recovery_decision
        WHERE state IN ('requested', 'running') AND nudged_at <= app_now() - interval '5 seconds'
$$;

CREATE FUNCTION app_tenant_of_decision(wanted uuid) RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$ SELECT tenant_id FROM recovery_decision WHERE id = wanted $$;

CREATE FUNCTION app_tenant_of_slug(wanted text) RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$ SELECT id FROM runs_tenant WHERE slug = wanted $$;
"""


# Facts are not taken back: retention is the owner's work, and what never changes may not be changed (SEC-24).
RIGHTS = f"""
REVOKE DELETE, TRUNCATE ON runs_tenant, runs_workflow, runs_agentclient, runs_run, runs_action, runs_attempt,
  runs_evidence, runs_effect, runs_event, recovery_humantask, recovery_decision, recovery_comment FROM {ddl.APP_ROLE};
REVOKE UPDATE ON runs_tenant, runs_agentclient, runs_effect FROM {ddl.APP_ROLE};
GRANT UPDATE (name, policy, tasks_opened) ON runs_tenant TO {ddl.APP_ROLE};
GRANT UPDATE (workflows, secret_hash, expires_at, revoked_at) ON runs_agentclient TO {ddl.APP_ROLE};
GRANT UPDATE (compensated_by_id) ON runs_effect TO {ddl.APP_ROLE};
"""


def statements() -> str:
    return "\n".join(
        [
            *(ddl.wall(f"recovery_{name}") for name in TABLES),
            *(ddl.link(table, column, target) for table, column, target in LINKS),
            ddl.append_only("recovery_comment"),
            ddl.fill_moves("task", "decision"),
            ddl.held_moves("recovery_humantask", "task"),
            ddl.held_moves("recovery_decision", "decision"),
            QUESTIONS,
            RIGHTS,
        ]
    )


class Migration(migrations.Migration):
    dependencies = [("recovery", "0002_initial"), ("runs", "0002_wall")]
    operations = [migrations.RunSQL(statements(), migrations.RunSQL.noop)]
