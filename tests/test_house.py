"""The ground the tests stand on: the role they use, the databases they get."""

import os
import subprocess
import sys

import psycopg
import pytest
from django.db import connection

ROLE = "SELECT current_user, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"


@pytest.mark.django_db
def test_tests_sign_in_as_the_restricted_role() -> None:
    with connection.cursor() as cursor:
        cursor.execute(ROLE)
        assert cursor.fetchone() == ("steadyhand_app", False, False)


@pytest.mark.django_db
def test_the_restricted_role_owns_nothing_and_makes_nothing() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE rolname = %s",
            ["steadyhand_app"],
        )
        assert cursor.fetchone() == (0,)
        with pytest.raises(Exception, match="permission denied for schema public"):
            cursor.execute("CREATE TABLE mine ()")


def test_the_restricted_role_cannot_become_the_owner(fresh_database: str, dsn_app: str) -> None:
    with psycopg.connect(dsn_app) as session, pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute("SET ROLE steadyhand_owner")


def test_a_fresh_database_keeps_commits_for_other_processes(fresh_database: str, child_env: dict[str, str]) -> None:
    script = (
        "import django; django.setup()\nfrom django.db import connection\nprint(connection.settings_dict['NAME'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=child_env, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == fresh_database


def test_two_fresh_databases_share_nothing(fresh_database: str) -> None:
    assert fresh_database in os.environ["DATABASE_URL"]
