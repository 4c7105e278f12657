"""Events are numbered as they are written; what is there keeps 0, so that no table is written anew."""

from django.db import migrations, models

import runs.querysets
from runs import ddl

NUMBERED = f"""
CREATE SEQUENCE runs_event_number AS bigint;
GRANT USAGE ON SEQUENCE runs_event_number TO {ddl.APP_ROLE};
ALTER TABLE runs_event ADD COLUMN number bigint NOT NULL DEFAULT 0;
ALTER TABLE runs_event ALTER COLUMN number SET DEFAULT nextval('runs_event_number');
ALTER SEQUENCE runs_event_number OWNED BY runs_event.number;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0009_residuals"),
    ]

    operations = [
        migrations.RunSQL(
            NUMBERED,
            "ALTER TABLE runs_event DROP COLUMN number",
            state_operations=[
                migrations.AddField(
                    model_name="event",
                    name="number",
                    field=models.BigIntegerField(db_default=runs.querysets.NextNumber(), editable=False),
                ),
            ],
        ),
    ]
