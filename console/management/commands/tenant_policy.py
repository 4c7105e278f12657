"""Shows or replaces what a tenant decides for all its workflows: hours, pauses, reminders, teams."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from console.embedded.errors import Trouble
from console.management import desk
from recovery import policies
from recovery.policies import TenantPolicy
from runs import record, wall
from runs.models import Tenant

LONGEST_FILE = 256 * 1024


class Command(desk.DeskCommand):
    help = "Print a tenant's policy, or replace it by a YAML or JSON file (docs/manifest.md, WorkingHours)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", metavar="SLUG")
        parser.add_argument("file", nargs="?", help="without it the policy in force is printed")

    def handle(self, *_args: Any, **options: Any) -> None:
        tenant = desk.tenant(options["tenant"])
        if options["file"] is None:
            with wall.within(tenant.pk):
                self.stdout.write(json.dumps(_plain(policies.of_tenant(tenant.pk)), indent=2) + "\n")
            return
        policy = _read(Path(options["file"]))
        with wall.within(tenant.pk):
            Tenant.objects.filter(pk=tenant.pk).update(policy=_plain(policy))
            data = {"policy": _plain(policy)}
            record.write_event(None, "policy_changed", desk.operator(), tenant_id=tenant.pk, data=data)
        self.stdout.write(f"The policy of {tenant.name} is replaced; it holds for tasks from now on.\n")


def _plain(policy: TenantPolicy) -> dict[str, Any]:
    return policy.model_dump(mode="json", exclude_defaults=True)


def _read(path: Path) -> TenantPolicy:
    try:
        if path.stat().st_size > LONGEST_FILE:
            raise Trouble(f"{path} is larger than {LONGEST_FILE // 1024} KiB.")
        return TenantPolicy.model_validate(yaml.safe_load(path.read_text()) or {})
    except (OSError, UnicodeDecodeError) as error:
        raise Trouble(f"{path} cannot be read: name a YAML or JSON file.") from error
    except yaml.YAMLError as error:
        raise Trouble(f"{path} is no YAML or JSON.") from error
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, one['loc'])) or 'the document'}: {one['msg']}" for one in error.errors()]
        raise Trouble("The policy is not replaced. " + "; ".join(faults[:20])) from error
