"""A manifest's templates as the worker's requests use them, and the connector's own credential."""

from __future__ import annotations

import os

from steadyhand import templates
from steadyhand.manifest import Connector
from steadyhand.templates import Slots

from recovery.connectors.guard import Forbidden


def path_of(template: str, slots: Slots, *, whole: bool = False) -> str:
    """The path with its slots filled (SEC-20). Raises Forbidden for a value that would leave it."""
    try:
        return templates.path_of(template, slots, whole=whole)
    except templates.Unfillable as wrong:
        raise Forbidden(str(wrong)) from wrong


def secret_of(connector: Connector) -> dict[str, str]:
    """The connector's credential, from the environment of the worker: STEADYHAND_SECRET_<NAME>."""
    header, name = connector.secret_header, connector.secret_name
    value = os.environ.get(f"STEADYHAND_SECRET_{name.upper()}") if name else None
    return {header: value} if header and value else {}
