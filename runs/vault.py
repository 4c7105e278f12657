"""What may be read by one reader only: sealed arguments and results, and the keyed hashes that stand in for them.

Each tenant has its own random key, sealed under the installation's keys (rotatable, first key seals). Keys are cached
per process. Raw arguments are read by the worker and by an audited reveal, never by a page (SEC-34).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import uuid
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

NONCE_BYTES = 12


@dataclass(frozen=True)
class Keys:
    """One tenant's keys, each for one purpose."""

    identity: bytes
    sealing: AESGCM
    remote: bytes


def new_sealed_key() -> bytes:
    """A fresh tenant key, sealed for the Tenant row."""
    return _installation().encrypt(os.urandom(32))


def keys(tenant_id: uuid.UUID, sealed_key: bytes | memoryview) -> Keys:
    """The tenant's keys; unsealing costs once per process."""
    return _unsealed(tenant_id, bytes(sealed_key))


def hash_arguments(of: Keys, canonical: bytes) -> str:
    """A keyed hash: a plain hash of a small value could be guessed (SEC-34)."""
    return hmac.new(of.identity, b"arguments\0" + canonical, hashlib.sha256).hexdigest()


def action_id(of: Keys, *, run_id: uuid.UUID, step: str, tool: str, tool_version: int, arguments_hash: str) -> str:
    """The identity of a logical call: no time, no attempt number, nothing that a model supplies (I9)."""
    message = "\0".join(("action", str(run_id), step, tool, str(tool_version), arguments_hash))
    return hmac.new(of.identity, message.encode(), hashlib.sha256).hexdigest()[:40]


def remote_key(of: Keys, action: str, generation: int) -> str:
    """The idempotency key that the remote system sees: derived, stable for all tries of one generation."""
    return hmac.new(of.remote, f"{action}\0{generation}".encode(), hashlib.sha256).hexdigest()[:40]


def seal(of: Keys, value: Any) -> bytes:
    """Encrypt a JSON value for this tenant."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + of.sealing.encrypt(nonce, json.dumps(value, separators=(",", ":")).encode(), None)


def unseal(of: Keys, sealed: bytes | memoryview) -> Any:
    """The JSON value of `seal`; raises InvalidTag if it was sealed for another tenant or changed since."""
    data = bytes(sealed)
    return json.loads(of.sealing.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], None))


def hash_secret(secret: str) -> bytes:
    """The peppered hash of an API secret, as stored and as compared (SEC-17)."""
    return hmac.new(settings.TOKEN_PEPPER.encode(), secret.encode(), hashlib.sha256).digest()


@lru_cache(maxsize=1)
def _installation() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.SEALING_KEYS])


@lru_cache(maxsize=4096)
def _unsealed(tenant_id: uuid.UUID, sealed_key: bytes) -> Keys:
    root = _installation().decrypt(sealed_key)
    return Keys(
        identity=_derive(root, tenant_id, b"identity"),
        sealing=AESGCM(_derive(root, tenant_id, b"sealing")),
        remote=_derive(root, tenant_id, b"remote"),
    )


def _derive(root: bytes, tenant_id: uuid.UUID, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=tenant_id.bytes, info=purpose).derive(root)


def new_secret() -> str:
    """256 random bits as URL-safe text."""
    return base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
