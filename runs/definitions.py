"""Workflows as the server uses them: the manifest, its tools by name and their compiled schemas, cached per process.

A registered version never changes, so neither does what is cached here under its id.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from django.db.models import Max
from steadyhand.manifest import Connector, Manifest, Tool
from steadyhand.paths import MISSING, dig

from runs import schemas
from runs.models import Run, Tenant, Workflow
from runs.schemas import Schema
from runs.vault import Keys, keys


@dataclass(frozen=True)
class Definition:
    """One version of a workflow, ready for use."""

    id: uuid.UUID
    tenant_id: uuid.UUID
    name: str
    version: int
    manifest: Manifest
    keys: Keys

    @cached_property
    def tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.manifest.tools}

    def connector(self, tool: Tool) -> Connector | None:
        return self.manifest.connectors.get(tool.reconcile.connector) if tool.reconcile else None

    def connectors_of(self, tool: Tool) -> tuple[str, ...]:
        """The connectors that a call of this tool, or a look after it, goes through."""
        return tuple({part.connector for part in (tool.reconcile, tool.send) if part is not None})

    def check_arguments(self, tool: Tool, arguments: dict[str, Any]) -> tuple[str, str] | None:
        """The first breach of the tool's input schema, or of what money may look like; None if there is none."""
        return self._schema(tool, "input_schema").breach(arguments) or _money_breach(tool, arguments)

    def check_result(self, tool: Tool, result: Any) -> str | None:
        """The first breach of the tool's output schema as a sentence."""
        if tool.output_schema is None:
            return None
        found = self._schema(tool, "output_schema").breach(result)
        return f"The answer breaks its schema at {found[0] or 'its top'}: {found[1]}." if found else None

    @cached_property
    def _schemas(self) -> dict[tuple[str, str], Schema]:
        return {}

    def _schema(self, tool: Tool, field: str) -> Schema:
        """Found by name from the second use on: writing a schema out to look it up costs more than checking by it."""
        found = self._schemas.get((tool.name, field))
        return found or self._schemas.setdefault((tool.name, field), schemas.compiled(getattr(tool, field)))


@dataclass(frozen=True)
class RunFacts:
    """The part of a run that never changes, cached so that a proposal needs no read before its statement."""

    definition: Definition
    scope: dict[str, Any]
    max_attempts: int
    has_parent: bool
    origin: str


def register(tenant: Tenant, name: str, manifest: Manifest, *, by: str) -> tuple[Workflow, bool]:
    """The version that holds this manifest, new only if it differs from the latest. BadInput for a bad schema."""
    for index, tool in enumerate(manifest.tools):
        for field in ("input_schema", "output_schema"):
            schemas.check(getattr(tool, field), f"tools.{index}.{field}")
    plain = manifest.model_dump(mode="json", exclude_defaults=True)
    digest = hashlib.sha256(schemas.dump(plain).encode()).hexdigest()
    versions = Workflow.objects.for_tenant(tenant.pk).filter(name=name)
    latest = versions.order_by("-version").first()
    if latest is not None and latest.manifest_hash == digest:
        return latest, False
    number = (versions.aggregate(highest=Max("version"))["highest"] or 0) + 1
    created = Workflow.objects.create(
        tenant=tenant, name=name, version=number, manifest=plain, manifest_hash=digest, registered_by=by
    )
    return created, True


def of_workflow(workflow: Workflow, tenant: Tenant) -> Definition:
    return _definition(
        workflow.pk,
        tenant.pk,
        bytes(tenant.sealed_key),
        workflow.name,
        workflow.version,
        schemas.dump(workflow.manifest),
    )


def of_run(run: Run) -> Definition:
    """The definition that a run was opened under; the wall is open."""
    known = _by_workflow.get(run.workflow_id)
    if known is None:
        known = of_workflow(run.workflow, Tenant.objects.get(pk=run.tenant_id))
        _remember(_by_workflow, run.workflow_id, known)
    return known


def facts(tenant_id: uuid.UUID, run_id: uuid.UUID) -> RunFacts | None:
    """The unchanging facts of a run if this process has met it."""
    return _by_run.get((tenant_id, run_id))


def learn(run: Run) -> RunFacts:
    """Read the unchanging facts of a run and keep them; the wall is open."""
    found = RunFacts(
        definition=of_run(run),
        scope=run.scope,
        max_attempts=run.max_attempts,
        has_parent=run.parent_id is not None,
        origin=run.origin,
    )
    _remember(_by_run, (run.tenant_id, run.pk), found)
    return found


_by_workflow: dict[Any, Definition] = {}
_by_run: dict[Any, RunFacts] = {}
_KEPT = 10_000


def _remember(shelf: dict[Any, Any], key: Any, value: Any) -> None:
    """A bounded shelf: the oldest entry leaves first, and costs one read if it is asked for again."""
    while len(shelf) >= _KEPT:
        shelf.pop(next(iter(shelf)), None)
    shelf[key] = value


@lru_cache(maxsize=1000)
def _definition(
    workflow_id: uuid.UUID, tenant_id: uuid.UUID, sealed_key: bytes, name: str, version: int, manifest: str
) -> Definition:
    return Definition(
        workflow_id, tenant_id, name, version, Manifest.model_validate_json(manifest), keys(tenant_id, sealed_key)
    )


def _money_breach(tool: Tool, arguments: dict[str, Any]) -> tuple[str, str] | None:
    """Money is a whole number of minor units, never negative, never a float (F083)."""
    value = dig(arguments, tool.value_field) if tool.value_field else MISSING
    if tool.value_field is None or value is MISSING:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return tool.value_field, "money is a whole number of minor units, zero or more"
    return None
