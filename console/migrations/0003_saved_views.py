"""Named views of the queue, behind the tenant wall."""

import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import runs.ids
import runs.querysets
from runs import ddl


def statements() -> str:
    return "\n".join([ddl.wall("console_savedview"), ddl.belongs("console_savedview")])


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0002_presence"),
        ("runs", "0012_slots_that_are_over"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(blank=True, max_length=1000)),
                ("created_at", models.DateTimeField(db_default=runs.querysets.AppNow())),
                ("changed_at", models.DateTimeField(db_default=runs.querysets.AppNow())),
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
                    "person",
                    models.ForeignKey(
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
            options={
                "indexes": [models.Index(fields=["tenant", "person"], name="views_of_tenant")],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("tenant"),
                        models.F("person"),
                        django.db.models.functions.text.Lower("name"),
                        condition=models.Q(("person__isnull", False)),
                        name="own_view_named_once",
                    ),
                    models.UniqueConstraint(
                        models.F("tenant"),
                        django.db.models.functions.text.Lower("name"),
                        condition=models.Q(("person__isnull", True)),
                        name="team_view_named_once",
                    ),
                    models.CheckConstraint(condition=models.Q(("name", ""), _negated=True), name="view_has_a_name"),
                ],
            },
        ),
        migrations.RunSQL(statements(), migrations.RunSQL.noop),
    ]
