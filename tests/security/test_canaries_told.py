"""The same search after the other ways in: providers' messages, what happened elsewhere, approvals, dead letters."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from pydantic import TypeAdapter
from steadyhand.contract import Record, Rollback

from recovery import callbacks, intake
from recovery.work import stops
from runs import wall
from runs.querysets import read_clock
from tests.console.conftest import House
from tests.factories import (
    ACCOUNT,
    WORKFLOW,
    Case,
    advance_clock,
    open_run,
    propose,
    register,
    reply,
    report,
    timed_out,
)
from tests.failures.conftest import manifest
from tests.failures.test_callbacks import CALLBACK, SOURCE
from tests.recovery.stories import open_tasks, press
from tests.security.test_canaries import CANARIES, Listening, arguments, house, log, search

__all__ = ["house", "log"]
pytestmark = pytest.mark.security
RECORD: TypeAdapter[Record] = TypeAdapter(Record)


@pytest.fixture(params=[*CANARIES])
def planted(request: pytest.FixtureRequest) -> tuple[str, str]:
    """(the part that must never be seen again, the text it travels in)"""
    return CANARIES[request.param]


def take(house: House, case: Case, **payload: Any) -> str:
    return callbacks.take(
        house.nordlicht.pk, source=SOURCE, message_id=uuid.uuid4().hex, sent_at=read_clock(), payload=payload
    )


def test_F099_a_secret_in_a_providers_message_is_seen_nowhere(
    planted: tuple[str, str], house: House, log: Listening
) -> None:
    secret, text = planted
    register(house.agent, manifest(callback=CALLBACK))
    case = open_run(house.agent, scope={})
    permit = propose(case)
    report(case, permit, timed_out())
    named = {"metadata": {"action_id": permit.action_id}, "note": text, text: text}
    assert take(house, case, state=text, credit_id=text, **named) == "ignored"
    assert take(house, case, state="succeeded", credit_id=text, **named) == "used"
    assert take(house, case, state="failed", credit_id=text, note=text) in ("waiting", "ignored", "used")
    search(secret, case, house, log, [])


def told(house: House, text: str) -> tuple[Case, Any]:
    seen = {"kind": "reply", "status": 422, "body": json.dumps({"error": {"message": text, "field": text}})}
    parts: list[dict[str, Any]] = [
        {"kind": "run", "workflow": WORKFLOW, "intent": text, "requester": text, "customer_ref": text},
        {"kind": "call", "step": "apply_credit", "tool": "apply_credit", "arguments": arguments(text)},
        {"kind": "dispatch", "step": "apply_credit", "attempt": 1},
        {"kind": "observation", "step": "apply_credit", "attempt": 1, "observation": seen},
        {"kind": "call", "step": text[:120], "tool": text[:120], "arguments": {text: text}},
        {"kind": "finish", "claim": text},
    ]
    common = {"run": "elsewhere-1", "at": read_clock()}
    records = [RECORD.validate_python({"id": f"r-{number}", **common, **part}) for number, part in enumerate(parts)]
    answered = intake.ingest(house.agent.who, [*enumerate(records)], request_id="t")
    workflow = open_run(house.agent, scope={}).workflow_id
    with wall.within(house.nordlicht.pk):
        run_id = intake.Run.objects.get(client_ref="elsewhere-1").pk
    return Case(house.agent, run_id, workflow), answered


def test_F099_a_secret_in_what_happened_elsewhere_is_seen_nowhere(
    planted: tuple[str, str], house: House, log: Listening
) -> None:
    secret, text = planted
    case, answered = told(house, text)
    assert answered.accepted >= 4
    search(secret, case, house, log, [answered])


def test_F099_a_secret_in_a_call_that_waits_for_an_approval_is_seen_nowhere(
    planted: tuple[str, str], house: House, log: Listening
) -> None:
    secret, text = planted
    register(house.agent, manifest(requires_approval=True))
    case = open_run(house.agent, scope={}, intent=text)
    answers = [propose(case, arguments=arguments(text))]
    assert open_tasks(case)[0][1] == "approval_required"
    search(secret, case, house, log, answers)
    press("reject", case, house.people["omar"], reason=text)
    answers += [
        propose(case, arguments=arguments(text)),
        intake.rollback(case.agent.who, case.run_id, Rollback(reason=text), request_id="t"),
    ]
    search(secret, case, house, log, answers)


def test_F099_a_secret_in_a_dead_letter_is_seen_nowhere(
    planted: tuple[str, str], house: House, log: Listening
) -> None:
    secret, text = planted
    case = open_run(house.agent, scope={})
    for _ in range(3):
        busy = reply({"error": text}, status=429, headers={"retry-after": "1"})
        report(case, propose(case, arguments=arguments(text)), busy)
        advance_clock(seconds=90)
    assert open_tasks(case) == [("dead_letter", "retry_exhausted")]
    omar = house.people["omar"]
    press("claim", case, omar)
    press("discard", case, omar, reason=text)
    switch = stops.set_stop(omar, house.nordlicht.pk, scope="everything", mode="halt", reason=text)
    stops.lift_stop(omar, house.nordlicht.pk, switch.pk, reason=text)
    search(secret, case, house, log, [propose(case, arguments={**arguments("x"), "account": ACCOUNT})])
