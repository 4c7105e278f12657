"""A real browser before the running product, and the people who sit at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from recovery import permissions
from runs.models import Person
from runs.querysets import database_now
from tests.stack import Stack
from tests.stories.conftest import agent, stack  # noqa: F401  (the running product, as the stories use it)

PASSWORD = "correct horse battery staple"
ROLES = {"alice": "support", "omar": "oncall", "bob": "viewer"}
SignIn = Callable[[str], Page]


@pytest.fixture(scope="module")
def people(stack: Stack) -> dict[str, Person]:  # noqa: F811
    """The personas of the stack's tenant, able to sign in."""
    made = {}
    for name, role in ROLES.items():
        made[name] = Person.objects.create_user(f"{name}@steadyhand.example", name.capitalize(), PASSWORD)
        Person.objects.filter(pk=made[name].pk).update(toured_at=database_now())
        permissions.grant_role(made[name], stack.tenant, role)
    return made


@pytest.fixture
def sign_in(stack: Stack, people: dict[str, Person], browser: Browser) -> Iterator[SignIn]:  # noqa: F811
    """Open a window of one's own and sign in; anything the browser complains about fails the test."""
    contexts, complaints = [], []

    def enter(name: str, *, script: bool = True) -> Page:
        context = browser.new_context(viewport={"width": 1440, "height": 900}, java_script_enabled=script)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(8_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text) if "Content Security" in line.text else None)
        page.goto(f"{stack.url}/")
        page.get_by_label("E-mail").fill(f"{name}@steadyhand.example")
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_role("button", name="Sign in", exact=True).click()
        expect(page.get_by_role("heading", name="Queue", level=1)).to_be_visible()
        return page

    yield enter
    for context in contexts:
        context.close()
    if "worker" not in stack.processes:
        stack.start_worker()  # a test that failed half-way must not fail those after it
    assert complaints == []
