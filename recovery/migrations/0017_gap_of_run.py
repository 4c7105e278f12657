"""The page of a question about what happened outside reads its gaps by run; the index is built while listings go on."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("recovery", "0016_rung_sooner"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="gap",
            index=models.Index(fields=["tenant", "run", "id"], name="gap_of_run"),
        ),
    ]
