"""A first visit, and a person who never touches the mouse: the tour, the search, the keys."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from runs.models import Person
from tests.browser.conftest import SignIn
from tests.browser.test_story import lose_the_reply, task_of
from tests.stack import Stack
from tests.stories.billing import Agent

pytestmark = pytest.mark.browser


def test_the_tour_meets_a_first_visit_and_never_comes_back_once_it_was_ended(
    stack: Stack, people: dict[str, Person], sign_in: SignIn
) -> None:
    Person.objects.filter(pk=people["bob"].pk).update(toured_at=None)
    page = sign_in("bob")
    expect(page.get_by_role("dialog", name="Pages")).to_be_visible()
    expect(page.get_by_text("First steps")).to_be_hidden()
    assert Axe().run(page).violations_count == 0
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("dialog", name="Pages")).to_be_hidden()
    expect(page.get_by_role("dialog", name="Views")).to_be_visible()
    expect(page.get_by_role("button", name="Next")).to_be_focused()
    with page.expect_navigation():
        page.get_by_role("button", name="End the tour").click()
    expect(page.locator("[data-tour]")).to_have_count(0)
    again = sign_in("bob")
    expect(again.locator("[data-tour]")).to_have_count(0)


def test_without_script_the_first_steps_are_a_card_that_can_be_dismissed(
    stack: Stack, people: dict[str, Person], sign_in: SignIn
) -> None:
    Person.objects.filter(pk=people["bob"].pk).update(toured_at=None)
    page = sign_in("bob", script=False)
    expect(page.get_by_role("heading", name="First steps")).to_be_visible()
    page.get_by_role("button", name="Do not show this again").click()
    expect(page.get_by_role("heading", name="First steps")).to_have_count(0)


def test_a_person_searches_claims_and_decides_without_the_mouse(stack: Stack, agent: Agent, sign_in: SignIn) -> None:
    run_id = lose_the_reply(stack, agent)
    task, page = task_of(stack, run_id), sign_in("alice")
    page.keyboard.press("/")
    page.keyboard.type(f"#{task.number}")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url == f"{stack.url}/tasks/{task.pk}/", "a whole number leads straight there"
    with page.expect_navigation():
        page.keyboard.press("c")
    expect(page.locator("[data-verb=release]").first).to_be_visible()
    page.keyboard.press("r")
    expect(page.locator("#side #sheet")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#side")).to_be_hidden()
    page.keyboard.press("g")
    with page.expect_navigation():
        page.keyboard.press("r")
    expect(page.get_by_role("heading", name="Runs", level=1)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("double charge feb")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Runs", level=2)).to_be_visible()
    assert page.locator("mark").all_inner_texts()[:2] == ["double", "charge"]
    assert Axe().run(page).violations_count == 0
    page.keyboard.press("j")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url == f"{stack.url}/runs/{run_id}/"
