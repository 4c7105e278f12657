"""Who registered a version of a workflow, and how many runs are open on each without reading all that are open."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0012_slots_that_are_over")]
    operations = [
        migrations.AddField(
            model_name="workflow",
            name="registered_by",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", True)),
                fields=["tenant", "workflow"],
                name="run_open_by_version",
            ),
        ),
    ]
