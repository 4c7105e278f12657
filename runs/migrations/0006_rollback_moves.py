"""A held part of a batch may be taken back, and a final absence may come from a person's word (states.py)."""

from django.db import migrations

from runs import ddl


class Migration(migrations.Migration):
    dependencies = [("runs", "0005_open_turn")]
    operations = [migrations.RunSQL(ddl.fill_moves("action"), migrations.RunSQL.noop)]
