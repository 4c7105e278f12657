"""The turn that is open, with what it has reserved, and when the agent said that it was done (F102, F104)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0004_whole_wall")]
    operations = [
        migrations.AddField("run", "open_turn", models.JSONField(blank=True, null=True)),
        migrations.AddField("run", "finished_at", models.DateTimeField(blank=True, null=True)),
    ]
