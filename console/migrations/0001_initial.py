"""The installation's own tables: the first admin's invitation, and the cache that every process shares."""

from django.db import migrations, models

import runs.querysets

# As Django's createcachetable would make it; here, so that one command migrates everything.
CACHE = """
CREATE TABLE console_cache (
    cache_key varchar(255) PRIMARY KEY,
    value text NOT NULL,
    expires timestamptz NOT NULL
);
CREATE INDEX console_cache_expires ON console_cache (expires);
"""


class Migration(migrations.Migration):
    initial = True
    dependencies = [("runs", "0002_wall")]
    operations = [
        migrations.CreateModel(
            name="Invitation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(db_default=runs.querysets.AppNow())),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.RunSQL(CACHE, "DROP TABLE console_cache"),
    ]
