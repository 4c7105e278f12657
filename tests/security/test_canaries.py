"""Secrets put into every place that takes text turn up nowhere: no table, no page, no answer, no log (F099, I12)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from steadyhand.contract import Cancel, Finish, Observation, Turn

from recovery import intake
from recovery.work import decisions
from runs import redact, wall
from runs.models import TenantRow
from tests.console.conftest import House, make_house
from tests.factories import ACCOUNT, AMOUNT, INVOICE, Case, open_run, propose, report, timed_out
from tests.recovery.stories import press

# (the part that must never be seen again, the text it travels in)
CANARIES: dict[str, tuple[str, str]] = {
    "bearer": ("ZXhhbXBsZS1jYW5hcnktMDAx", "Authorization: Bearer ZXhhbXBsZS1jYW5hcnktMDAx"),
    "url key": ("FAKEKEY-77aa", "GET https://api.example.net/v2?api_key=FAKEKEY-77aa&x=1 failed"),
    "password": ("hunter2-canary", "password=hunter2-canary"),
    "json password": ("correct-horse-canary", '{"password": "correct-horse-canary"}'),
    "userinfo": ("s3cr3t-canary", "https://root:s3cr3t-canary@db.example.net/x"),
    "provider key": ("sk_live_51Hcanary0000000001", "key sk_live_51Hcanary0000000001"),
    "jwt": (
        "eyJhbGciOiJIUzI1NiJ9.eyJjYW5hcnkiOnRydWV9.c2lnbmF0dXJl",
        "jwt eyJhbGciOiJIUzI1NiJ9.eyJjYW5hcnkiOnRydWV9.c2lnbmF0dXJl",
    ),
    "card": ("4111111111111111", "paid with 4111111111111111"),
    "spaced card": ("5500 0000 0000 0004", "paid with 5500 0000 0000 0004"),
    "iban": ("DE89370400440532013000", "to DE89370400440532013000"),
}
TEXTS = st.sampled_from([*CANARIES])


class Listening(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(f"{record.getMessage()} {record.__dict__}")


@pytest.fixture
def log() -> Iterator[Listening]:
    listening = Listening()
    root = logging.getLogger()
    root.addHandler(listening)
    yield listening
    root.removeHandler(listening)


def observations(text: str) -> dict[str, Observation]:
    """Every way in which a tool's side can bring text."""
    return {
        "body text": Observation(kind="reply", status=500, body=text),
        "body json": Observation(
            kind="reply", status=422, body=json.dumps({"error": {"message": text, "field": text}})
        ),
        "body of a success": Observation(
            kind="reply", status=200, body=json.dumps({"credit_id": "cr_1", "note": text})
        ),
        "header": Observation(kind="reply", status=429, headers={"location": text, "retry-after": text}, body=""),
        "exception": Observation(kind="exception", exc_type=text[:200], message=text),
        "declared": Observation(kind="exception", declared="invalid_input", declared_field=text[:200], message=text),
        "code": Observation(kind="reply", code=text[:80], body=None),
    }


def arguments(text: str) -> dict[str, Any]:
    return {"account": ACCOUNT, "invoice": f"{INVOICE} {text}", "amount_minor": AMOUNT, "currency": "EUR"}


def told(case: Case, text: str) -> list[Any]:
    """The agent's own words, wherever the contract takes some; returns what it is answered."""
    who, run_id = case.agent.who, case.run_id
    return [
        intake.turn(who, run_id, Turn(text=text[:2000]), request_id="test"),
        propose(case, "apply_credit", {"amount_minor": text, text: text}, step=text[:120]),
        propose(case, text[:120], {"x": text}),
    ]


def everything_stored() -> str:
    """Every row of every table of the tenants, as text; sealed columns as their bytes would read."""
    texts: list[str] = []
    with connection.cursor() as cursor:
        for model in apps.get_models():
            if issubclass(model, TenantRow):
                cursor.execute(f"SELECT t::text, row_to_json(t)::text FROM {model._meta.db_table} t")
                texts += [part for row in cursor.fetchall() for part in row]
    return "\n".join(texts)


