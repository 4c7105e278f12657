"""Every list of the queue finds its next rows by an index; made while the tables are in use."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("recovery", "0024_queue_totals")]
    operations = [
        AddIndexConcurrently(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(
                    ("snoozed_until__isnull", True),
                    ("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened")),
                ),
                fields=["heap", "-consequence", "due_at", "id"],
                name="task_heap",
            ),
        ),
        AddIndexConcurrently(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(
                    ("snoozed_until__isnull", False),
                    ("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened")),
                ),
                fields=["heap", "-consequence", "due_at", "id"],
                name="task_heap_asleep",
            ),
        ),
        AddIndexConcurrently(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(
                    ("breached_at__isnull", False),
                    ("snoozed_until__isnull", True),
                    ("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened")),
                ),
                fields=["heap", "-consequence", "due_at", "id"],
                name="task_heap_late",
            ),
        ),
        AddIndexConcurrently(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(
                    ("owner__isnull", True), ("snoozed_until__isnull", True), ("state__in", ("open", "reopened"))
                ),
                fields=["heap", "-consequence", "due_at", "id"],
                name="task_heap_free",
            ),
        ),
        AddIndexConcurrently(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(("snoozed_until__isnull", True), ("state", "awaiting_approval")),
                fields=["heap", "-consequence", "due_at", "id"],
                name="task_heap_asked",
            ),
        ),
        AddIndexConcurrently(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(
                    ("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened")),
                    models.Q(("claimed_by__isnull", False), ("owner__isnull", False), _connector="OR"),
                ),
                fields=["heap", "-consequence", "due_at", "id"],
                name="task_heap_held",
            ),
        ),
        AddIndexConcurrently(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(
                    ("snoozed_until__isnull", True),
                    ("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened")),
                ),
                fields=["heap", "due_at"],
                name="task_heap_due",
            ),
        ),
        AddIndexConcurrently(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(
                    ("snoozed_until__isnull", True),
                    ("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened")),
                ),
                fields=["heap", "opened_at"],
                name="task_heap_opened",
            ),
        ),
        AddIndexConcurrently(
            model_name="humantask",
            index=models.Index(condition=models.Q(("state", "claimed")), fields=["claimed_by"], name="task_claimer"),
        ),
        AddIndexConcurrently(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(
                    ("owner__isnull", False),
                    ("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened")),
                ),
                fields=["owner"],
                name="task_given",
            ),
        ),
        AddIndexConcurrently(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(
                    ("breached_at__isnull", True),
                    ("paused_at__isnull", True),
                    ("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened")),
                ),
                fields=["tenant", "soon_at"],
                name="task_running",
            ),
        ),
        AddIndexConcurrently(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(
                    ("snoozed_until__isnull", False),
                    ("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened")),
                ),
                fields=["heap", "due_at"],
                name="task_asleep_due",
            ),
        ),
        AddIndexConcurrently(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(
                    ("snoozed_until__isnull", False),
                    ("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened")),
                ),
                fields=["heap", "opened_at"],
                name="task_asleep_opened",
            ),
        ),
        AddIndexConcurrently(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(("state__in", ("open", "claimed", "awaiting_approval", "executing", "reopened"))),
                fields=["tenant", "id"],
                name="task_newest",
            ),
        ),
        AddIndexConcurrently(
            model_name="deadletter",
            index=models.Index(
                condition=models.Q(("state__in", ("recovered", "discarded"))),
                fields=["tenant", "id"],
                name="dead_letter_ended",
            ),
        ),
    ]
