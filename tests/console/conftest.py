"""Signed-in personas before a billing tenant, and their neighbour behind the wall."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.test import Client

from runs.models import Person, Tenant
from tests import factories
from tests.factories import Agent

ROLES = {"alice": "support", "omar": "oncall", "ada": "admin", "nia": "auditor", "bob": "viewer"}


@dataclass(frozen=True)
class House:
    """Nordlicht with its people and its agent; Harbor with charlie and an agent of its own."""

    nordlicht: Tenant
    harbor: Tenant
    people: dict[str, Person]
    agent: Agent
    neighbour: Agent

    def browser(self, name: str) -> Client:
        """A browser in which this person is signed in; answers of the server are never raised here."""
        client = Client(raise_request_exception=True)
        client.force_login(self.people[name], backend="allauth.account.auth_backends.AuthenticationBackend")
        return client


def make_house(manifest: dict[str, object] | None = None) -> House:
    nordlicht = factories.make_tenant("nordlicht", "Nordlicht Energie")
    harbor = factories.make_tenant("harbor", "Harbor Travel")
    people = {name: factories.make_person(name, nordlicht, role) for name, role in ROLES.items()}
    people["charlie"] = factories.make_person("charlie", harbor, "support")
    agent, neighbour = factories.make_client(nordlicht), factories.make_client(harbor)
    for one in (agent, neighbour):
        factories.register(one, manifest)
    return House(nordlicht, harbor, people, agent, neighbour)


@pytest.fixture
def house(db: None) -> House:
    return make_house()


@pytest.fixture
def sign_in(house: House) -> Callable[[str], Client]:
    return house.browser
