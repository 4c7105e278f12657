"""A run's history is read by number; both indexes change while calls go on."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("runs", "0010_event_number"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="event",
            index=models.Index(fields=["tenant", "run", "number", "id"], name="event_in_order"),
        ),
        RemoveIndexConcurrently(model_name="event", name="event_by_run"),
    ]
