"""The wall around links to requesters, and which tenants have a task that the clock has something to say about."""

from django.db import migrations

from runs import ddl

LINKS = (
    ("recovery_inputrequest", "run_id", "runs_run"),
    ("recovery_inputrequest", "action_id", "runs_action"),
    ("recovery_inputrequest", "task_id", "recovery_humantask"),
)
OPEN = "t.state IN ('open', 'claimed', 'awaiting_approval', 'executing', 'reopened')"

QUESTIONS = """
CREATE POLICY ids_for_the_sweep ON runs_evidence FOR SELECT TO CURRENT_USER USING (true);

CREATE FUNCTION app_tenants_with_due_tasks() RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  SELECT t.tenant_id FROM recovery_humantask t
   WHERE @OPEN AND t.breached_at IS NULL AND t.paused_at IS NULL AND t.due_at <= app_now()
  UNION SELECT t.tenant_id FROM recovery_humantask t WHERE @OPEN AND t.near_at <= app_now()
  UNION SELECT t.tenant_id FROM recovery_humantask t WHERE @OPEN AND t.remind_at <= app_now()
  UNION SELECT t.tenant_id FROM recovery_humantask t WHERE @OPEN AND t.snoozed_until IS NOT NULL
    AND (t.snoozed_until <= app_now() OR EXISTS (
      SELECT FROM runs_evidence e
       WHERE e.tenant_id = t.tenant_id AND e.action_id = t.action_id AND e.recorded_at > t.snoozed_at))
  UNION SELECT t.tenant_id FROM recovery_humantask t JOIN runs_person p ON p.id IN (t.claimed_by_id, t.owner_id)
   WHERE t.state IN ('open', 'claimed', 'reopened') AND NOT p.is_active
$$;
""".replace("@OPEN", OPEN)

RIGHTS = f"""
REVOKE DELETE, TRUNCATE, UPDATE ON recovery_inputrequest FROM {ddl.APP_ROLE};
GRANT UPDATE (shown_at, tries, answered_at, answer, sealed_answer) ON recovery_inputrequest TO {ddl.APP_ROLE};
"""


def statements() -> str:
    return "\n".join(
        [
            ddl.wall("recovery_inputrequest"),
            ddl.belongs("recovery_inputrequest"),
            *(ddl.link(table, column, target) for table, column, target in LINKS),
            QUESTIONS,
            RIGHTS,
        ]
    )


class Migration(migrations.Migration):
    dependencies = [("recovery", "0009_tasks")]
    operations = [migrations.RunSQL(statements(), migrations.RunSQL.noop)]
