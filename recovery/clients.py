"""Agent credentials: issue a token, and read who claims to be calling (SEC-17).

A token reads sh_<tenant>_<client>_<secret>. Reading it proves nothing: the claimed tenant opens the wall, and the
statement that acts joins on the secret's hash.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta

from runs import vault
from runs.models import AgentClient, Tenant
from runs.querysets import TenantQuerySet, database_now, read_clock

PREFIX = "sh_"


class NotAuthenticated(Exception):
    """The token is malformed, unknown, revoked or expired."""


@dataclass(frozen=True)
class Credentials:
    """Who claims to be calling, and the hash that would prove it."""

    tenant_id: uuid.UUID
    client_id: uuid.UUID
    secret_hash: bytes


def issue_client(*, tenant: Tenant, name: str, workflows: list[str], days: int = 90) -> tuple[AgentClient, str]:
    """A new client and its token; the token is shown this once. The wall is open to the tenant."""
    secret = vault.new_secret()
    client = AgentClient.objects.create(
        tenant=tenant,
        name=name,
        secret_hash=vault.hash_secret(secret),
        workflows=workflows,
        expires_at=read_clock() + timedelta(days=days),
    )
    return client, f"{PREFIX}{tenant.pk.hex}_{client.pk.hex}_{secret}"


def parse_token(text: str) -> Credentials:
    """Read a token without asking the database. Raises NotAuthenticated."""
    parts = text.removeprefix(PREFIX).split("_", 2)
    if not text.startswith(PREFIX) or len(parts) != 3 or not 20 <= len(parts[2]) <= 100:
        raise NotAuthenticated
    try:
        tenant_id, client_id = uuid.UUID(hex=parts[0]), uuid.UUID(hex=parts[1])
    except ValueError:
        raise NotAuthenticated from None
    return Credentials(tenant_id, client_id, vault.hash_secret(parts[2]))


def authenticate(who: Credentials) -> AgentClient:
    """The client behind the credentials, inside the open wall. Raises NotAuthenticated."""
    client = claimed(who).first()
    if client is None:
        raise NotAuthenticated
    return client


def gone(client: AgentClient) -> str:
    """Why a run of this client is gone on with by nobody, in words; empty while its token works."""
    if client.revoked_at is None and client.expires_at > read_clock():
        return ""
    return f"the token of {client.name} {'was ended' if client.revoked_at else 'has run out'}"


def claimed(who: Credentials) -> TenantQuerySet[AgentClient]:
    """The client behind the credentials, if they are good at this moment."""
    return AgentClient.objects.filter(
        pk=who.client_id, secret_hash=who.secret_hash, revoked_at__isnull=True, expires_at__gt=database_now()
    )
