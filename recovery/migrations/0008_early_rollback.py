"""A run may be taken back before its first call (states.py)."""

from django.db import migrations

from runs import ddl


def statements() -> str:
    return "\n".join([ddl.fill_moves("run"), ddl.name_movers()])


class Migration(migrations.Migration):
    dependencies = [("recovery", "0007_movers")]
    operations = [migrations.RunSQL(statements(), migrations.RunSQL.noop)]
