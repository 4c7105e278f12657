"""The wall around stops and rate windows, the parents of actions, more moves, and counters that never fall (I8)."""

from django.db import migrations

from runs import ddl

COUNTERS = ("turns", "tool_calls", "input_tokens", "output_tokens", "cost_minor")

# The condition is evaluated without calling the function, so an ordinary call pays next to nothing for it.
NEVER_FALL = f"""
CREATE FUNCTION refuse_fall() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'a counter of a run never falls' USING ERRCODE = 'check_violation'; END $$;
CREATE TRIGGER runs_run_counters BEFORE UPDATE ON runs_run FOR EACH ROW
  WHEN ({" OR ".join(f"NEW.{name} < OLD.{name}" for name in COUNTERS)}) EXECUTE FUNCTION refuse_fall();
"""

RIGHTS = f"""
REVOKE DELETE, TRUNCATE ON runs_stop, runs_ratewindow FROM {ddl.APP_ROLE};
REVOKE UPDATE ON runs_stop FROM {ddl.APP_ROLE};
GRANT UPDATE (lifted_at, lifted_by_id, lift_reason) ON runs_stop TO {ddl.APP_ROLE};
"""


def statements() -> str:
    return "\n".join(
        [
            *(ddl.wall(f"runs_{name}") for name in ("stop", "ratewindow")),
            *(ddl.belongs(f"runs_{name}") for name in ("stop", "ratewindow")),
            ddl.link("runs_action", "parent_id", "runs_action"),
            ddl.fill_moves("run", "action"),
            NEVER_FALL,
            RIGHTS,
        ]
    )


class Migration(migrations.Migration):
    dependencies = [("runs", "0003_whole_record")]
    operations = [migrations.RunSQL(statements(), migrations.RunSQL.noop)]
