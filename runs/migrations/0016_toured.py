"""Who has seen the tour of the queue is not shown it again."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0015_bulk")]
    operations = [
        migrations.AddField("person", "toured_at", models.DateTimeField(blank=True, null=True)),
    ]
