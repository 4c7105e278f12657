"""Tests of connectors that people ask for, behind the wall; the sweep finds those that wait."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import runs.ids
import runs.querysets
from runs import ddl

QUESTIONS = """
CREATE POLICY ids_for_the_sweep ON recovery_connectorcheck FOR SELECT TO CURRENT_USER USING (true);

CREATE FUNCTION app_tenants_with_checks() RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  SELECT tenant_id FROM recovery_connectorcheck
   WHERE ended_at IS NULL AND nudged_at <= app_now() - interval '2 seconds' $$;

CREATE FUNCTION app_tenant_of_check(wanted uuid) RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$ SELECT tenant_id FROM recovery_connectorcheck WHERE id = wanted $$;
"""
RIGHTS = f"""
REVOKE UPDATE, DELETE, TRUNCATE ON recovery_connectorcheck FROM {ddl.APP_ROLE};
GRANT UPDATE (nudged_at, lease_until, fence, ended_at, outcome, fact, status, latency_ms)
  ON recovery_connectorcheck TO {ddl.APP_ROLE};
"""


def statements() -> str:
    table = "recovery_connectorcheck"
    return "\n".join(
        [ddl.wall(table), ddl.belongs(table), ddl.link(table, "workflow_id", "runs_workflow"), QUESTIONS, RIGHTS]
    )


class Migration(migrations.Migration):
    dependencies = [
        ("recovery", "0019_queue_filters"),
        ("runs", "0013_registered_by"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ConnectorCheck",
            fields=[
                ("id", models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("connector", models.CharField(max_length=80)),
                ("key", models.CharField(max_length=64)),
                ("asked_at", models.DateTimeField(db_default=runs.querysets.AppNow())),
                ("nudged_at", models.DateTimeField(db_default=runs.querysets.AppNow())),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("fence", models.PositiveBigIntegerField(db_default=0, default=0)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("outcome", models.CharField(blank=True, db_default="", default="", max_length=20)),
                ("fact", models.TextField(blank=True, db_default="", default="")),
                ("status", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("latency_ms", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.tenant",
                    ),
                ),
                (
                    "workflow",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.workflow",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "connector", "-id"], name="check_latest"),
                    models.Index(
                        condition=models.Q(("ended_at__isnull", True)), fields=["nudged_at"], name="check_waiting"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "key"), name="check_once_per_key"),
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=("tenant", "connector"),
                        name="one_check_under_way",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", True), ("outcome", "")),
                            models.Q(("ended_at__isnull", False), models.Q(("outcome", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="check_ends_with_an_outcome",
                    ),
                ],
            },
        ),
        migrations.RunSQL(statements(), migrations.RunSQL.noop),
    ]
