"""Changes of roles as people asked for them, behind the wall; what was asked for never changes."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import runs.ids
import runs.querysets
from runs import ddl

RIGHTS = f"""
REVOKE UPDATE, DELETE, TRUNCATE ON recovery_rolechange FROM {ddl.APP_ROLE};
GRANT UPDATE (ended_at, result, second_id) ON recovery_rolechange TO {ddl.APP_ROLE};
"""


def statements() -> str:
    return "\n".join([ddl.wall("recovery_rolechange"), ddl.belongs("recovery_rolechange"), RIGHTS])


class Migration(migrations.Migration):
    dependencies = [
        ("recovery", "0021_tags"),
        ("runs", "0013_registered_by"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="RoleChange",
            fields=[
                ("id", models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("key", models.CharField(max_length=64)),
                (
                    "before",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), size=None),
                ),
                (
                    "after",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=20), blank=True, size=None
                    ),
                ),
                ("reason", models.TextField()),
                ("asked_at", models.DateTimeField(db_default=runs.querysets.AppNow())),
                ("expires_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("result", models.CharField(blank=True, db_default="", default="", max_length=10)),
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
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "second",
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
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "key"), name="role_change_once_per_key"),
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=("tenant", "person"),
                        name="one_role_change_waits",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("second__isnull", True),
                            models.Q(
                                models.Q(("second", models.F("by")), _negated=True),
                                models.Q(("second", models.F("person")), _negated=True),
                            ),
                            models.Q(("result", "done"), _negated=True),
                            _connector="OR",
                        ),
                        name="role_change_by_two",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", True), ("result", "")),
                            models.Q(("ended_at__isnull", False), ("result__in", ("done", "declined", "expired"))),
                            _connector="OR",
                        ),
                        name="role_change_ends_with_a_result",
                    ),
                ],
            },
        ),
        migrations.RunSQL(statements(), migrations.RunSQL.noop),
    ]
