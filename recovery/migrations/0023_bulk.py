"""Bulk operations and their items, behind the wall: what was frozen cannot be written again."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import runs.ids
import runs.querysets
from runs import ddl

LINKS = (
    ("recovery_bulkitem", "operation_id", "recovery_bulkoperation"),
    ("recovery_bulkitem", "task_id", "recovery_humantask"),
    ("recovery_bulkitem", "workflow_id", "runs_workflow"),
    ("recovery_bulkitem", "decision_id", "recovery_decision"),
)
QUESTIONS = """
CREATE POLICY ids_for_the_sweep ON recovery_bulkoperation FOR SELECT TO CURRENT_USER USING (true);

CREATE FUNCTION app_tenants_with_bulk() RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$ SELECT tenant_id FROM recovery_bulkoperation WHERE due_at <= app_now() $$;

CREATE FUNCTION app_tenant_of_bulk(wanted uuid) RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$ SELECT tenant_id FROM recovery_bulkoperation WHERE id = wanted $$;
"""
RIGHTS = f"""
REVOKE UPDATE, DELETE, TRUNCATE ON recovery_bulkoperation, recovery_bulkitem FROM {ddl.APP_ROLE};
GRANT UPDATE (state, version, reason, more, canary, rate, stop_after, started_by_id, started_at, changed_at,
  changed_by_id, why, moved_key, ended_at, fence, lease_until, due_at) ON recovery_bulkoperation TO {ddl.APP_ROLE};
GRANT UPDATE (evidence_hash, kind, rule, sentence, canary, state, version, begun_at, decision_id, code, words,
  ended_at) ON recovery_bulkitem TO {ddl.APP_ROLE};
"""


def statements() -> str:
    return "\n".join(
        [
            *(ddl.wall(table) for table in ("recovery_bulkoperation", "recovery_bulkitem")),
            ddl.belongs("recovery_bulkoperation"),
            *(ddl.link(table, column, target) for table, column, target in LINKS),
            ddl.fill_moves("bulk", "bulk_item"),
            ddl.name_movers(),
            ddl.held_moves("recovery_bulkoperation", "bulk"),
            ddl.held_moves("recovery_bulkitem", "bulk_item"),
            QUESTIONS,
            RIGHTS,
        ]
    )


class Migration(migrations.Migration):
    dependencies = [
        ("recovery", "0022_role_changes"),
        ("runs", "0015_bulk"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="BulkOperation",
            fields=[
                ("id", models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("verb", models.CharField(max_length=20)),
                ("state", models.CharField(default="created", max_length=20)),
                ("version", models.PositiveIntegerField(default=0)),
                ("words", models.TextField()),
                ("address", models.TextField()),
                ("versions", models.CharField(blank=True, max_length=200)),
                ("key", models.CharField(max_length=32)),
                ("frozen_at", models.DateTimeField(db_default=runs.querysets.AppNow())),
                ("reason", models.TextField(blank=True)),
                ("more", models.JSONField(default=dict)),
                ("canary", models.PositiveIntegerField(default=0)),
                ("rate", models.PositiveIntegerField(default=0)),
                ("stop_after", models.PositiveIntegerField(default=1)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("changed_at", models.DateTimeField(db_default=runs.querysets.AppNow())),
                ("why", models.TextField(blank=True)),
                ("moved_key", models.CharField(blank=True, max_length=32)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("fence", models.PositiveBigIntegerField(default=0)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("due_at", models.DateTimeField(blank=True, null=True)),
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
                    "changed_by",
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
                    "started_by",
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
        ),
        migrations.CreateModel(
            name="BulkItem",
            fields=[
                ("id", models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("place", models.PositiveIntegerField()),
                ("task_version", models.PositiveIntegerField()),
                ("evidence_hash", models.CharField(blank=True, max_length=160)),
                ("kind", models.CharField(blank=True, max_length=20)),
                ("rule", models.CharField(blank=True, max_length=20)),
                ("sentence", models.TextField(blank=True)),
                ("canary", models.BooleanField(default=False)),
                ("state", models.CharField(default="pending", max_length=10)),
                ("version", models.PositiveIntegerField(default=0)),
                ("begun_at", models.DateTimeField(blank=True, null=True)),
                ("code", models.CharField(blank=True, max_length=40)),
                ("words", models.TextField(blank=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "decision",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="recovery.decision",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
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
                    "workflow",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.workflow",
                    ),
                ),
                (
                    "operation",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="items",
                        to="recovery.bulkoperation",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="bulkoperation",
            index=models.Index(condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="bulk_due"),
        ),
        migrations.AddIndex(
            model_name="bulkoperation",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", True)), fields=["tenant", "id"], name="bulk_open"
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkoperation",
            constraint=models.UniqueConstraint(fields=("tenant", "key"), name="bulk_once_per_key"),
        ),
        migrations.AddConstraint(
            model_name="bulkoperation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ("created", "cancelled")),
                    models.Q(("rate__gte", 1), ("started_at__isnull", False), ("started_by__isnull", False)),
                    _connector="OR",
                ),
                name="bulk_was_started_by_somebody",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkoperation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at__isnull", True), ("state__in", ("created", "running", "suspended"))),
                    models.Q(("ended_at__isnull", False), ("state__in", ("done", "partly_done", "cancelled"))),
                    _connector="OR",
                ),
                name="bulk_ends_with_a_time",
            ),
        ),
        migrations.AddIndex(
            model_name="bulkitem",
            index=models.Index(fields=["tenant", "operation", "state", "place"], name="bulk_item_by_state"),
        ),
        migrations.AddIndex(
            model_name="bulkitem",
            index=models.Index(fields=["tenant", "operation", "kind", "place"], name="bulk_item_by_class"),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.UniqueConstraint(fields=("tenant", "operation", "place"), name="bulk_item_place_once"),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.UniqueConstraint(
                fields=("tenant", "operation", "task"), name="bulk_item_once_per_task"
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at__isnull", True), ("state", "pending")),
                    models.Q(
                        ("ended_at__isnull", False),
                        ("state__in", ("done", "skipped", "failed")),
                        models.Q(("code", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="bulk_item_ends_with_a_code",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("kind__in", ("", "will_run", "check_first", "blocked", "not_permitted", "already_done"))
                ),
                name="bulk_item_class_known",
            ),
        ),
        migrations.RunSQL(statements(), migrations.RunSQL.noop),
    ]
