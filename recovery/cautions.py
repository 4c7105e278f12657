"""What a manifest may declare and will not do what its author expects: told at registration, never a refusal."""

from __future__ import annotations

from collections.abc import Iterator

from steadyhand.contract import Manifest
from steadyhand.manifest import Tool

from recovery.connectors import guard, python

Caution = tuple[str, str]
"""A dotted path in the manifest, and a sentence about it."""


def of(manifest: Manifest) -> list[Caution]:
    """Every caution about a manifest, in its order."""
    return [*_about_connectors(manifest), *_about_keys(manifest)]


def _about_connectors(manifest: Manifest) -> Iterator[Caution]:
    """An address that no request may go to, or a package that is not there: every look-up through it will fail."""
    for name, connector in manifest.connectors.items():
        named = connector.entry_point or name
        if connector.kind == "python" and not python.is_installed(named):
            yield f"connectors.{name}", f"no installed package offers a connector {named}: nothing can be asked there"
        if connector.base_url is None:
            continue
        try:
            guard.named(connector.base_url, allow_hosts=connector.allow_hosts)
        except guard.Forbidden as refused:
            yield f"connectors.{name}.base_url", f"nothing can be asked there: {str(refused).rstrip('.')}"


def _about_keys(manifest: Manifest) -> Iterator[Caution]:
    for number, tool in enumerate(manifest.tools):
        lacks = _lacks(tool)
        if lacks:
            yield (
                f"tools.{number}.idempotency",
                f"the key licenses no second send: {lacks}; a lost reply goes to a look-up or a person",
            )


def _lacks(tool: Tool) -> str:
    """What is missing before the key of a write counts."""
    key = tool.idempotency
    if tool.effect != "write" or key.kind != "key" or key.retention_seconds == "unlimited":
        return ""
    if key.retention_seconds is None:
        return "declare retention_seconds"
    bounded = tool.reconcile is not None and tool.reconcile.max_in_flight_seconds is not None
    return "" if bounded else "declare reconcile.max_in_flight_seconds, or retention_seconds unlimited"
