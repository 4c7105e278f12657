"""The tenant wall, links that cannot leave it, append-only rows, and moves held by triggers."""

from django.db import migrations

from runs import ddl

TABLES = ("tenant", "workflow", "agentclient", "run", "action", "attempt", "evidence", "effect", "event")
LINKS = (
    ("run", "workflow_id", "workflow"),
    ("run", "client_id", "agentclient"),
    ("run", "parent_id", "run"),
    ("action", "run_id", "run"),
    ("attempt", "run_id", "run"),
    ("attempt", "action_id", "action"),
    ("evidence", "run_id", "run"),
    ("evidence", "action_id", "action"),
    ("effect", "run_id", "run"),
    ("effect", "action_id", "action"),
    ("effect", "compensated_by_id", "action"),
    ("event", "run_id", "run"),
    ("event", "action_id", "action"),
)

# Counters change with every call and indexes do not name them: leave room on the page, so that updates stay in place.
STORAGE = "ALTER TABLE runs_run SET (fillfactor = 70); ALTER TABLE runs_action SET (fillfactor = 80);"


def statements() -> str:
    return "\n".join(
        [
            *(ddl.wall(f"runs_{name}") for name in TABLES),
            *(ddl.belongs(f"runs_{name}") for name in ("workflow", "agentclient")),
            *(ddl.link(f"runs_{table}", column, f"runs_{target}") for table, column, target in LINKS),
            *(ddl.append_only(f"runs_{name}") for name in ("event", "evidence", "workflow")),
            f"REVOKE INSERT, UPDATE, DELETE ON state_move FROM {ddl.APP_ROLE};",
            ddl.fill_moves("run", "action"),
            ddl.held_moves("runs_run", "run"),
            ddl.held_moves("runs_action", "action"),
            STORAGE,
        ]
    )


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_initial")]
    operations = [migrations.RunSQL(statements(), migrations.RunSQL.noop)]
