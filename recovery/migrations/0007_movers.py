"""Who may make which move: some are a person's alone, some the worker's (DECISIONS 1)."""

from django.db import migrations

from runs import ddl


def statements() -> str:
    machines = ("run", "action", "task", "decision", "dead_letter")
    return "\n".join([ddl.MOVERS, ddl.fill_moves(*machines), ddl.name_movers()])


class Migration(migrations.Migration):
    dependencies = [("recovery", "0006_callbacks"), ("runs", "0006_rollback_moves")]
    operations = [migrations.RunSQL(statements(), migrations.RunSQL.noop)]
