"""One tenant, its agent, its people and a scripted outside world; after every story the invariants are asked."""

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import pytest
from steadyhand.manifest import Manifest

from runs.models import Person, Tenant
from tests.factories import Agent, Case, billing_manifest, make_client, make_person, make_tenant, open_run, register
from tests.recovery import recomputed
from tests.recovery.invariants import broken
from tests.recovery.rebuild import differing
from tests.recovery.stories import Looks, script

Opener = Callable[..., Case]


@pytest.fixture
def tenant(db: None) -> Iterator[Tenant]:
    tenant = make_tenant("north")
    yield tenant
    assert broken(tenant.pk) == {}
    assert differing(tenant.pk) == {}
    assert recomputed.differing(tenant.pk) == {}


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return make_client(tenant)


@pytest.fixture
def opened(agent: Agent) -> Opener:
    """A run under the billing manifest with some of its promises changed."""

    def opened(*, run: dict[str, Any] | None = None, **promises: Any) -> Case:
        register(agent, manifest(**promises))
        return open_run(agent, **(run or {}))

    return opened


def manifest(**promises: Any) -> dict[str, Any]:
    """The billing manifest; what is no part of it as a whole is a promise of the credit."""
    whole = {name: promises.pop(name) for name in list(promises) if name in signature(billing_manifest).parameters}
    more = {name: promises.pop(name) for name in list(promises) if name in Manifest.model_fields}
    made = billing_manifest(**whole) | more
    next(tool for tool in made["tools"] if tool["name"] == "apply_credit").update(promises)
    return made


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    return script(monkeypatch)


@pytest.fixture
def alice(tenant: Tenant) -> Person:
    return make_person("alice", tenant)


@pytest.fixture
def omar(tenant: Tenant) -> Person:
    return make_person("omar", tenant, "oncall")
