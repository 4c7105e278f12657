"""Tasks offered to colleagues, behind the wall, with their moves, and the question which tenants have one that is over."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import runs.ids
import runs.querysets
from runs import ddl

TABLE = "recovery_handover"
QUESTION = """
CREATE POLICY ids_for_the_sweep ON recovery_handover FOR SELECT TO CURRENT_USER USING (true);

CREATE FUNCTION app_tenants_with_due_offers() RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS
  $$ SELECT tenant_id FROM recovery_handover WHERE state = 'offered' AND expires_at <= app_now() $$;
"""
RIGHTS = f"""
REVOKE DELETE, TRUNCATE, UPDATE ON {TABLE} FROM {ddl.APP_ROLE};
GRANT UPDATE (state, version, ended_at) ON {TABLE} TO {ddl.APP_ROLE};
"""


def statements() -> str:
    links = (("run_id", "runs_run"), ("task_id", "recovery_humantask"))
    return "\n".join(
        [
            ddl.wall(TABLE),
            ddl.belongs(TABLE),
            *(ddl.link(TABLE, column, target) for column, target in links),
            ddl.fill_moves("handover"),
            ddl.name_movers(),
            ddl.held_moves(TABLE, "handover"),
            QUESTION,
            RIGHTS,
        ]
    )


class Migration(migrations.Migration):
    dependencies = [
        ("recovery", "0017_gap_of_run"),
        ("runs", "0012_slots_that_are_over"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Handover",
            fields=[
                ("id", models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("state", models.CharField(default="offered", max_length=20)),
                ("version", models.PositiveIntegerField(default=0)),
                ("reason", models.TextField()),
                ("facts", models.JSONField()),
                ("offered_at", models.DateTimeField(db_default=runs.querysets.AppNow())),
                ("expires_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
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
                    "task",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="offers",
                        to="recovery.humantask",
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
                    "to",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "offered")), fields=["tenant", "to", "task"], name="offers_open"
                    ),
                    models.Index(condition=models.Q(("state", "offered")), fields=["expires_at"], name="offers_due"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "offered")),
                        fields=("tenant", "task"),
                        name="one_open_offer_per_task",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("by", models.F("to")), _negated=True), name="offer_is_to_another"
                    ),
                ],
            },
        ),
        migrations.RunSQL(statements(), migrations.RunSQL.noop),
    ]
