"""The wall around dead letters, callbacks and ingested records, and their moves."""

from django.db import migrations

from runs import ddl

TABLES = ("deadletter", "callbacksecret", "inboxmessage", "ingestrecord")
LINKS = (
    ("recovery_deadletter", "run_id", "runs_run"),
    ("recovery_deadletter", "action_id", "runs_action"),
    ("recovery_inboxmessage", "action_id", "runs_action"),
    ("recovery_ingestrecord", "client_id", "runs_agentclient"),
    ("recovery_ingestrecord", "run_id", "runs_run"),
)

RIGHTS = f"""
REVOKE DELETE, TRUNCATE ON recovery_deadletter, recovery_callbacksecret, recovery_inboxmessage,
  recovery_ingestrecord FROM {ddl.APP_ROLE};
REVOKE UPDATE ON recovery_callbacksecret, recovery_inboxmessage FROM {ddl.APP_ROLE};
GRANT UPDATE (valid_until) ON recovery_callbacksecret TO {ddl.APP_ROLE};
GRANT UPDATE (state, action_id) ON recovery_inboxmessage TO {ddl.APP_ROLE};
"""


def statements() -> str:
    return "\n".join(
        [
            *(ddl.wall(f"recovery_{name}") for name in TABLES),
            *(ddl.belongs(f"recovery_{name}") for name in TABLES),
            *(ddl.link(table, column, target) for table, column, target in LINKS),
            ddl.append_only("recovery_ingestrecord"),
            ddl.fill_moves("task", "decision", "dead_letter"),
            ddl.held_moves("recovery_deadletter", "dead_letter"),
            RIGHTS,
        ]
    )


class Migration(migrations.Migration):
    dependencies = [("recovery", "0004_letters_and_inbox"), ("runs", "0004_whole_wall")]
    operations = [migrations.RunSQL(statements(), migrations.RunSQL.noop)]
