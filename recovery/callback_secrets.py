"""Signing secrets: one for each source of callbacks, and one for each endpoint that Steadyhand asks (connector kind
webhook); sealed, two of them valid while one is rotated (F078, SEC-21)."""

from __future__ import annotations

import base64
import os
from datetime import datetime, timedelta

from django.db.models import Q

from recovery.models import CallbackSecret
from recovery.rules import signatures
from runs import vault
from runs.models import Tenant
from runs.querysets import TenantQuerySet, read_clock
from runs.vault import Keys

OF_CONNECTOR = "connector:"
"""What stands before a connector's name. No source of callbacks is called so: what we signed comes in by no door."""


class NoSecret(Exception):
    """There is nothing to rotate: this source has no valid secret."""


class HasSecret(Exception):
    """This source has a valid secret already; a second one comes by rotation, which also ends the first."""


def create(tenant: Tenant, source: str) -> str:
    """The first secret of a source, as its owner gets it; shown this once. Raises HasSecret."""
    if valid(source, read_clock()).exists():
        raise HasSecret
    return _issue(tenant, source)


def rotate(tenant: Tenant, source: str, *, overlap: timedelta) -> str:
    """A new secret; those before it hold for `overlap` longer, and not beyond their own end. Raises NoSecret."""
    now = read_clock()
    before = list(valid(source, now))
    if not before:
        raise NoSecret
    for one in before:
        ends = now + overlap
        CallbackSecret.objects.filter(pk=one.pk).update(valid_until=min(one.valid_until or ends, ends))
    return _issue(tenant, source)


def valid(source: str, now: datetime) -> TenantQuerySet[CallbackSecret]:
    """The secrets of a source that hold now, behind the open wall."""
    held = CallbackSecret.objects.filter(source=source, valid_from__lte=now)
    return held.filter(Q(valid_until__isnull=True) | Q(valid_until__gt=now)).order_by("id")


def listed() -> TenantQuerySet[CallbackSecret]:
    """Every secret of the tenant behind the open wall, by source, oldest first: when it holds, never what it is."""
    return CallbackSecret.objects.defer("sealed_secret").order_by("source", "id")


def unsealed(tenant: Tenant, secrets: list[CallbackSecret]) -> list[bytes]:
    return _unsealed(vault.keys(tenant.pk, tenant.sealed_key), secrets)


def of_connector(keys: Keys, name: str, now: datetime) -> tuple[bytes, ...]:
    """The secrets with which a message to this connector's endpoint is signed now, the oldest first."""
    return tuple(_unsealed(keys, list(valid(f"{OF_CONNECTOR}{name}", now))))


def _unsealed(keys: Keys, secrets: list[CallbackSecret]) -> list[bytes]:
    return [base64.b64decode(vault.unseal(keys, one.sealed_secret)) for one in secrets]


def _issue(tenant: Tenant, source: str) -> str:
    secret = os.urandom(signatures.SECRET_BYTES)
    sealed = vault.seal(vault.keys(tenant.pk, tenant.sealed_key), base64.b64encode(secret).decode())
    CallbackSecret.objects.create(tenant=tenant, source=source, sealed_secret=sealed, valid_from=read_clock())
    return signatures.show(secret)
