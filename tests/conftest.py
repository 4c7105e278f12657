"""The doors to the database: rolled back per test, or a fresh clone where commits must be real."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from pytest_django import DjangoDbBlocker

from console.embedded.places import APP_ROLE, OWNER_ROLE, SUPER_ROLE
from tests.parts import PARTS
from tests.postgres import TEMPLATE, Cluster

# Playwright's loop runs in the test's own thread; Django's guard would refuse the ORM beside it.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

TESTS = Path(__file__).resolve().parent
ALIASES = {"default": APP_ROLE, "owner": OWNER_ROLE}
CLONING = {"fresh_database", "live_server", "transactional_db"}


# Debian's own browser; without these it looks up addresses of its maker's at every start.
CHROMIUM = "/usr/bin/chromium"
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
]


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, object]:
    return {"executable_path": CHROMIUM, "args": CHROMIUM_ARGUMENTS}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # tests/races/… need not say `races` again; the folder does.
        for folder in set(item.path.relative_to(TESTS).parts[:-1]) & set(PARTS):
            item.add_marker(folder)
        marker = item.get_closest_marker("django_db")
        if marker and (marker.kwargs.get("transaction") or CLONING & set(getattr(item, "fixturenames", ()))):
            raise pytest.UsageError(
                f"{item.nodeid}: append-only tables cannot be flushed; drop the django_db mark and use "
                "fresh_database (or live_server) for tests that commit."
            )


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The server, started once; unmigrated databases of your own come from `cluster.provision(name)`."""
    cluster = Cluster(Path(os.environ["STEADYHAND_TEST_HOME"]))
    cluster.start()
    yield cluster
    connections.close_all()
    cluster.stop()


@pytest.fixture(scope="session")
def template(cluster: Cluster, django_db_blocker: DjangoDbBlocker) -> str:
    """The migrated database that all others are cloned from; it carries the rehearsal mark."""
    with django_db_blocker.unblock():
        point_at(cluster, TEMPLATE)
        call_command("migrate", database="owner", verbosity=0, interactive=False)
        connections.close_all()
    with psycopg.connect(cluster.dsn(OWNER_ROLE, TEMPLATE)) as session:
        session.execute("SELECT app_enable_rehearsal()")
    return TEMPLATE


@pytest.fixture(scope="module")
def database(cluster: Cluster, template: str) -> Iterator[str]:
    """The module's own clone, for tests marked django_db: each is rolled back."""
    name = cluster.clone(template)
    point_at(cluster, name)
    yield name
    connections.close_all()
    cluster.drop(name)


@pytest.fixture(scope="module")
def django_db_setup(database: str) -> None:
    """pytest-django would make and flush databases of its own; ours come from the template."""


@pytest.fixture
def fresh_database(cluster: Cluster, template: str, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """A clone for one test: commits are real, other processes see them, and it is dropped afterwards."""
    before = {alias: settings.DATABASES[alias]["NAME"] for alias in ALIASES}
    name = cluster.clone(template)
    point_at(cluster, name)
    with django_db_blocker.unblock():
        yield name
        connections.close_all()
    point_at(cluster, before["default"])
    cluster.drop(name)


@pytest.fixture
def transactional_db(fresh_database: str) -> None:
    """What pytest-django's live_server asks for: the server answers from the test's own clone."""


@pytest.fixture
def dsn_app(cluster: Cluster) -> str:
    """A plain connection string for the current database as the restricted role (outside any rollback)."""
    return cluster.dsn(APP_ROLE, settings.DATABASES["default"]["NAME"])


@pytest.fixture
def dsn_owner(cluster: Cluster) -> str:
    """The same database as the role that owns its tables."""
    return cluster.dsn(OWNER_ROLE, settings.DATABASES["default"]["NAME"])


@pytest.fixture
def dsn_super(cluster: Cluster) -> str:
    """The same database as the cluster's superuser: for looking at the catalog, never for the code under test."""
    return cluster.dsn(SUPER_ROLE, settings.DATABASES["default"]["NAME"])


@pytest.fixture
def child_env(fresh_database: str) -> dict[str, str]:
    """The environment for a child process that must see this test's database."""
    return {**os.environ, "STEADYHAND_TEST_CHILD": "1", "DJANGO_SETTINGS_MODULE": "tests.settings"}


def point_at(cluster: Cluster, database: str) -> None:
    """Turn Django's connections, and the environment that children inherit, to `database`."""
    connections.close_all()
    for alias, role in ALIASES.items():
        # In place: every thread's connection wrapper holds this very dictionary.
        settings.DATABASES[alias].update(NAME=database, USER=role, HOST=str(cluster.places.sockets))
    os.environ["DATABASE_URL"] = cluster.dsn(APP_ROLE, database)
    os.environ["DATABASE_OWNER_URL"] = cluster.dsn(OWNER_ROLE, database)
