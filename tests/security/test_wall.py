"""The tenant wall in PostgreSQL itself: what a connection sees and may write (SEC-28 to SEC-31, F149, F150)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, IntegrityError, ProgrammingError, connection, models, transaction

from console.embedded.places import APP_ROLE, OWNER_ROLE
from console.models import Presence, SavedView
from recovery.models import (
    BulkItem,
    BulkOperation,
    CallbackSecret,
    ConnectorCheck,
    DeadLetter,
    Demotion,
    Gap,
    Handover,
    HumanTask,
    InboxMessage,
    IngestRecord,
    InputRequest,
    OutsideSweep,
    RoleChange,
)
from runs import ddl, hot, wall
from runs.models import Action, Circuit, CircuitSlot, Event, RateWindow, Run, Stop, Tenant, TenantRow
from tests.factories import (
    LETTER,
    Agent,
    Case,
    make_client,
    make_person,
    make_tenant,
    open_run,
    propose,
    register,
    succeed,
    unknown_credit,
)
from tests.postgres import Cluster
from tests.recovery.stories import press

TABLES = [model for model in apps.get_models() if issubclass(model, TenantRow)]
FENCED: list[type[models.Model]] = [Tenant, *TABLES]


@pytest.fixture
def north(db: None) -> Case:
    return world("north")


@pytest.fixture
def south(db: None) -> Case:
    return world("south")


def world(slug: str) -> Case:
    """A tenant with at least one row in every table."""
    agent = make_client(make_tenant(slug))
    register(agent)
    case = unknown_credit(agent)
    other = open_run(agent)
    succeed(other)
    press("comment", case, make_person(slug, agent.tenant))
    with wall.within(agent.tenant.pk):
        action = case.action()
        evidence = {"kind": "probe", "verdict": "absent", "source": "x", "strength": 1, "fact": "Nothing."}
        action.evidence.create(
            tenant=agent.tenant, run_id=case.run_id, after_attempt=1, started_at=action.created_at, **evidence
        )
        fill_the_rest(agent, action)
    return case


def fill_the_rest(agent: Agent, action: Action) -> None:
    """Rows of the tables that an ordinary story leaves empty."""
    tenant, now = agent.tenant, action.created_at
    stopper = make_person(f"stopper-{tenant.slug}")
    Stop.objects.create(tenant=tenant, scope="tool", name="none", mode="halt", reason="a test", by=stopper)
    task = HumanTask.objects.latest("id")
    taker = make_person(f"taker-{tenant.slug}")
    Handover.objects.create(
        tenant=tenant, run_id=action.run_id, task=task, by=stopper, to=taker, reason="x", facts=[], expires_at=now
    )
    SavedView.objects.create(tenant=tenant, person=stopper, by=stopper, name="Mornings", query="view=mine")
    Presence.objects.create(tenant=tenant, task=HumanTask.objects.latest("id"), person=stopper, doing="looking")
    RateWindow.objects.create(tenant=tenant, tool="apply_credit", window=1)
    circuit = Circuit.objects.create(tenant=tenant, name="connector:none")
    CircuitSlot.objects.create(tenant=tenant, circuit=circuit, trip=0, purpose="look", lease_until=now)
    DeadLetter.objects.create(tenant=tenant, run_id=action.run_id, action=action, identity=action.action_id, **LETTER)
    CallbackSecret.objects.create(tenant=tenant, source="payments", sealed_secret=b"x")
    InputRequest.objects.create(
        tenant=tenant, run_id=action.run_id, action=action, task=HumanTask.objects.latest("id"), field="account",
        action_version=1, by=stopper, expires_at=now,
    )  # fmt: skip
    InboxMessage.objects.create(
        tenant=tenant, source="payments", message_id="m", sent_at=now, raw={}, sealed_body=b"x"
    )
    Demotion.objects.create(
        tenant=tenant, connector="payments", workflow_id=action.run.workflow_id, run_id=action.run_id, action=action,
        reason="a test", since=now,
    )  # fmt: skip
    OutsideSweep.objects.create(
        tenant=tenant, connector="payments", workflow_id=action.run.workflow_id, listed_until=now
    )
    RoleChange.objects.create(
        tenant=tenant, person=taker, by=stopper, key="k", before=["viewer"], after=[], reason="x", expires_at=now
    )
    ConnectorCheck.objects.create(
        tenant=tenant, connector="payments", workflow_id=action.run.workflow_id, by=stopper, key=f"k-{tenant.slug}"
    )
    Gap.objects.create(
        tenant=tenant, connector="payments", external_id="x", happened_at=now, raw={}, run_id=action.run_id
    )
    operation = BulkOperation.objects.create(
        tenant=tenant, verb="claim", words="a test", address="?", key="k" * 32, by=stopper
    )
    BulkItem.objects.create(
        tenant=tenant, operation=operation, place=1, task=HumanTask.objects.latest("id"), task_version=0,
        workflow_id=action.run.workflow_id,
    )  # fmt: skip
    IngestRecord.objects.create(tenant=tenant, client=agent.client, record_id="r", run_id=action.run_id)


@contextmanager
def refused(*kinds: type[Exception]) -> Iterator[None]:
    with pytest.raises(kinds or DatabaseError), transaction.atomic():
        yield


def close_wall() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('app.tenants', '', true)")


def setting() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('app.tenants', true)")
        return cursor.fetchone()[0] or ""


# --- what is seen -------------------------------------------------------------------------------------------


def owners(model: type[models.Model]) -> set[uuid.UUID]:
    """Whose rows of a table can be seen."""
    return set(model._default_manager.values_list("pk" if model is Tenant else "tenant_id", flat=True))


def test_SEC_29_F149_without_a_tenant_no_table_has_rows(north: Case) -> None:
    with wall.within(north.tenant.pk):
        assert [model for model in FENCED if not owners(model)] == []
    close_wall()
    assert [model for model in FENCED if owners(model)] == []


def test_SEC_29_one_tenant_never_sees_another(north: Case, south: Case) -> None:
    with wall.within(north.tenant.pk):
        assert [model for model in FENCED if owners(model) != {north.tenant.pk}] == []


def test_SEC_29_two_tenants_set_may_both_be_read(north: Case, south: Case) -> None:
    with wall.within(north.tenant.pk, south.tenant.pk):
        assert set(Run.objects.values_list("tenant_id", flat=True)) == {north.tenant.pk, south.tenant.pk}


def test_SEC_29_a_tenant_that_does_not_exist_sees_nothing(north: Case) -> None:
    with wall.within(uuid.uuid4()):
        assert not Run.objects.exists()


# --- what may be written ------------------------------------------------------------------------------------


def test_SEC_29_F149_without_a_tenant_nothing_is_inserted(north: Case) -> None:
    close_wall()
    with refused(ProgrammingError):
        Event.objects.create(tenant=north.tenant, kind="x", actor="x", actor_kind="rule")


def test_SEC_29_with_two_tenants_set_nothing_is_written(north: Case, south: Case) -> None:
    with wall.within(north.tenant.pk, south.tenant.pk):
        with refused(ProgrammingError):
            Event.objects.create(tenant=north.tenant, kind="x", actor="x", actor_kind="rule")
        with refused(ProgrammingError):
            Run.objects.filter(pk=north.run_id).update(intent="something else")


def test_SEC_29_a_row_cannot_be_written_for_or_moved_to_another_tenant(north: Case, south: Case) -> None:
    with wall.within(north.tenant.pk):
        with refused(ProgrammingError):
            Event.objects.create(tenant=south.tenant, kind="x", actor="x", actor_kind="rule")
        with refused(ProgrammingError):
            Run.objects.filter(pk=north.run_id).update(tenant=south.tenant)
        assert Run.objects.filter(pk=south.run_id).update(intent="theirs") == 0


LINKS = [
    (model, field)
    for model in TABLES
    for field in model._meta.get_fields()
    if isinstance(field, models.ForeignKey) and issubclass(field.related_model, TenantRow)
]


@pytest.mark.parametrize(("model", "field"), LINKS, ids=lambda part: getattr(part, "name", ""))
def test_SEC_28_no_link_can_leave_its_tenant(db: None, model: Any, field: Any) -> None:
    """Every link between tenant tables is a composite key, so that the other side is always of the same tenant."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT count(*) FROM pg_constraint k WHERE k.contype = 'f' AND k.conrelid = %s::regclass
               AND k.confrelid = %s::regclass AND k.convalidated
               AND ARRAY(SELECT attname::text FROM pg_attribute
                         WHERE attrelid = k.conrelid AND attnum = ANY (k.conkey)
                         ORDER BY array_position(k.conkey, attnum)) = ARRAY['tenant_id', %s]""",
            [model._meta.db_table, field.related_model._meta.db_table, field.column],
        )
        assert cursor.fetchone()[0] == 1


def test_SEC_28_a_foreign_row_cannot_be_linked(north: Case, south: Case) -> None:
    foreign = {name: getattr(south.run, name) for name in ("workflow_id", "client_id")}
    with wall.within(north.tenant.pk):
        for column, value in {**foreign, "parent_id": south.run_id}.items():
            with refused(IntegrityError):
                Run.objects.filter(pk=north.run_id).update(**{column: value})
        with refused(IntegrityError):
            HumanTask.objects.filter(run_id=north.run_id).update(run_id=south.run_id)


# --- the setting and the connection -------------------------------------------------------------------------


def test_SEC_30_the_wall_opens_inside_a_transaction_only(fresh_database: str) -> None:
    with pytest.raises(RuntimeError):
        wall.open_to([uuid.uuid4()])


def test_SEC_30_F150_nothing_stays_on_a_pooled_connection(fresh_database: str) -> None:
    case = world("north")
    with wall.within(case.tenant.pk):
        assert Run.objects.exists()
    assert (setting(), Run.objects.exists()) == ("", False)
    propose(case, "load_invoice", step="again")
    assert (setting(), Run.objects.exists()) == ("", False)


def test_SEC_30_F150_an_error_leaves_nothing_on_the_connection(fresh_database: str) -> None:
    case = world("north")
    with pytest.raises(ZeroDivisionError), wall.within(case.tenant.pk):
        raise ZeroDivisionError
    assert setting() == ""
    with pytest.raises(DatabaseError):
        hot._round_trip("SELECT 1 / (SELECT count(*) FROM runs_run WHERE false) AS x", {"tenant": case.tenant.pk})
    assert (setting(), Run.objects.exists()) == ("", False)
    assert propose(open_run(case.agent)).answer == "execute"


def test_SEC_30_a_rollback_to_a_savepoint_restores_the_older_tenant(north: Case, south: Case) -> None:
    with wall.within(north.tenant.pk):
        with pytest.raises(ZeroDivisionError), wall.within(south.tenant.pk):
            raise ZeroDivisionError
        assert set(Run.objects.values_list("tenant_id", flat=True)) == {north.tenant.pk}


def test_SEC_30_an_inner_block_leaves_the_outer_one_as_it_was(north: Case, south: Case) -> None:
    with wall.within(north.tenant.pk):
        with wall.within(south.tenant.pk):
            assert set(Run.objects.values_list("tenant_id", flat=True)) == {south.tenant.pk}
        assert set(Run.objects.values_list("tenant_id", flat=True)) == {north.tenant.pk}


def test_SEC_30_a_prepared_statement_follows_the_tenant_of_each_use(fresh_database: str) -> None:
    cases = [open_run(world(slug).agent) for slug in ("north", "south")]
    for case in (*cases, *cases):
        assert propose(case, "load_invoice", step=uuid.uuid4().hex).answer == "execute"
    for case in cases:
        with wall.within(case.tenant.pk):
            assert set(Action.objects.values_list("tenant_id", flat=True)) == {case.tenant.pk}


def test_SEC_29_the_questions_from_outside_give_ids_and_nothing_else(north: Case, south: Case) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT proname, prorettype::regtype::text, array_to_string(proconfig, ',') FROM pg_proc
               WHERE prosecdef AND pronamespace = 'public'::regnamespace ORDER BY proname"""
        )
        found = cursor.fetchall()
    assert {row[1] for row in found} == {"uuid"}
    # How one of them is planned is no path to anywhere.
    assert {row[2].removesuffix(",enable_seqscan=off") for row in found} == {"search_path=public, pg_temp"}
    assert len(found) == 13, found


