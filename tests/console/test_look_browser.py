"""The scripts in a real browser under the strict policy: sheet, keys, polling that never moves what a hand is on."""

import mimetypes
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.contrib.staticfiles import finders
from playwright.sync_api import Page, Request, Route, expect

from tests.console.test_look_pages import CASES, render

pytestmark = pytest.mark.browser

SITE = "http://steadyhand.test"
POLICY = (
    "default-src 'none'; script-src 'self' 'nonce-n0nce'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'self'; frame-ancestors 'none'"
)


class Site:
    """Answers the browser from rendered examples; a polled address is answered as the test wishes."""

    def __init__(self, page: Page) -> None:
        self.page, self.polls, self.violations, self.beats = page, [], [], []
        self.poll_answer: dict[str, object] = {"status": 304, "headers": {"X-Checked-At": "10:40:57"}}
        self.addresses = {
            "/tasks/T-4127/": "task",
            "/tasks/T-4127/reconcile/": "confirm",
            "/": "queue",
            "/run": "run",
            "/views/": "views",
        }
        page.on("console", lambda message: self.violations.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.violations.append(str(error)))
        page.route("**/*", self.answer)

    def answer(self, route: Route, request: Request) -> None:
        path = request.url.removeprefix(SITE).split("?")[0]
        if path.startswith(settings.STATIC_URL):
            found = Path(str(finders.find(path.removeprefix(settings.STATIC_URL))))
            route.fulfill(body=found.read_bytes(), content_type=mimetypes.guess_type(found)[0])
        elif path in self.addresses:
            headers = {"Content-Security-Policy": POLICY, "Content-Type": "text/html; charset=utf-8"}
            route.fulfill(body=self.html(self.addresses[path]), headers=headers)
        elif path.endswith("/here/"):
            self.beats.append((request.headers.get("x-csrftoken", ""), request.post_data or ""))
            route.fulfill(status=204)
        else:
            self.polls.append(request.headers)
            route.fulfill(**self.poll_answer)  # type: ignore[arg-type]

    def html(self, name: str) -> str:
        return render(name).replace('data-poll="5"', 'data-poll="0.2"')

    def open(self, path: str) -> None:
        self.page.goto(SITE + path)

    def poll_with(self, title: str) -> None:
        """From now on a poll brings the whole region of the task page again, under another title."""
        region = re.search(r'<div id="task".*</div>\s*</main>', self.html("task"), re.DOTALL)
        assert region
        body = region[0].removesuffix("</main>").replace("Credit 120.00 EUR, double charge February", title)
        self.poll_answer = {"status": 200, "body": body, "content_type": "text/html; charset=utf-8"}


@pytest.fixture
def site(page: Page) -> Site:
    return Site(page)


def test_e_opens_the_recommended_action_as_a_sheet_and_escape_sends_nothing(site: Site, page: Page) -> None:
    site.open("/tasks/T-4127/")
    page.keyboard.press("e")
    sheet = page.get_by_role("dialog", name="Check what happened")
    expect(sheet).to_be_visible()
    expect(sheet.get_by_role("button", name="Request check at 10:42:10")).to_be_visible()
    assert page.evaluate("document.querySelector('dialog').contains(document.activeElement)")
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    assert page.url == f"{SITE}/tasks/T-4127/"
    assert site.violations == []


def test_an_unchanged_page_answers_304_and_only_the_time_moves(site: Site, page: Page) -> None:
    site.open("/tasks/T-4127/")
    expect(page.locator("[data-checked]")).to_have_text("10:40:57")
    assert site.polls[0]["if-none-match"] == '"41"'
    assert site.violations == []


def test_a_changed_page_is_shown(site: Site, page: Page) -> None:
    site.open("/tasks/T-4127/")
    site.poll_with("Settled")
    expect(page.get_by_role("heading", name="Settled")).to_be_visible()


def test_a_change_waits_while_somebody_types_and_offers_itself(site: Site, page: Page) -> None:
    site.open("/tasks/T-4127/")
    page.get_by_label("Add a comment").fill("asked LedgerPay")
    site.poll_with("Settled")
    expect(page.get_by_role("link", name="Changed, show")).to_be_visible()
    expect(page.get_by_label("Add a comment")).to_have_value("asked LedgerPay")
    expect(page.get_by_role("heading", name="Settled")).to_have_count(0)


