"""What is known against a connector, from a shell; who administers the tenant may trust it again."""

from __future__ import annotations

import io
import re

import pytest
from django.core.management import call_command

from console.embedded.errors import Trouble
from recovery.models import Demotion, OutsideSweep
from runs import wall
from runs.models import Run, Tenant
from runs.querysets import read_clock
from tests.factories import make_client, make_person, make_tenant, open_run, propose, register

pytestmark = pytest.mark.django_db


@pytest.fixture
def harbor(db: None) -> Tenant:
    tenant = make_tenant("harbor", "Harbor Travel")
    for name, role in (("ada", "admin"), ("alice", "support")):
        make_person(name, tenant, role)
    agent = make_client(tenant)
    register(agent)
    case = open_run(agent)
    propose(case)
    with wall.within(tenant.pk):
        run = Run.objects.get(pk=case.run_id)
        Demotion.objects.create(
            tenant=tenant, connector="payments", workflow=run.workflow, run=run, action=case.action(),
            reason="An effect turned up.", since=read_clock(),
        )  # fmt: skip
        OutsideSweep.objects.create(
            tenant=tenant, connector="mail", workflow=run.workflow, listed_until=read_clock(), due_at=read_clock(),
            failures=2, failure="The listing did not come in time.",
        )  # fmt: skip
    return tenant


def said(*arguments: str) -> str:
    out = io.StringIO()
    call_command("connector", *arguments, stdout=out)
    return out.getvalue()


def test_what_is_known_against_a_connector_is_listed(harbor: Tenant) -> None:
    told = said("list", "harbor")
    assert "payments  demoted" in told
    assert "An effect turned up." in told
    assert re.search(r"mail  listed up to .*; failed 2 times since: The listing did not come in time\.", told)


def test_an_admin_may_trust_it_again_and_nobody_else(harbor: Tenant) -> None:
    found = re.search(r"demoted .* ([0-9a-f-]{36})  under", said("list", "harbor"))
    assert found is not None
    with pytest.raises(Trouble, match="your role does not include this"):
        said("lift", "harbor", found[1], "--by", "alice@people.example", "--reason", "It is fixed.")
    told = said("lift", "harbor", found[1], "--by", "ada@people.example", "--reason", "It is fixed.")
    assert told == "Lifted. The bounds of payments count again.\n"
    assert "demoted" not in said("list", "harbor")


@pytest.mark.parametrize("demotion", ["x", "00000000-0000-0000-0000-000000000000"])
def test_what_does_not_stand_cannot_be_lifted(harbor: Tenant, demotion: str) -> None:
    with pytest.raises(Trouble, match="connector list"):
        said("lift", "harbor", demotion, "--by", "ada@people.example", "--reason", "It is fixed.")


def test_where_nothing_is_known_it_says_so(db: None) -> None:
    make_tenant("quiet", "Quiet")
    assert said("list", "quiet") == "Nothing is known against a connector of Quiet.\n"
