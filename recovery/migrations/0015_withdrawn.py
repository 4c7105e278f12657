"""A statement whose author left is withdrawn: its task goes back to the queue (states.py), and the sweep finds it."""

from importlib import import_module

from django.db import migrations

from runs import ddl

TASKS = import_module("recovery.migrations.0010_tasks_wall")


def statements() -> str:
    """The same question as before, asked of tasks that wait for a second person too."""
    asked = TASKS.QUESTIONS[TASKS.QUESTIONS.index("CREATE FUNCTION") :]
    before, now = "t.state IN ('open', 'claimed', 'reopened')", TASKS.OPEN
    question = asked.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION").replace(before, now)
    return "\n".join([ddl.fill_moves("task"), ddl.name_movers(), question])


class Migration(migrations.Migration):
    dependencies = [("recovery", "0014_quarantine")]
    operations = [migrations.RunSQL(statements(), migrations.RunSQL.noop)]
