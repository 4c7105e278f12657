"""Who is at which task right now, behind the tenant wall."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import runs.ids
import runs.querysets
from runs import ddl


def statements() -> str:
    table = "console_presence"
    return "\n".join([ddl.wall(table), ddl.belongs(table), ddl.link(table, "task_id", "recovery_humantask")])


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0001_initial"),
        ("recovery", "0016_rung_sooner"),
        ("runs", "0012_slots_that_are_over"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Presence",
            fields=[
                ("id", models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("doing", models.CharField(max_length=10)),
                ("verb", models.CharField(blank=True, max_length=20)),
                ("since", models.DateTimeField(db_default=runs.querysets.AppNow())),
                ("seen_at", models.DateTimeField(db_default=runs.querysets.AppNow())),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
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
            ],
            options={
                "indexes": [models.Index(fields=["tenant", "seen_at"], name="presence_recent")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "task", "person"), name="one_presence_per_task"),
                    models.CheckConstraint(
                        condition=models.Q(("doing__in", ("looking", "deciding"))), name="presence_known"
                    ),
                ],
            },
        ),
        migrations.RunSQL(statements(), migrations.RunSQL.noop),
    ]
