"""A message finds the call of an earlier one of the same provider's id; a job's failure reaches every open call."""

from django.db import migrations, models

from runs import ddl


class Migration(migrations.Migration):
    dependencies = [("recovery", "0005_letters_wall")]
    operations = [
        migrations.RemoveIndex(model_name="inboxmessage", name="inbox_waiting"),
        migrations.AddIndex(
            model_name="inboxmessage",
            index=models.Index(fields=["tenant", "source", "external_id"], name="inbox_by_remote_id"),
        ),
        migrations.RunSQL(ddl.fill_moves("action"), migrations.RunSQL.noop),
    ]
