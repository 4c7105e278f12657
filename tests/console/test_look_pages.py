"""Every page template renders its full and its emptiest page object, with every landmark and no loose end."""

import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest
from allauth.account.forms import LoginForm
from django import forms
from django.conf import LazySettings
from django.template.loader import render_to_string
from django.test import RequestFactory

from console import looks
from console.pages.common import Flash, Link
from tests.console import pages

CASES = {
    "queue": ("task/list.html", pages.queue_page, "Queue"),
    "queue-empty": ("task/list.html", pages.empty_queue_page, "Queue"),
    "task": ("task/detail.html", pages.task_page, "Task"),
    "task-quiet": ("task/detail.html", pages.quiet_task_page, "Task"),
    "confirm": ("task/confirm.html", pages.confirm_page, "Task"),
    "run": ("run/detail.html", pages.run_page, "Runs"),
    "runs": ("run/list.html", pages.run_list_page, "Runs"),
    "plan": ("run/plan.html", pages.plan_page, "Runs"),
    "plan-empty": ("run/plan.html", pages.empty_plan_page, "Runs"),
    "circuits": ("circuit/list.html", pages.circuits_page, "Circuits"),
    "circuits-empty": ("circuit/list.html", pages.empty_circuits_page, "Circuits"),
    "unknown": ("unknown/list.html", pages.unknown_page, "Unknown writes"),
    "unknown-empty": ("unknown/list.html", pages.empty_unknown_page, "Unknown writes"),
    "letters": ("letter/list.html", pages.letters_page, "Dead letters"),
    "letters-empty": ("letter/list.html", pages.empty_letters_page, "Dead letters"),
    "help": ("help/index.html", pages.help_page, "Help"),
    "topic": ("help/topic.html", pages.topic_page, "Help"),
    "search": ("search/page.html", pages.search_page, ""),
    "search-empty": ("search/page.html", pages.empty_search_page, ""),
    "workflows": ("settings/workflows.html", pages.workflows_page, "Settings"),
    "workflows-empty": ("settings/workflows.html", pages.empty_workflows_page, "Settings"),
    "workflow": ("settings/workflow.html", pages.workflow_page, "Settings"),
    "workflow-bare": ("settings/workflow.html", pages.bare_workflow_page, "Settings"),
    "diff": ("settings/diff.html", pages.diff_page, "Settings"),
    "diff-empty": ("settings/diff.html", pages.empty_diff_page, "Settings"),
    "connectors": ("settings/connectors.html", pages.connectors_page, "Settings"),
    "connectors-empty": ("settings/connectors.html", pages.empty_connectors_page, "Settings"),
    "views": ("view/list.html", pages.views_page, "Queue"),
    "views-empty": ("view/list.html", pages.empty_views_page, "Queue"),
    "roles": ("settings/roles.html", pages.roles_page, "Settings"),
    "roles-bare": ("settings/roles.html", pages.bare_roles_page, "Settings"),
    "members": ("settings/members.html", pages.members_page, "Settings"),
    "stops": ("stop/list.html", pages.stops_page, "Stops"),
    "stops-empty": ("stop/list.html", pages.empty_stops_page, "Stops"),
}
SECTIONS = [
    "The three answers",
    "Intent and authorized scope",
    "Effects ledger",
    "Attempts",
    "Evidence",
    "What may have happened to",
    "Remaining work",
    "Next actions",
]


def render(name: str, **changes: object) -> str:
    """The page as a browser gets it, with a request for its csrf token and nonce."""
    template, make, current = CASES[name]
    context = {"page": replace(make(), **changes), "frame": pages.frame(current), "now": pages.NOW}
    request = RequestFactory().get("/")
    request.csp_nonce = "n0nce"
    return render_to_string(template, context, request=request)


@pytest.mark.parametrize("name", CASES)
def test_a_page_has_one_main_one_h1_a_skip_link_and_no_double_id(name: str) -> None:
    html = render(name)
    body = re.sub(r"<dialog.*?</dialog>", "", html, flags=re.DOTALL)
    assert html.count("<main") == html.count("</main>") == 1
    assert body.count("<h1") == 1
    assert 'class="skip" href="#main"' in html
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert sorted(ids) == sorted(set(ids))


@pytest.mark.parametrize("name", CASES)
def test_a_page_refers_only_to_ids_that_it_has(name: str) -> None:
    html = render(name)
    ids = set(re.findall(r'\sid="([^"]+)"', html))
    named = re.findall(r'(?:aria-describedby|aria-labelledby|for|popovertarget)="([^"]+)"', html)
    assert {one for group in named for one in group.split()} <= ids


@pytest.mark.parametrize("name", CASES)
def test_every_variable_of_a_page_is_known(name: str, settings: LazySettings) -> None:
    [engine] = deepcopy(settings.TEMPLATES)
    engine["OPTIONS"]["string_if_invalid"] = "nothing called %s"
    settings.TEMPLATES = [engine]
    html = render(name)
    assert re.findall(r"nothing called .{20}|\{[{%#].{20}", html) == []


