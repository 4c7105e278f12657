"""One running product per module: real web, worker, broker and sandbox on a database of their own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from pytest_django import DjangoDbBlocker

from console.celery import app
from console.embedded.places import OWNER_ROLE
from tests.conftest import point_at
from tests.postgres import Cluster
from tests.stack import Stack, running
from tests.stories.billing import Agent
from tests.stories.telling import invoice

Running = Callable[[Path, str], AbstractContextManager[Stack]]


@pytest.fixture(scope="module")
def stack(cluster: Cluster, template: str, django_db_blocker: DjangoDbBlocker) -> Iterator[Stack]:
    """The product, running; commits are real and the clone is dropped afterwards."""
    with product(cluster, template, django_db_blocker) as stack:
        yield stack


@contextmanager
def product(
    cluster: Cluster, template: str, django_db_blocker: DjangoDbBlocker, *, run: Running = running
) -> Iterator[Any]:
    """A running product on a clone of its own; `run` starts it in a folder, with the owner's way to the database."""
    before, name = settings.DATABASES["default"]["NAME"], cluster.clone(template)
    point_at(cluster, name)
    with (
        django_db_blocker.unblock(),
        tempfile.TemporaryDirectory(prefix="sh-") as folder,
        run(Path(folder), cluster.dsn(OWNER_ROLE, name)) as stack,
    ):
        app.conf.broker_url = f"redis+socket://{stack.broker_socket}"
        yield stack
        connections.close_all()
    point_at(cluster, before)
    cluster.drop(name)


@pytest.fixture
def agent(stack: Stack) -> Agent:
    """An agent with an invoice of its own, so that every test finds only its own effects."""
    return Agent(stack.sandbox_url, invoice())
