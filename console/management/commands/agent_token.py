"""Issues an agent's token; it is printed this once and kept as a hash only (SEC-17)."""

from argparse import ArgumentParser
from typing import Any

from console.embedded.errors import Trouble
from console.management import desk
from recovery import clients, post
from runs import record, wall
from runs.models import AgentClient, Tenant
from runs.querysets import database_now

LONGEST_LIFE_DAYS = 366
MOST_WORKFLOWS = 100


class Command(desk.DeskCommand):
    help = "Issue a token with which an agent of a tenant calls Steadyhand; it is shown once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", metavar="TENANT_SLUG")
        parser.add_argument("name", help="the agent's name in the history, for example billing-agent")
        parser.add_argument(
            "--workflow", action="append", default=[], help="only this workflow (may be given again); default: all"
        )
        parser.add_argument("--days", type=int, default=90, help="how long it works; default: 90")

    def handle(self, *_args: Any, **options: Any) -> None:
        tenant, name = desk.tenant(options["tenant"]), desk.title(options["name"], of="agent", longest=80)
        workflows = sorted({desk.workflow(text) for text in options["workflow"]})
        _check_bounds(options["days"], workflows)
        token = _issue(tenant, name, workflows, options["days"])
        reach = "the workflows " + ", ".join(workflows) if workflows else "every workflow"
        lines = [
            f"A token for {name} of {tenant.name}, for {reach}, good for {options['days']} days.",
            "It is shown this once:",
            "",
            f"  export STEADYHAND_URL={post.console_address()}",
            f"  export STEADYHAND_TOKEN={token}",
            "",
            "The README shows how an agent uses them. To end it:  "
            f"manage.py revoke_token {tenant.slug} {desk.quoted(name)}",
            "",
        ]
        self.stdout.write("\n".join(lines))


def _check_bounds(days: int, workflows: list[str]) -> None:
    if not 1 <= days <= LONGEST_LIFE_DAYS:
        raise Trouble(f"--days {days} is out of bounds: choose 1 to {LONGEST_LIFE_DAYS}.")
    if len(workflows) > MOST_WORKFLOWS:
        raise Trouble(f"A token names at most {MOST_WORKFLOWS} workflows: leave --workflow out to allow all.")


def _issue(tenant: Tenant, name: str, workflows: list[str], days: int) -> str:
    """The token of a new client; Trouble if one of this name still works, for a name revokes."""
    with wall.within(tenant.pk):
        # The tenant's row is the lock: two of these at once would both see no such agent.
        Tenant.objects.select_for_update().get(pk=tenant.pk)
        if AgentClient.objects.filter(name=name, revoked_at=None, expires_at__gt=database_now()).exists():
            raise Trouble(
                f"{tenant.name} has an agent '{name}' whose token works: choose another name, or end that one with "
                f"'manage.py revoke_token {tenant.slug} {desk.quoted(name)}'."
            )
        client, token = clients.issue_client(tenant=tenant, name=name, workflows=workflows, days=days)
        data = {"client": str(client.pk), "name": name, "workflows": workflows, "days": days}
        record.write_event(None, "token_issued", desk.operator(), tenant_id=tenant.pk, data=data)
    return token
