"""Markup, scripts, template and format strings in any text are shown as text and do nothing (F097)."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from django.utils.http import urlencode
from steadyhand.contract import Finish, Observation, Turn

from recovery import intake
from recovery.models import HumanTask
from runs import wall
from tests.console.conftest import House, make_house
from tests.factories import ARGUMENTS, open_run, propose, report, timed_out
from tests.recovery.stories import press

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'};alert(1);//",
    "{{ settings.SECRET_KEY }}{% debug %}",
    "%(secret)s %s %n {0.__class__}",
    "javascript:alert(1)",
    '=HYPERLINK("http://evil.example","x")',
    "</textarea></style><svg onload=alert(1)>",
]


class Found(HTMLParser):
    """Attributes and elements of a page that its author did not write."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers: list[str] = []
        self.scripts: list[str] = []
        self.links: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_script = tag == "script"
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]

    def handle_data(self, data: str) -> None:
        if self._in_script and data.strip():
            self.scripts.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False


@pytest.fixture
def house(db: None) -> House:
    return make_house()


@pytest.mark.parametrize("text", HOSTILE)
def test_F097_hostile_text_is_shown_as_text_on_every_page(text: str, house: House) -> None:
    case = open_run(house.agent, intent=f"Refund {text}", scope={}, requester=text, customer_ref=text)
    who = case.agent.who
    intake.turn(who, case.run_id, Turn(text=text), request_id="test")
    propose(case, "load_invoice", {"invoice": text}, step=f"load {text}")
    propose(case, f"tool {text}"[:120], {text: text})
    report(
        case, propose(case, arguments=ARGUMENTS["apply_credit"] | {"invoice": text}), timed_out(), tool="apply_credit"
    )
    other = open_run(house.agent, intent=text, scope={})
    refusal = Observation(kind="reply", status=422, body=json.dumps({"error": {"message": text, "field": text}}))
    report(other, propose(other), refusal, tool="apply_credit")
    alice = house.people["alice"]
    press("claim", case, alice)
    press("comment", case, alice, reason=text)
    intake.finish(who, case.run_id, Finish(claim=text), request_id="test")
    for page in pages(house, [case.run_id, other.run_id], text):
        found = Found()
        found.feed(page)
        assert found.handlers == []
        assert found.scripts == []
        assert not any(link.lower().startswith("javascript:") or "evil.example" in link for link in found.links)
        assert "{{ settings" not in page or "SECRET_KEY }}" in page, "a template string was read as one"


def pages(house: House, run_ids: list[object], text: str) -> list[str]:
    client, paths = (
        house.browser("ada"),
        [
            "/",
            "/runs/",
            "/settings/workflows/",
            "/settings/connectors/",
            "/settings/members/",
            "/search/?" + urlencode({"q": text}),
        ],
    )
    with wall.within(house.nordlicht.pk):
        paths += [f"/tasks/{pk}/" for pk in HumanTask.objects.values_list("pk", flat=True)]
    paths += [f"/runs/{run_id}/{part}" for run_id in run_ids for part in ("", "plan/")]
    answers = [client.get(path) for path in paths]
    assert {answer.status_code for answer in answers} == {200}
    return [answer.content.decode() for answer in answers]
