"""What happened outside: how far each connector was listed, and what no call admits, behind the wall."""

import django.db.models.deletion
from django.db import migrations, models

import runs.ids
import runs.querysets
from runs import ddl

LINKS = (
    ("recovery_outsidesweep", "workflow_id", "runs_workflow"),
    ("recovery_outsidesweep", "run_id", "runs_run"),
    ("recovery_gap", "run_id", "runs_run"),
)
QUESTIONS = """
CREATE POLICY ids_for_the_sweep ON recovery_outsidesweep FOR SELECT TO CURRENT_USER USING (true);

CREATE FUNCTION app_tenants_to_list() RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$ SELECT tenant_id FROM recovery_outsidesweep WHERE due_at <= app_now() $$;

CREATE FUNCTION app_tenant_of_outside_sweep(wanted uuid) RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$ SELECT tenant_id FROM recovery_outsidesweep WHERE id = wanted $$;
"""
RIGHTS = f"""
REVOKE DELETE, TRUNCATE ON recovery_outsidesweep, recovery_gap FROM {ddl.APP_ROLE};
"""


def statements() -> str:
    tables = ("recovery_outsidesweep", "recovery_gap")
    return "\n".join(
        [
            *(ddl.wall(table) for table in tables),
            *(ddl.belongs(table) for table in tables),
            *(ddl.link(table, column, target) for table, column, target in LINKS),
            ddl.append_only("recovery_gap"),
            QUESTIONS,
            RIGHTS,
        ]
    )


class Migration(migrations.Migration):
    dependencies = [
        ("recovery", "0011_demotions"),
        ("runs", "0008_circuits"),
    ]

    operations = [
        migrations.CreateModel(
            name="Gap",
            fields=[
                ("id", models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("connector", models.CharField(max_length=80)),
                ("external_id", models.CharField(max_length=200)),
                ("reference", models.CharField(blank=True, max_length=200)),
                ("happened_at", models.DateTimeField()),
                ("raw", models.JSONField()),
                ("found_at", models.DateTimeField(db_default=runs.querysets.AppNow())),
                (
                    "run",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="gaps",
                        to="runs.run",
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
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "connector", "external_id"), name="gap_found_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="OutsideSweep",
            fields=[
                ("id", models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("connector", models.CharField(max_length=80)),
                ("listed_until", models.DateTimeField()),
                ("due_at", models.DateTimeField(blank=True, null=True)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("fence", models.PositiveBigIntegerField(default=0)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("failure", models.TextField(blank=True)),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.run",
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
                    models.Index(condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="sweep_due")
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "connector"), name="one_sweep_per_connector")
                ],
            },
        ),
        migrations.RunSQL(statements(), migrations.RunSQL.noop),
    ]
