"""The sweep is told of an order that nobody has begun within a second, and no longer only after five (C05, F055)."""

from django.db import migrations

DUE = """
CREATE OR REPLACE FUNCTION app_due_tenants() RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  SELECT tenant_id FROM runs_attempt WHERE ended_at IS NULL AND lease_until <= app_now()
  UNION SELECT tenant_id FROM runs_action WHERE due_at <= app_now()
  UNION SELECT tenant_id FROM runs_run
        WHERE ended_at IS NULL AND (elapses_at <= app_now() OR deadline_at <= app_now())
          AND state IN ('planning', 'executing', 'recovering')
  UNION SELECT tenant_id FROM recovery_humantask WHERE state = 'claimed' AND claimed_until <= app_now()
  UNION SELECT tenant_id FROM recovery_decision
        WHERE state IN ('requested', 'running') AND nudged_at <= app_now() - interval '1 second'
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("recovery", "0015_withdrawn")]
    operations = [migrations.RunSQL(DUE, migrations.RunSQL.noop)]