def pages(client: Client, case: Case, task_ids: list[Any]) -> str:
    of_run = [f"/runs/{case.run_id}/{part}" for part in ("", "raw/", "bundle/", "plan/")]
    paths = ["/", "/stops/", "/runs/", *of_run, *(f"/tasks/{task}/" for task in task_ids)]
    answers = [client.get(path) for path in paths]
    assert {answer.status_code for answer in answers} == {200}
    return "\n".join(answer.content.decode() for answer in answers)


def answered(case: Case) -> str:
    """What an agent can read back of its run."""
    who, run_id = case.agent.who, case.run_id
    return "\n".join(
        model.model_dump_json()
        for model in (
            intake.read(who, run_id, request_id="test"),
            intake.resume(who, run_id, request_id="test"),
            intake.events(who, after=None, limit=500),
            intake.actions(who, limit=100),
            intake.memory(who, run_id),
        )
    )


@pytest.fixture
def house(db: None) -> House:
    return make_house()


KINDS = [*observations("x")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*CANARIES])
def test_F099_a_secret_in_what_a_tool_brings_is_seen_nowhere(
    name: str, kind: str, house: House, log: Listening
) -> None:
    secret, text = CANARIES[name]
    case = open_run(house.agent, intent=f"Refund. {text}", scope={}, requester=text)
    answers: list[Any] = told(case, text)
    permit = propose(case, arguments=arguments(text))
    answers.append(report(case, permit, observations(text)[kind], tool="apply_credit"))
    search(secret, case, house, log, answers)


def test_F099_the_search_would_find_a_secret_that_was_stored(house: House, log: Listening) -> None:
    case = open_run(house.agent, intent="Refund. harmless-word-0001", scope={})
    with pytest.raises(AssertionError, match="harmless-word-0001"):
        search("harmless-word-0001", case, house, log, [])


@pytest.mark.parametrize("name", [*CANARIES])
def test_F099_a_secret_in_what_people_and_agents_say_is_seen_nowhere(name: str, house: House, log: Listening) -> None:
    secret, text = CANARIES[name]
    case = open_run(house.agent, scope={})
    report(case, propose(case), timed_out())
    alice = house.people["alice"]
    press("claim", case, alice)
    press("comment", case, alice, reason=text)
    press("reconcile", case, alice, reason=text)
    who, run_id = case.agent.who, case.run_id
    answers = [
        intake.finish(who, run_id, Finish(claim=text), request_id="test"),
        intake.cancel(who, run_id, Cancel(reason=text), request_id="test"),
    ]
    search(secret, case, house, log, answers)


def search(secret: str, case: Case, house: House, log: Listening, answers: list[Any]) -> None:
    with wall.within(case.tenant.pk):
        tasks = [task.pk for task in decisions.HumanTask.objects.filter(run_id=case.run_id)]
        places = {"tables": everything_stored()}
    places |= {
        "pages": pages(house.browser("ada"), case, tasks),
        "read back": answered(case),
        # What a tool returned goes back whole to the agent that brought it, sealed where it is stored: no leak.
        "answers": "\n".join(answer.model_dump_json(exclude={"result"}) for answer in answers),
        "logs": "\n".join(log.heard),
    }
    compact = secret.replace(" ", "")
    found = [place for place, text in places.items() if secret in text or compact in text]
    assert found == [], f"{secret} stands in {found}"


@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=TEXTS,
    before=st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40),
    after=st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40),
    nest=st.integers(0, 6),
)
def test_F099_a_secret_is_taken_out_wherever_it_stands_in_a_text(
    name: str, before: str, after: str, nest: int
) -> None:
    """Whatever stands around it, at any depth; what touches it without a gap may make it another word."""
    secret, text = CANARIES[name]
    value: Any = f"{before} {text} {after}"
    for level in range(nest):
        value = {"inner": value} if level % 2 else [value]
    assert secret not in json.dumps(redact.redact(value), ensure_ascii=False)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(JSON)
def test_redacting_twice_changes_nothing_more(value: Any) -> None:
    once = redact.redact(value)
    assert redact.redact(once) == once
