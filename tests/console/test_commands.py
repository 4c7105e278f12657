"""The commands of whoever runs an installation: tenants, people, tokens and workflows, without a browser."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.core.management import call_command
from django.test import Client

from console.embedded.errors import Trouble
from console.management import manifests
from demo import workflows
from recovery import clients, intake, permissions
from recovery.clients import NotAuthenticated
from runs import wall
from runs.models import AgentClient, Event, Person, Tenant, Workflow
from tests import factories
from tests.console.up import BASE, environment

PASSWORD = "correct-horse-lantern-9"
BILLING = workflows.billing("https://api.example.org", in_flight_seconds=5, lag_seconds=5, first_look_seconds=1)


def said(name: str, *arguments: str, **options: Any) -> str:
    out = io.StringIO()
    call_command(name, *arguments, stdout=out, **options)
    return out.getvalue()


def token_in(text: str) -> str:
    return re.findall(r"STEADYHAND_TOKEN=(\S+)", text)[0]


def kinds(tenant: Tenant) -> list[str]:
    with wall.within(tenant.pk):
        return list(Event.objects.order_by(*Event.IN_ORDER).values_list("kind", flat=True))


@pytest.fixture
def harbor(db: None) -> Tenant:
    return factories.make_tenant("harbor", "Harbor Travel")


# --- tenants ------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_tenant_is_made_and_says_what_comes_next() -> None:
    text = said("add_tenant", "nordlicht", "Nordlicht Energie")
    assert "manage.py agent_token nordlicht NAME" in text
    assert "manage.py add_person EMAIL NAME --tenant nordlicht" in text


def test_a_tenants_short_name_is_taken_once(harbor: Tenant) -> None:
    with pytest.raises(Trouble, match="There is a tenant 'harbor' already"):
        said("add_tenant", "harbor", "Another Harbor")


@pytest.mark.django_db
@pytest.mark.parametrize("slug", ["", "Harbor", "har bor", "hafen/ost", "x" * 61, "ü", "a\n", "a\x00"])
def test_a_short_name_that_no_address_can_hold_is_refused(slug: str) -> None:
    with pytest.raises(Trouble, match="cannot be a tenant's short name"):
        said("add_tenant", slug, "Harbor")


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["", "  ", "x" * 121, "Har\x1bbor", "two\nlines"])
def test_a_name_that_no_page_can_show_is_refused(name: str) -> None:
    with pytest.raises(Trouble, match="The name of the tenant is empty, too long or not printable"):
        said("add_tenant", "harbor", name)


# --- agents -------------------------------------------------------------------------------------------------


def test_SEC_17_a_token_is_printed_once_and_lets_an_agent_in(harbor: Tenant) -> None:
    token = token_in(said("agent_token", "harbor", "booking agent"))
    who = clients.parse_token(token)
    with wall.within(harbor.pk):
        client = clients.authenticate(who)
        assert token.rpartition("_")[2] not in str(client.__dict__)
    assert (client.name, client.workflows) == ("booking agent", [])
    assert kinds(harbor) == ["token_issued"]


def test_SEC_10_a_token_for_one_workflow_does_not_reach_another(harbor: Tenant) -> None:
    text = said("agent_token", "harbor", "booker", "--workflow", "rebook", "--workflow", "cancel")
    assert "for the workflows cancel, rebook, good for 90 days" in text
    who = clients.parse_token(token_in(text))
    with pytest.raises(intake.NotFound):
        intake.register_workflow(who, "refund", factories.Manifest.model_validate(BILLING), request_id="r")


def test_SEC_17_a_revoked_token_lets_nobody_in_and_its_name_is_free_again(harbor: Tenant) -> None:
    who = clients.parse_token(token_in(said("agent_token", "harbor", "booker")))
    with pytest.raises(Trouble, match=r"end that one with 'manage\.py revoke_token harbor booker'"):
        said("agent_token", "harbor", "booker")
    said("revoke_token", "harbor", "booker")
    with wall.within(harbor.pk), pytest.raises(NotAuthenticated):
        clients.authenticate(who)
    assert token_in(said("agent_token", "harbor", "booker", "--days", "1"))
    assert kinds(harbor) == ["token_issued", "token_revoked", "token_issued"]


def test_a_token_of_another_tenant_cannot_be_revoked_from_here(harbor: Tenant) -> None:
    factories.make_tenant("nordlicht")
    said("agent_token", "nordlicht", "booker")
    with pytest.raises(Trouble, match="Harbor Travel has no agent 'booker' with a token: it has none at all"):
        said("revoke_token", "harbor", "booker")


def test_revoking_a_name_that_nobody_has_says_which_there_are(harbor: Tenant) -> None:
    said("agent_token", "harbor", "booker")
    with pytest.raises(Trouble, match="no agent 'boker' with a token: it has booker"):
        said("revoke_token", "harbor", "boker")


@pytest.mark.parametrize("days", ["0", "-1", "367", "99999999999"])
def test_a_token_ends_within_a_year(harbor: Tenant, days: str) -> None:
    with pytest.raises(Trouble, match="out of bounds: choose 1 to 366"):
        said("agent_token", "harbor", "booker", f"--days={days}")
    with wall.within(harbor.pk):
        assert not AgentClient.objects.exists()


@pytest.mark.parametrize("name", ["Rebook", "", "re book", "x" * 81])
def test_a_token_names_workflows_as_manifests_do(harbor: Tenant, name: str) -> None:
    with pytest.raises(Trouble, match="cannot name a workflow"):
        said("agent_token", "harbor", "booker", "--workflow", name)


@pytest.mark.django_db
@pytest.mark.parametrize("slug", ["nowhere", "", "'; --", "a\x00b"])
@pytest.mark.parametrize("command", ["agent_token", "revoke_token"])
def test_a_tenant_that_is_not_there_is_one_sentence(command: str, slug: str) -> None:
    with pytest.raises(Trouble, match=r"There is no tenant '.*add_tenant"):
        said(command, slug, "booker")


# --- people -------------------------------------------------------------------------------------------------


def test_a_new_person_sets_a_password_once_and_signs_in(harbor: Tenant) -> None:
    text = said("add_person", "Omar@Example.org", "Omar Haddad", "--tenant", "harbor", "--role", "oncall")
    person = Person.objects.get(email="omar@example.org")
    assert permissions.may(person, "retry", harbor.pk)
    assert not person.has_usable_password()
    link = text.split("\n  ")[1].strip()
    assert link.startswith("http://127.0.0.1:8000/accounts/password/reset/key/")
    path = link.removeprefix("http://127.0.0.1:8000")
    browser = Client()
    form = browser.get(path, follow=True)
    assert "Set a password" in form.content.decode()
    browser.post(form.redirect_chain[-1][0], {"password1": PASSWORD, "password2": PASSWORD})
    answer = Client().post("/accounts/login/", {"login": "omar@example.org", "password": PASSWORD})
    assert answer.status_code == 302
    assert "This link no longer works" in Client().get(path, follow=True).content.decode()


def test_somebody_who_signs_in_already_gets_the_role_and_no_link(harbor: Tenant) -> None:
    nia = factories.make_person("nia", factories.make_tenant("nordlicht"), "auditor")
    text = said("add_person", nia.email, "Nia", "--tenant", "harbor", "--role", "viewer")
    assert "They sign in with the password they have." in text
    assert "http" not in text
    assert permissions.may(nia, "view", harbor.pk)
    assert not permissions.may(nia, "claim", harbor.pk)
    assert kinds(harbor) == ["role_granted"]


def test_a_second_run_gives_a_new_link_and_no_second_person(harbor: Tenant) -> None:
    links = [said("add_person", "o@example.org", "O", "--tenant", "harbor", "--role", "viewer") for _ in range(2)]
    assert all("/accounts/password/reset/key/" in link for link in links)
    assert Person.objects.count() == 1


def test_a_person_who_was_deactivated_is_not_let_in_again_by_a_role(harbor: Tenant) -> None:
    bob = factories.make_person("bob", harbor, "viewer")
    Person.objects.filter(pk=bob.pk).update(is_active=False)
    with pytest.raises(Trouble, match="was deactivated"):
        said("add_person", bob.email, "Bob", "--tenant", "harbor", "--role", "admin")


@pytest.mark.parametrize("email", ["", "omar", "omar@", "a b@example.org", "x" * 300 + "@example.org"])
def test_an_address_that_is_none_is_refused(harbor: Tenant, email: str) -> None:
    with pytest.raises(Trouble, match="is not an e-mail address"):
        said("add_person", email, "Omar", "--tenant", "harbor", "--role", "viewer")


def test_the_link_leads_to_the_address_that_is_named(harbor: Tenant) -> None:
    text = said(
        "add_person",
        "o@example.org",
        "O",
        "--tenant",
        "harbor",
        "--role",
        "viewer",
        "--address",
        "https://c.example/",
    )
    assert "https://c.example/accounts/password/reset/key/" in text


@pytest.mark.parametrize("sends", [True, False])
def test_a_forgotten_password_is_answered_alike_for_everybody_and_in_our_words(
    harbor: Tenant, settings: Any, mailoutbox: list[EmailMessage], sends: bool
) -> None:
    settings.SENDS_MAIL = sends
    omar = factories.make_person("omar", harbor, "oncall")
    asked = {email: Client().post("/accounts/password/reset/", {"email": email}, follow=True) for email in
             (omar.email, "nobody@example.org")}  # fmt: skip
    pages = {answer.content.decode().partition("<main")[2] for answer in asked.values()}
    (page,) = pages
    assert ("the link was printed where it runs" in page) is not sends
    assert ("a link is on its way" in page) is sends
    known, unknown = mailoutbox
    assert known.subject == "Steadyhand: set a new password"
    assert "/accounts/password/reset/key/" in known.body
    assert "nobody with this address signs in" in unknown.body
    assert "http" not in unknown.body
    assert not re.search("Thank you for using|Hello from", known.body + unknown.body)


# --- workflows ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_a_workflow_is_loaded_from_a_file_and_only_a_change_is_a_version(
    harbor: Tenant, tmp_path: Path, suffix: str
) -> None:
    file = tmp_path / f"billing{suffix}"
    file.write_text(json.dumps(BILLING, indent=1))
    assert "billing, version 1 of Harbor Travel, is registered." in said(
        "load_workflow", "harbor", "billing", str(file)
    )
    assert "did not change" in said("load_workflow", "harbor", "billing", str(file))
    file.write_text(json.dumps({**BILLING, "title": "Another"}))
    assert "version 2" in said("load_workflow", "harbor", "billing", str(file))
    assert kinds(harbor) == ["workflow_registered"] * 2


def test_every_fault_of_a_manifest_is_told_at_once_with_its_path(harbor: Tenant, tmp_path: Path) -> None:
    file = tmp_path / "billing.yaml"
    file.write_text("titel: x\ntools:\n- name: Pay\n  effect: wirte\n- effect: read\n")
    with pytest.raises(Trouble) as wrong:
        said("load_workflow", "harbor", "billing", str(file))
    lines = str(wrong.value).splitlines()
    assert re.search(r"it has \d faults:$", lines[0])
    assert {line.strip().split(":")[0] for line in lines[1:]} >= {
        "titel",
        "tools.0.name",
        "tools.0.effect",
        "tools.1.name",
    }
    with wall.within(harbor.pk):
        assert not Workflow.objects.exists()


def test_a_schema_that_is_none_is_told_with_its_path(harbor: Tenant, tmp_path: Path) -> None:
    tool = {**BILLING["tools"][0], "input_schema": {"type": "nonsense"}}
    file = tmp_path / "billing.json"
    file.write_text(json.dumps({**BILLING, "tools": [tool, *BILLING["tools"][1:]]}))
    with pytest.raises(Trouble, match=r"1 fault:\n  tools\.0\.input_schema: send a valid JSON Schema"):
        said("load_workflow", "harbor", "billing", str(file))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("m.json", "{", "is not JSON: it breaks at line 1, column 2"),
        ("m.json", '{"title": "a", "title": "b"}', "'title' stands twice"),
        ("m.json", '{"a": ' * 5000 + "1" + "}" * 5000, "is not JSON that can be read"),
        ("m.json", '{"a": NaN}', "something that JSON cannot say"),
        ("m.json", '{"a": ' + "9" * 5000 + "}", "is not JSON that can be read"),
        ("m.yaml", "title: [", "is not YAML at line"),
        ("m.yaml", "title: a\ntitle: b\n", "is not YAML at line 2, column 1: 'title' stands twice"),
        ("m.yaml", "a: &x [1]\nb: *x\n", "line 2, column 4: write it out in full"),
        ("m.yaml", "a: !!python/object/apply:os.system [id]\n", "is not YAML at line 1"),
        ("m.yaml", "[" * 5000, "is not YAML"),
        ("m.yaml", "- 1\n- 2\n", "1 fault"),
        ("m.yaml", "", "1 fault"),
        ("m.yaml", 'title: "a\\0b"\n', "NUL character"),
        ("m.yaml", "x" * 300_000, "is longer than 256 KiB"),
    ],
)
def test_SEC_16_a_file_that_is_no_manifest_is_refused_in_words(
    tmp_path: Path, name: str, text: str, sentence: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(Trouble) as wrong:
        manifests.read(file)
    assert sentence in str(wrong.value)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    for place in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(Trouble, match="cannot be read"):
            manifests.read(place)
    (tmp_path / "latin.yaml").write_bytes(b"title: \xe4")
    with pytest.raises(Trouble, match="is not UTF-8 at byte 7"):
        manifests.read(tmp_path / "latin.yaml")


def test_dates_and_the_like_in_yaml_stay_text(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(json.dumps(BILLING).replace('"Resolve a billing case"', "2026-01-01"))
    assert manifests.read(file).title == "2026-01-01"


# --- as a person meets them ---------------------------------------------------------------------------------


def test_a_command_while_nothing_runs_is_one_sentence(tmp_path: Path) -> None:
    assert _refused(tmp_path) == (
        "steadyhand: The database does not answer: start Steadyhand with 'make up' and leave it running, "
        "or correct DATABASE_URL."
    )


def test_a_command_before_the_first_start_is_one_sentence(tmp_path: Path, cluster: Any) -> None:
    cluster.provision("unmigrated_desk")
    sentence = _refused(tmp_path, DATABASE_URL=cluster.dsn("steadyhand_app", "unmigrated_desk"))
    assert sentence == "steadyhand: The database has no tables yet: start Steadyhand once with 'make up'."


def _refused(home: Path, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", "agent_token", "harbor", "booker"],
        cwd=BASE, env=environment(home, **variables), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr.strip()