def test_a_page_that_cannot_poll_says_so(site: Site, page: Page) -> None:
    site.open("/tasks/T-4127/")
    expect(page.locator("#stale")).to_be_hidden()
    site.poll_answer = {"status": 503}
    expect(page.locator("#stale")).to_contain_text("Not live since")


def test_j_and_enter_open_a_row_and_slash_goes_to_the_search(site: Site, page: Page) -> None:
    site.open("/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("[data-row].here")).to_contain_text("Double charge, February")
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.locator("[data-row].here [data-open]").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Credit 120.00 EUR")).to_be_visible()


def test_a_chosen_scheme_stays(site: Site, page: Page) -> None:
    site.open("/")
    page.locator(".me summary").click()
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    site.open("/run")
    assert page.evaluate("document.documentElement.className") == "dark"


@pytest.mark.parametrize("width", [360, 390, 770, 1024, 1110, 1280, 1440])
@pytest.mark.parametrize("path", ["/", "/tasks/T-4127/", "/tasks/T-4127/reconcile/", "/run", "/views/"])
def test_no_page_scrolls_sideways(site: Site, page: Page, path: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    site.open(path)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert site.violations == []


def test_a_page_whose_session_ended_says_so_and_leads_back(site: Site, page: Page) -> None:
    site.open("/tasks/T-4127/")
    site.poll_answer = {"status": 401}
    expect(page.locator("#signed-out")).to_contain_text("You are signed out.")
    sign_in = page.get_by_role("link", name="Sign in").get_attribute("href") or ""
    assert sign_in.endswith("/accounts/login/?next=%2Ftasks%2FT-4127%2F")
    expect(page.locator("#stale")).to_be_hidden()
    expect(page.get_by_text("Live, checked")).to_be_hidden()


def test_a_page_that_is_not_live_does_not_say_live(site: Site, page: Page) -> None:
    site.open("/tasks/T-4127/")
    expect(page.get_by_text("Live, checked")).to_be_visible()
    site.poll_answer = {"status": 503}
    expect(page.get_by_text("Live, checked")).to_be_hidden()
    site.poll_answer = {"status": 304, "headers": {"X-Checked-At": "10:41:10"}}
    expect(page.get_by_text("Live, checked")).to_be_visible()


def test_no_key_is_silent_and_the_list_names_what_works_here(site: Site, page: Page) -> None:
    site.open("/run")
    for key in ("c", "j", "o", "e"):
        page.keyboard.press(key)
        expect(page.locator("#said")).not_to_be_empty()
        page.evaluate("document.getElementById('said').textContent = ''")
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Shortcuts")
    expect(keys.get_by_text("search", exact=True)).to_be_visible()
    expect(keys.get_by_text("next and previous row")).to_be_hidden()
    page.keyboard.press("Escape")
    site.open("/")
    page.keyboard.press("c")
    expect(page.locator("#said")).to_have_text("Choose a row first, with J or K.")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog").get_by_text("next and previous row")).to_be_visible()


def test_o_unfolds_the_cause_and_stands_on_it(site: Site, page: Page) -> None:
    site.open("/")
    page.keyboard.press("j")
    page.keyboard.press("o")
    page.wait_for_url("**/?open=#group-g1")
    expect(page.locator("[data-row].here")).to_contain_text("Credit timed out after dispatch")


def test_an_open_page_says_who_looks_and_an_open_sheet_who_decides(site: Site, page: Page) -> None:
    site.open("/tasks/T-4127/")
    expect(page.locator("[data-checked]")).to_be_visible()
    page.wait_for_timeout(1300)
    assert [body for _, body in site.beats] == ["doing=looking&verb="]
    assert all(token for token, _ in site.beats)
    page.keyboard.press("e")
    expect(page.get_by_role("dialog", name="Check what happened")).to_be_visible()
    page.wait_for_timeout(1300)
    page.keyboard.press("Escape")
    page.wait_for_timeout(1300)
    told = [body for _, body in site.beats]
    assert told == ["doing=looking&verb=", "doing=deciding&verb=reconcile", "doing=looking&verb="]
    assert site.violations == []


def test_a_claim_that_is_about_to_end_is_read_out_once(site: Site, page: Page) -> None:
    site.open("/tasks/T-4127/")
    site.poll_with("Settled")
    expect(page.get_by_role("heading", name="Settled")).to_be_visible()
    expect(page.locator("#said")).to_have_text("")
    body = str(site.poll_answer["body"]).replace("Your claim ends in 4 minutes", "Your claim ends in 3 minutes")
    site.poll_answer = {**site.poll_answer, "body": body}
    expect(page.locator("#said")).to_have_text("Your claim ends in 3 minutes.")


def test_a_view_link_is_copied_as_it_stands(site: Site, page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    site.open("/")
    button = page.get_by_role("button", name="Copy link")
    expect(button).to_be_visible()
    assert button.get_attribute("data-copy") == "https://desk.example/?tenant=nordlicht&priority=3"


def test_g_and_a_letter_open_a_page_and_an_unknown_letter_says_so(site: Site, page: Page) -> None:
    site.open("/tasks/T-4127/")
    page.keyboard.press("g")
    page.keyboard.press("z")
    expect(page.locator("#said")).to_contain_text("No page has this key.")
    page.keyboard.press("g")
    with page.expect_navigation():
        page.keyboard.press("q")
    expect(page.get_by_role("heading", level=1, name="Queue")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Shortcuts").get_by_text("Unknown writes")).to_be_visible()


def test_r_is_the_recommended_action_and_x_chooses_the_row(site: Site, page: Page) -> None:
    site.open("/")
    page.keyboard.press("x")
    expect(page.locator("#said")).to_contain_text("Nothing can be chosen here.")
    page.evaluate("""document.querySelectorAll('[data-row]').forEach((row) => {
        const box = document.createElement('input');
        Object.assign(box, { type: 'checkbox' });
        box.dataset.choose = '';
        row.cells[0].append(box);
    })""")
    page.keyboard.press("x")
    expect(page.locator("#said")).to_contain_text("Choose a row first")
    page.keyboard.press("j")
    page.keyboard.press("x")
    assert page.evaluate("document.querySelector('.here [data-choose]').checked")
    site.open("/tasks/T-4127/")
    page.keyboard.press("r")
    expect(page.get_by_role("dialog", name="Check what happened")).to_be_visible()


def test_the_palette_finds_pages_and_verbs_by_typing_and_gives_the_focus_back(site: Site, page: Page) -> None:
    site.open("/tasks/T-4127/")
    page.get_by_role("link", name="Skip to the content").focus()
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to a page, or do something")
    field = palette.get_by_role("combobox")
    expect(field).to_be_focused()
    chosen = palette.get_by_role("option", selected=True)
    page.keyboard.press("ArrowDown")
    assert field.get_attribute("aria-activedescendant") == chosen.get_attribute("id") == "palette-1"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert chosen.get_attribute("id") == f"palette-{palette.get_by_role('option').count() - 1}", "it goes round"
    field.fill("retry apply")
    blocked = palette.get_by_role("option", name="Retry apply_credit")
    expect(blocked).to_contain_text("Blocked: the write may still be in flight")
    assert blocked.get_attribute("aria-disabled") == "true"
    page.keyboard.press("Enter")
    expect(palette).to_be_visible()
    expect(palette.get_by_role("status")).to_contain_text("Blocked: the write may still be in flight")
    assert Axe().run(page).violations_count == 0
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Control+k")
    field.fill("page queue")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Queue")).to_be_visible()
    assert site.violations == []


def test_the_palette_presses_the_verb_that_the_page_has(site: Site, page: Page) -> None:
    site.open("/tasks/T-4127/")
    page.get_by_role("button", name="Go to").click()
    page.get_by_role("combobox", name="Go to a page").fill("check what")
    page.get_by_role("option", name="Check what happened").first.click()
    expect(page.get_by_role("dialog", name="Check what happened")).to_be_visible()


def test_what_no_line_fits_is_searched_for(site: Site, page: Page) -> None:
    site.open("/")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to a page").fill("inv-20931")
    expect(page.get_by_role("option")).to_have_count(1)
    with page.expect_request(lambda request: "/search/?q=inv-20931" in request.url):
        page.keyboard.press("Enter")


@pytest.mark.parametrize("name", CASES)
def test_axe_finds_nothing_on_any_page(name: str, site: Site, page: Page) -> None:
    site.addresses["/any/"] = name
    site.open("/any/")
    found = Axe().run(page, options={"rules": {"target-size": {"enabled": True}}})
    assert found.violations_count == 0, found.generate_report()
