"""A few short words on a task, and an index to find it by them."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("recovery", "0020_connector_checks"),
        ("runs", "0013_registered_by"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="humantask",
            name="tags",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=24), blank=True, db_default=[], default=list, size=None
            ),
        ),
        migrations.AddIndex(
            model_name="humantask",
            index=django.contrib.postgres.indexes.GinIndex(
                condition=models.Q(("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened"))),
                fields=["tags"],
                name="task_by_tag",
            ),
        ),
        migrations.RunSQL(
            "ALTER TABLE recovery_humantask ADD CONSTRAINT task_has_few_tags CHECK (cardinality(tags) <= 8)",
            migrations.RunSQL.noop,
        ),
    ]
