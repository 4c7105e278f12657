"""An index over the open tasks for each filter that the queue offers."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("recovery", "0018_handover"),
        ("runs", "0012_slots_that_are_over"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddIndex(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened"))),
                fields=["tenant", "workflow_name", "reason_code", "tool"],
                name="task_by_cause",
            ),
        ),
        migrations.AddIndex(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened"))),
                fields=["tenant", "reason_code"],
                name="task_by_reason",
            ),
        ),
        migrations.AddIndex(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened"))),
                fields=["tenant", "tool"],
                name="task_by_tool",
            ),
        ),
        migrations.AddIndex(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened"))),
                fields=["tenant", "owner_team"],
                name="task_by_team",
            ),
        ),
        migrations.AddIndex(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened"))),
                fields=["tenant", "currency", "value_minor"],
                name="task_by_amount",
            ),
        ),
    ]