# --- the catalogue ------------------------------------------------------------------------------------------

UNFENCED = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND NOT (
  c.relrowsecurity AND c.relforcerowsecurity AND a.attnotnull
  AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polcmd = '*' AND p.polwithcheck IS NOT NULL)
  AND EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indkey[0] = a.attnum AND i.indpred IS NULL)
) ORDER BY 1
"""
LEAKY = """
SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND (c.relkind = 'm'
  OR (c.relkind = 'v' AND NOT coalesce(c.reloptions @> '{security_invoker=true}', false))) ORDER BY 1
"""


def names(dsn: str, query: str) -> list[str]:
    with psycopg.connect(dsn) as session:
        return [row[0] for row in session.execute(query)]


def test_SEC_31_every_table_with_a_tenant_is_fenced(fresh_database: str, dsn_super: str) -> None:
    assert names(dsn_super, UNFENCED) == []
    assert names(dsn_super, LEAKY) == []
    assert len(TABLES) >= 10


def test_SEC_31_the_catalogue_test_finds_a_planted_table(fresh_database: str, dsn_owner: str, dsn_super: str) -> None:
    with psycopg.connect(dsn_owner) as session:
        session.execute("CREATE TABLE planted (tenant_id uuid NOT NULL)")
        session.execute("CREATE VIEW planted_view AS SELECT * FROM runs_run")
    assert names(dsn_super, UNFENCED) == ["planted"]
    assert names(dsn_super, LEAKY) == ["planted_view"]


def test_SEC_29_the_application_is_no_owner_and_passes_no_fence(fresh_database: str, dsn_super: str) -> None:
    with psycopg.connect(dsn_super) as session:
        role = session.execute(
            "SELECT rolsuper, rolbypassrls, rolcreaterole, rolinherit FROM pg_roles WHERE rolname = %s", [APP_ROLE]
        ).fetchone()
        owned = session.execute("SELECT count(*) FROM pg_class WHERE relowner = %s::regrole", [APP_ROLE]).fetchone()
        member = session.execute("SELECT pg_has_role(%s, %s, 'MEMBER')", [APP_ROLE, OWNER_ROLE]).fetchone()
    assert (role, owned, member) == ((False, False, False, False), (0,), (False,))


# --- append-only --------------------------------------------------------------------------------------------

APPEND_ONLY = ("runs_event", "runs_evidence", "runs_workflow", "recovery_comment")


@pytest.mark.parametrize("table", APPEND_ONLY)
@pytest.mark.parametrize("change", ["UPDATE {0} SET id = id", "DELETE FROM {0}", "TRUNCATE {0} CASCADE"])
def test_SEC_24_F152_the_application_cannot_change_history(north: Case, table: str, change: str) -> None:
    denied = pytest.raises(ProgrammingError, match="permission denied")
    with wall.within(north.tenant.pk), denied, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(change.format(table))


@pytest.mark.parametrize("table", APPEND_ONLY)
@pytest.mark.parametrize("change", ["UPDATE {0} SET id = id", "DELETE FROM {0}", "TRUNCATE {0} CASCADE"])
def test_SEC_24_F152_the_owner_cannot_change_history_either(
    history: uuid.UUID, dsn_owner: str, table: str, change: str
) -> None:
    with psycopg.connect(dsn_owner) as session:
        session.execute("SELECT set_config('app.tenants', %s, true)", [str(history)])
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"):
            session.execute(change.format(table))


@pytest.fixture(scope="module")
def history(cluster: Cluster, database: str, django_db_blocker: Any) -> uuid.UUID:
    """A tenant whose rows are committed in this module's database."""
    with django_db_blocker.unblock():
        return world("history").tenant.pk


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO state_move VALUES ('run', 'completed', 'executing')",
        "UPDATE state_move SET to_state = 'executing'",
        "DELETE FROM state_move",
        "TRUNCATE state_move",
        "SELECT app_enable_rehearsal()",
        "ALTER TABLE runs_run DISABLE ROW LEVEL SECURITY",
        "DROP TRIGGER runs_run_moves ON runs_run",
        "SET ROLE steadyhand_owner",
        "SET session_replication_role = replica",
        "CREATE TABLE mine (id int)",
        "CREATE FUNCTION app_now_too() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    ],
)
def test_the_application_cannot_loosen_what_holds_it(db: None, statement: str) -> None:
    with refused(ProgrammingError), connection.cursor() as cursor:
        cursor.execute(statement)


