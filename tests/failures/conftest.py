"""One tenant, its agent, its people and a scripted outside world; after every story the invariants are asked."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runs.models import Person, Tenant
from tests.factories import Agent, Case, billing_manifest, make_client, make_person, make_tenant, open_run, register
from tests.recovery.invariants import broken
from tests.recovery.stories import Looks, script

Opener = Callable[..., Case]


@pytest.fixture
def tenant(db: None) -> Iterator[Tenant]:
    tenant = make_tenant("north")
    yield tenant
    assert broken(tenant.pk) == {}


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return make_client(tenant)


@pytest.fixture
def opened(agent: Agent) -> Opener:
    """A run under the billing manifest with some of its promises changed."""

    def opened(*, run: dict[str, Any] | None = None, **promises: Any) -> Case:
        register(agent, billing_manifest(**promises))
        return open_run(agent, **(run or {}))

    return opened


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    return script(monkeypatch)


@pytest.fixture
def alice(tenant: Tenant) -> Person:
    return make_person("alice", tenant)


@pytest.fixture
def omar(tenant: Tenant) -> Person:
    return make_person("omar", tenant, "oncall")
