"""SQL that migrations share: the tenant wall, append-only tables, and state machines held by triggers.

Called from migrations only. PostgreSQL 15 is the floor.
"""

from __future__ import annotations

from runs.states import MACHINES, ONLY

APP_ROLE = "steadyhand_app"

FUNCTIONS = """
CREATE FUNCTION app_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT clock_timestamp()';

CREATE FUNCTION app_tenants() RETURNS uuid[] LANGUAGE sql STABLE PARALLEL SAFE AS
  $$ SELECT string_to_array(nullif(current_setting('app.tenants', true), ''), ',')::uuid[] $$;

-- Writing demands exactly one tenant: with none or several there is no answer, and no row passes.
CREATE FUNCTION app_tenant() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE AS
  $$ SELECT CASE WHEN cardinality(app_tenants()) = 1 THEN (app_tenants())[1] END $$;

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege'; END $$;

CREATE TABLE state_move (machine text, from_state text, to_state text, PRIMARY KEY (machine, from_state, to_state));

CREATE FUNCTION check_move() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN
    IF NOT EXISTS (
      SELECT FROM state_move WHERE machine = TG_ARGV[0] AND from_state = OLD.state AND to_state = NEW.state
    ) THEN
      RAISE EXCEPTION 'state machine %: % to % is not a move', TG_ARGV[0], OLD.state, NEW.state
        USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
  END $$;

-- The mark of a test or rehearsal database: only the owner can set it, and it is the clock itself, not a setting,
-- that changes, so no session can move time in a database that was not marked.
CREATE FUNCTION app_enable_rehearsal() RETURNS void LANGUAGE plpgsql AS
  $body$ BEGIN
    CREATE TABLE IF NOT EXISTS rehearsal_clock
      (sole boolean PRIMARY KEY DEFAULT true CHECK (sole), shift interval NOT NULL);
    INSERT INTO rehearsal_clock (shift) VALUES (interval '0') ON CONFLICT DO NOTHING;
    CREATE OR REPLACE FUNCTION app_now() RETURNS timestamptz LANGUAGE sql STABLE AS
      $$ SELECT coalesce(nullif(current_setting('app.now', true), '')::timestamptz,
                         clock_timestamp() + (SELECT shift FROM rehearsal_clock)) $$;
  END $body$;
REVOKE ALL ON FUNCTION app_enable_rehearsal() FROM PUBLIC, steadyhand_app;
"""


def wall(table: str) -> str:
    """Row-level security by tenant, forced on the owner too; composite key for composite links (SEC-28, SEC-29)."""
    key = "id" if table == "runs_tenant" else "tenant_id"
    unique = (
        ""
        if table == "runs_tenant"
        else f"ALTER TABLE {table} ADD CONSTRAINT {table}_tenant_key UNIQUE (tenant_id, id);"
    )
    return f"""
    {unique}
    ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
    ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
    CREATE POLICY tenant_wall ON {table}
      USING ({key} = ANY ((SELECT app_tenants())::uuid[])) WITH CHECK ({key} = (SELECT app_tenant()));
    """


def link(table: str, column: str, target: str) -> str:
    """A foreign key that cannot leave the tenant (SEC-28)."""
    return f"""
    ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_within_tenant
      FOREIGN KEY (tenant_id, {column}) REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY IMMEDIATE;
    """


def belongs(table: str) -> str:
    """A root of the tenant's rows; everything below it is held by composite links, and needs no key of its own."""
    return f"ALTER TABLE {table} ADD FOREIGN KEY (tenant_id) REFERENCES runs_tenant (id);"


def append_only(table: str) -> str:
    """No UPDATE, DELETE or TRUNCATE: by grant for the application, by trigger for everybody (SEC-24)."""
    return f"""
    REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM {APP_ROLE};
    CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION refuse_change();
    CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
    """


def held_moves(table: str, machine: str) -> str:
    """Hold a table's `state` to its machine."""
    return f"""
    CREATE TRIGGER {table}_moves BEFORE UPDATE OF state ON {table} FOR EACH ROW
      WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION check_move('{machine}');
    """


MOVERS = """
ALTER TABLE state_move ADD COLUMN actors text[];

CREATE OR REPLACE FUNCTION check_move() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN
    IF NOT EXISTS (
      SELECT FROM state_move WHERE machine = TG_ARGV[0] AND from_state = OLD.state AND to_state = NEW.state
        AND (actors IS NULL OR current_setting('app.acting', true) = ANY (actors))
    ) THEN
      RAISE EXCEPTION 'state machine %: % to % is not a move for %', TG_ARGV[0], OLD.state, NEW.state,
        coalesce(nullif(current_setting('app.acting', true), ''), 'nobody') USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
  END $$;
"""


def name_movers() -> str:
    """Write down which moves are only for some actors; to be repeated after every `fill_moves`."""
    lines = [
        f"UPDATE state_move SET actors = ARRAY[{', '.join(map(repr, actors))}] "
        f"WHERE machine = '{machine}' AND from_state = '{old}' AND to_state = '{new}';"
        for machine, movers in ONLY.items()
        for (old, new), actors in movers.items()
    ]
    return "\n".join(["UPDATE state_move SET actors = NULL;", *lines])


def fill_moves(*machines: str) -> str:
    """Write the machines' moves into `state_move`, replacing what stood there."""
    rows = [
        f"('{machine}', '{old}', '{new}')"
        for machine in machines
        for old, targets in MACHINES[machine].items()
        for new in targets
    ]
    names = ", ".join(f"'{machine}'" for machine in machines)
    gone = f"DELETE FROM state_move WHERE machine IN ({names});"
    return f"{gone} INSERT INTO state_move (machine, from_state, to_state) VALUES {', '.join(rows)};"