def test_the_sections_of_a_task_never_change_their_order() -> None:
    places = [render("task").index(section) for section in SECTIONS]
    assert places == sorted(places)


def test_a_blocked_verb_stays_focusable_and_says_why() -> None:
    html = render("task")
    button = re.search(r"<button(?:(?!<button).)*Retry apply_credit", html, re.DOTALL)
    assert button
    assert 'aria-describedby="why-retry"' in button[0]
    assert " disabled" not in button[0]
    assert 'id="why-retry">Blocked: the write may still be in flight' in html


def test_only_the_recommended_verb_is_filled_and_stands_twice() -> None:
    html = render("task")
    filled = re.findall(r'<a class="btn +fill" href="([^"]+)"', html)
    assert filled == ["/tasks/T-4127/reconcile/"] * 2


def test_model_prose_is_escaped_quoted_and_called_a_claim() -> None:
    html = render("task")
    assert "Agent&#x27;s claim (unverified)" in html or "Agent's claim (unverified): “&lt;b&gt;" in html
    assert "<b>The credit has been applied" not in html


def test_the_confirmation_posts_hash_version_key_and_reason_without_script() -> None:
    html = render("confirm")
    form = re.search(r'<form class="sheet.*?</form>', html, re.DOTALL)
    assert form
    assert 'method="post"' in form[0]
    for name in ("evidence_hash", "version", "key", "reason_code", "reason", "csrfmiddlewaretoken"):
        assert f'name="{name}"' in form[0]
    assert "Incident 5521 delayed postings.</textarea>" in form[0]


def test_moved_evidence_is_announced_and_takes_the_focus() -> None:
    assert re.search(r'<div class="flash warn" role="alert" tabindex="-1" data-focus>', render("confirm"))


def test_money_of_two_currencies_is_never_added() -> None:
    assert "3,952.40 EUR and 1,716.00 GBP at risk" in render("queue")


def test_a_record_that_cannot_be_read_is_one_row_with_its_id() -> None:
    html = render("queue")
    assert 'title="0195e2b9-0000-7000-8000-00000000aa10"' in html
    assert "This record cannot be read" in html


def test_a_notice_may_carry_code_and_one_action() -> None:
    flash = Flash(looks.NOTICE["refused"], "Refused.", "Error `e_5f2c91`", action=Link("Try again", "/x"), alert=True)
    html = render("queue", flashes=[flash])
    assert "<code>e_5f2c91</code>" in html
    assert 'href="/x">Try again' in html


FRAGMENTS = [
    ("task/_news.html", pages.queue_page, 'id="heading"'),
    ("task/_body.html", pages.task_page, 'id="task"'),
    ("run/_body.html", pages.run_page, 'id="run"'),
    ("run/_rows.html", pages.run_list_page, 'id="runs"'),
    ("settings/_connectors.html", pages.connectors_page, 'id="connectors"'),
]


@pytest.mark.parametrize(("template", "make", "region"), FRAGMENTS)
def test_a_live_fragment_is_the_region_that_it_replaces(
    template: str, make: Callable[[], object], region: str
) -> None:
    html = render_to_string(template, {"page": make(), "now": pages.NOW}).strip()
    assert html.startswith("<div")
    assert region in html.split(">")[0]
    assert 'hx-trigger="poll"' in html.split(">")[0]
    assert "<main" not in html


def test_the_bar_for_new_tasks_keeps_its_place_when_there_are_none() -> None:
    assert 'class="news"' in render("queue")
    assert 'class="news"' in render("queue-empty")


@pytest.mark.parametrize("code", ["400", "403", "403_csrf", "404", "409", "500"])
def test_an_error_page_needs_no_context_and_says_whether_anything_was_sent(code: str) -> None:
    html = render_to_string(f"{code}.html")
    assert "sent" in html
    assert html.count("<h1") == 1
    assert 'class="rail"' not in html


class CodeForm(forms.Form):
    code = forms.CharField(label="Code")


@pytest.mark.urls("allauth.urls")
def test_a_page_of_allauth_wears_the_look_and_its_errors_stand_at_the_field() -> None:
    context = {"form": CodeForm({"code": ""}), "MFA_SUPPORTED_TYPES": ["totp"]}
    html = render_to_string("mfa/authenticate.html", context, request=RequestFactory().get("/"))
    assert 'class="brand"' in html
    assert 'class="btn fill"' in html
    assert '<label for="id_code">Code</label>' in html
    assert re.search(r'id="id_code_error">.*This field is required', html, re.DOTALL)


@pytest.mark.urls("allauth.urls")
def test_the_sign_in_page_names_its_fields() -> None:
    request = RequestFactory().get("/")
    html = render_to_string("account/login.html", {"form": LoginForm(request=request)}, request=request)
    assert html.count("<label") == 2
    assert 'autocomplete="current-password"' in html
