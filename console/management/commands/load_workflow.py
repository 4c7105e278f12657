"""Registers a workflow from a file, as an agent's SDK does at its start."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from steadyhand.contract import Manifest
from steadyhand.identity import BadInput

from console.api.parsing import Fault
from console.management import desk, manifests
from recovery import cautions
from recovery.work import outside
from runs import definitions, record, wall
from runs.models import Tenant, Workflow


class Command(desk.DeskCommand):
    help = "Register a workflow from a YAML or JSON manifest; one that did not change stays the version it is."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", metavar="TENANT_SLUG")
        parser.add_argument("name", help="the workflow's name, as agents ask for it")
        parser.add_argument("file", type=Path)

    def handle(self, *_args: Any, **options: Any) -> None:
        tenant, name, file = desk.tenant(options["tenant"]), desk.workflow(options["name"]), options["file"]
        manifest = manifests.read(file)
        try:
            workflow, created = _register(tenant, name, manifest)
        except BadInput as wrong:
            raise manifests.told(file, [Fault(wrong.field, wrong.remedy)]) from wrong
        said = "is registered" if created else "was registered already, and did not change"
        self.stdout.write(f"{name}, version {workflow.version} of {tenant.name}, {said}.\n")
        for field, remedy in cautions.of(manifest):
            self.stdout.write(f"Warning: {field}: {remedy}.\n")


def _register(tenant: Tenant, name: str, manifest: Manifest) -> tuple[Workflow, bool]:
    with wall.within(tenant.pk):
        # The tenant's row is the lock: the next version's number is read before it is written.
        Tenant.objects.select_for_update().get(pk=tenant.pk)
        workflow, created = definitions.register(tenant, name, manifest, by=desk.operator().name)
        if created:
            outside.enrol(workflow, manifest)
            data = {"workflow": name, "version": workflow.version}
            record.write_event(None, "workflow_registered", desk.operator(), tenant_id=tenant.pk, data=data)
    return workflow, created
