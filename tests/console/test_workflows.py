"""Settings, workflows: what is registered, one version in words and as JSON, and what differs between two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.builders import revisions, workflows
from recovery import permissions
from runs import wall
from runs.models import Workflow
from tests import factories
from tests.console.conftest import House
from tests.console.desk import said
from tests.console.test_queue import OVERHEAD

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]
LIST, ONE, DIFF = (
    "/settings/workflows/",
    "/settings/workflows/billing-case/",
    "/settings/workflows/billing-case/diff/",
)
KEY = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": 86400}


def again(house: House, **changes: Any) -> None:
    """One more version."""
    factories.register(house.agent, factories.billing_manifest(**changes))


def test_the_rail_leads_to_the_settings(house: House, sign_in: SignIn) -> None:
    alice = sign_in("alice")
    assert 'href="/settings/workflows/"' in alice.get("/").content.decode()
    assert alice.get("/settings/?tenant=nordlicht").headers["Location"] == "/settings/workflows/?tenant=nordlicht"


def test_a_workflow_stands_in_its_newest_version_with_who_registered_it_and_who_runs_on_it(
    house: House, sign_in: SignIn
) -> None:
    factories.open_run(house.agent)
    again(house, sla_seconds=7200)
    page = said(sign_in("bob").get(LIST))
    assert "1 workflow" in page
    assert "billing-case" in page
    assert "4 tools, 3 writes" in page
    assert "none 1 on older versions" in page
    assert "billing-agent" in page
    factories.open_run(house.agent)
    assert "1 1 on older versions" in said(sign_in("bob").get(LIST))


def test_an_ended_run_is_not_open(house: House, sign_in: SignIn) -> None:
    factories.complete(house.agent)
    assert "4 tools, 3 writes 2 cautions none" in said(sign_in("bob").get(LIST))


def test_what_will_not_do_what_its_author_expects_is_said(house: House, sign_in: SignIn) -> None:
    again(house, idempotency={"kind": "key", "header": "Idempotency-Key"})
    assert "3 cautions" in said(sign_in("alice").get(LIST))
    page = said(sign_in("alice").get(ONE))
    assert "tools.1.idempotency the key licenses no second send: declare retention_seconds" in page
    assert "connectors.payments.base_url nothing can be asked there" in page


def test_a_version_says_what_each_tool_may_do(house: House, sign_in: SignIn) -> None:
    again(house, idempotency=KEY, requires_approval=True, value_threshold=5000, deadline_seconds=600)
    page = said(sign_in("alice").get(ONE))
    assert "Billing case, version 2 of Nordlicht Energie" in page
    assert "looked up at payments , final after 11 min, at most 6 times" in page
    assert "key in Idempotency-Key , kept 1 d" in page
    assert "by void_credit , for 30 d" in page
    assert "waits for an approval" in page
    assert "looked up at mail , never final: a bound is not declared" in page
    assert "no look-up: a lost reply goes to a person" in page
    assert "12 turns, 20 calls, 3 tries per step" in page
    assert "above 5000 minor units a write waits for an approval" in page
    assert "Version 2, shown here" in page
    first = said(sign_in("alice").get(f"{ONE}?version=1"))
    assert "version 1 of Nordlicht Energie" in first
    assert "no key: it is never sent twice in doubt" in first


def test_the_json_is_selectable_and_holds_no_secret(house: House, sign_in: SignIn) -> None:
    manifest = factories.billing_manifest(base_url="https://me:hunter2hunter2@pay.example")
    factories.register(house.agent, manifest)
    html = sign_in("alice").get(ONE).content.decode()
    raw = html[html.index('<textarea class="mono" id="raw"') :]
    assert "readonly" in raw[:200]
    assert "hunter2" not in html
    assert "pay.example" in raw
    assert "apply_credit" in raw


def test_a_large_manifest_is_cut_with_a_note(house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflows, "MOST_RAW", 50)
    monkeypatch.setattr(workflows, "MOST_TOOLS", 1)
    page = said(sign_in("alice").get(ONE))
    assert "more characters are not shown" in page
    assert "3 more stand in the JSON below" in page


def test_the_list_and_the_versions_are_bounded_and_go_on(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflows, "PAGE", 1)
    monkeypatch.setattr(workflows, "MOST_VERSIONS", 1)
    factories.register(house.agent, name="a-case")
    again(house, sla_seconds=7200)
    alice = sign_in("alice")
    html = alice.get(LIST).content.decode()
    assert html.count("<tr data-row") == 1
    assert "a-case" in html
    more = html[html.index("?after=") :].split('"')[0]
    assert "billing-case" in alice.get(f"{LIST}{more}").content.decode()
    html = alice.get(ONE).content.decode()
    assert html.count("<tr data-row") == 1
    assert "&amp;before=2" in html
    older = said(alice.get(f"{ONE}?before=2"))
    assert "Version 1" in older
    assert "the first" in older


def test_two_versions_are_compared_field_by_field_and_the_weaker_stands_first(house: House, sign_in: SignIn) -> None:
    again(house, idempotency=KEY, requires_approval=True, sla_seconds=1800)
    again(house, in_flight_seconds=60, sla_seconds=900)
    page = said(sign_in("alice").get(f"{DIFF}?from=2&to=3"))
    assert "differences, 4 weaker" in page
    assert "A lost reply can no longer be made good by sending again under the same key." in page
    assert "counts as final sooner" in page
    assert "It leaves without anybody's approval" in page
    assert page.index("anybody's approval") < page.index("sla_seconds")
    assert "tool apply_credit : reconcile.max_in_flight_seconds" in page
    assert "600" in page
    back = said(sign_in("alice").get(f"{DIFF}?from=3&to=2"))
    assert "counts as final sooner" not in back


def test_without_numbers_the_newest_is_compared_with_the_one_before(house: House, sign_in: SignIn) -> None:
    again(house, sla_seconds=7200)
    assert "version 1 to 2" in said(sign_in("alice").get(DIFF))


def test_an_empty_comparison_says_so(house: House, sign_in: SignIn) -> None:
    assert "Nothing differs. It is the same version twice." in said(sign_in("alice").get(f"{DIFF}?from=1&to=1"))


def test_many_differences_are_cut_with_a_note(house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revisions, "MOST_SHOWN", 1)
    again(house, sla_seconds=7200, max_looks=3, deadline_seconds=60)
    assert "2 more differences are not shown" in said(sign_in("alice").get(DIFF))


NOWHERE = [
    f"{ONE}?version=9", f"{ONE}?version=x", f"{DIFF}?from=9&to=1", f"{DIFF}?to=0", f"{LIST}?after=x",
    f"{LIST}?after=x~harbor", "/settings/workflows/other/", "/settings/workflows/a%00b/", f"{ONE}?before=-1",
    f"{ONE}?version=99999999999",
]  # fmt: skip


@pytest.mark.parametrize("where", NOWHERE)
def test_what_is_not_there_is_a_404(house: House, sign_in: SignIn, where: str) -> None:
    assert sign_in("alice").get(where).status_code == 404


def test_F122_a_neighbours_workflow_and_a_missing_one_answer_alike(house: House, sign_in: SignIn) -> None:
    factories.register(house.agent, name="ours")
    charlie = sign_in("charlie")
    for path in ("/settings/workflows/ours/", "/settings/workflows/ours/diff/", f"{ONE}?tenant=nordlicht"):
        assert charlie.get(path).status_code == charlie.get(path.replace("ours", "none")).status_code == 404
    assert "ours" not in said(charlie.get(LIST))


def test_two_tenants_may_have_a_workflow_of_one_name(house: House, sign_in: SignIn) -> None:
    permissions.grant_role(house.people["ada"], house.harbor, "viewer")
    factories.register(house.neighbour, factories.billing_manifest(sla_seconds=60))
    ada = sign_in("ada")
    html = ada.get(LIST).content.decode()
    assert f'href="{ONE}?tenant=nordlicht"' in html
    assert f'href="{ONE}?tenant=harbor"' in html
    assert "of Nordlicht Energie" in said(ada.get(f"{ONE}?tenant=nordlicht"))
    assert "version 2 of Harbor Travel" in said(ada.get(f"{ONE}?tenant=harbor"))


def test_the_pages_ask_at_most_six_questions_however_many_versions(house: House, sign_in: SignIn) -> None:
    for seconds in (600, 1200, 1800):
        again(house, sla_seconds=seconds)
        factories.register(house.agent, name=f"case-{seconds}")
    alice = sign_in("alice")
    for path in (LIST, ONE, DIFF):
        alice.get(path)
        with CaptureQueriesContext(connection) as asked:
            assert alice.get(path).status_code == 200
        own = [one["sql"] for one in asked if not any(word in one["sql"] for word in OVERHEAD)]
        assert len(own) <= 6, "\n\n".join(own)


def test_a_manifest_that_cannot_be_read_is_one_row(house: House, sign_in: SignIn) -> None:
    with wall.within(house.nordlicht.pk):
        Workflow.objects.create(tenant=house.nordlicht, name="broken", version=1, manifest={}, manifest_hash="0")
    page = said(sign_in("alice").get(LIST))
    assert "This record cannot be read" in page
    assert "billing-case" in page


def test_hostile_words_of_a_manifest_do_nothing(house: House, sign_in: SignIn) -> None:
    hostile = '"><script>alert(1)</script></textarea>'
    manifest = factories.billing_manifest()
    manifest |= {"title": hostile, "owner_team": hostile}
    manifest["tools"][1]["title"] = hostile
    factories.register(house.agent, manifest)
    for path in (LIST, ONE, DIFF):
        html = sign_in("alice").get(path).content.decode()
        assert "<script>alert" not in html
        assert html.count("</textarea>") == html.count("<textarea")