# --- the clock ----------------------------------------------------------------------------------------------

MOVE = "SELECT set_config('app.now', '2001-01-01T00:00:00Z', false)"


def test_in_a_database_without_the_mark_no_session_moves_the_clock(cluster: Cluster) -> None:
    cluster.provision("unmarked")
    with psycopg.connect(cluster.dsn(OWNER_ROLE, "unmarked")) as owner:
        owner.execute(ddl.FUNCTIONS)
    with psycopg.connect(cluster.dsn(APP_ROLE, "unmarked")) as session:
        session.execute(MOVE)
        assert session.execute("SELECT app_now() > now() - interval '1 minute'").fetchone() == (True,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute("SELECT app_enable_rehearsal()")
    cluster.drop("unmarked")


def test_in_a_marked_database_a_test_moves_the_clock(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(MOVE)
        cursor.execute("SELECT extract(year FROM app_now())")
        assert cursor.fetchone()[0] == 2001


def test_the_settings_of_the_tests_use_the_restricted_role(db: None) -> None:
    assert settings.DATABASES["default"]["USER"] == APP_ROLE


def test_a_client_is_known_in_its_own_tenant_only(north: Case, south: Case) -> None:
    mixed = Agent(south.tenant, north.agent.client, north.agent.token)
    with wall.within(south.tenant.pk):
        assert not type(mixed.client).objects.filter(pk=mixed.client.pk).exists()
