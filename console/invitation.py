"""The link that makes the first admin: issued while there is no admin, good once, known to us by its digest."""

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import QuerySet

from console.embedded.errors import Trouble
from console.models import Invitation
from recovery import permissions
from runs.querysets import database_now

LASTS = timedelta(hours=24)


def issue() -> str:
    """A new token, good for a day; older unused ones end with it. Trouble once there is an admin."""
    if an_admin_exists():
        raise Trouble("There is an admin already: ask an admin for an account.")
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        Invitation.objects.filter(used_at=None).delete()
        Invitation.objects.create(digest=_digest(token), expires_at=database_now() + LASTS)
    return token


def is_open(token: str) -> bool:
    """Whether the link would still be accepted; asking uses nothing up."""
    return not an_admin_exists() and _waiting(token).exists()


def redeem(token: str) -> bool:
    """Use the link up; call it in the transaction that makes the person. False if somebody was faster."""
    return not an_admin_exists() and _waiting(token).update(used_at=database_now()) == 1


def an_admin_exists() -> bool:
    """Whether somebody may give others a role; a person with any other role cannot."""
    return permissions.an_admin_exists()


def somebody_exists() -> bool:
    return get_user_model()._default_manager.exists()


def _waiting(token: str) -> QuerySet[Invitation]:
    return Invitation.objects.filter(digest=_digest(token), used_at=None, expires_at__gt=database_now())


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
