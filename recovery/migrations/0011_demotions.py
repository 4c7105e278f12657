"""Connectors that did not keep a bound, behind the wall; what is written there is only ever lifted."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import runs.ids
from runs import ddl

LINKS = (("workflow_id", "runs_workflow"), ("run_id", "runs_run"), ("action_id", "runs_action"))
RIGHTS = f"""
REVOKE UPDATE, DELETE, TRUNCATE ON recovery_demotion FROM {ddl.APP_ROLE};
GRANT UPDATE (lifted_at, lifted_by_id, lift_reason) ON recovery_demotion TO {ddl.APP_ROLE};
"""


def statements() -> str:
    table = "recovery_demotion"
    links = (ddl.link(table, column, target) for column, target in LINKS)
    return "\n".join([ddl.wall(table), ddl.belongs(table), *links, RIGHTS])


class Migration(migrations.Migration):
    dependencies = [
        ("recovery", "0010_tasks_wall"),
        ("runs", "0007_business_key"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Demotion",
            fields=[
                ("id", models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("connector", models.CharField(max_length=80)),
                ("reason", models.TextField()),
                ("since", models.DateTimeField()),
                ("lifted_at", models.DateTimeField(blank=True, null=True)),
                ("lift_reason", models.TextField(blank=True)),
                (
                    "action",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.action",
                    ),
                ),
                (
                    "lifted_by",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
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
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("lifted_at__isnull", True)),
                        fields=("tenant", "connector", "workflow"),
                        name="one_standing_demotion",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True), name="demotion_has_a_reason"
                    ),
                ],
            },
        ),
        migrations.RunSQL(statements(), migrations.RunSQL.noop),
    ]
