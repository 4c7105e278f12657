"""Callbacks and batches that meet on real connections: nothing is missed, nothing counts twice."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from pydantic import TypeAdapter
from steadyhand.contract import Record

from recovery import callbacks, inbox, intake
from recovery.models import InboxMessage
from runs import wall
from runs.models import Run
from runs.querysets import read_clock
from tests.factories import ARGUMENTS, RESULTS, WORKFLOW, Agent, Case, open_run, propose, register, reply, report
from tests.failures.conftest import manifest
from tests.races.together import at_once
from tests.recovery.stories import effects, kinds, tries

CALLBACK = {"source": "payments", "identity": "credit_id", "succeeded": ["succeeded"], "failed": ["failed"]}
ACCEPTED = {"credit_id": "cr_1", "state": "processing"}
RECORD: TypeAdapter[Record] = TypeAdapter(Record)


def awaited(agent: Agent) -> Case:
    register(agent, manifest(callback=CALLBACK, completes_by="callback", async_statuses=[202], reconcile=None))
    return open_run(agent)


def tell(case: Case, message: str = "evt_1", external_id: str = "cr_1") -> str:
    payload = {"credit_id": external_id, "state": "succeeded"}
    return callbacks.take(
        case.tenant.pk, source="payments", message_id=message, sent_at=read_clock(), payload=payload
    )


def states(case: Case) -> list[str]:
    with wall.within(case.tenant.pk):
        return list(InboxMessage.objects.values_list("state", flat=True))


def test_F074_one_message_delivered_at_once_is_used_once(agent: Agent) -> None:
    case = awaited(agent)
    report(case, propose(case), reply(ACCEPTED, status=202))
    told = at_once(*[lambda: tell(case)] * 4)
    assert sorted(told) == ["duplicate", "duplicate", "duplicate", "used"]
    assert effects(case) == ["apply_credit"]
    assert kinds(case).count("callback_used") == 1


def test_F073_a_callback_and_the_reply_that_brings_its_id_do_not_miss_each_other(agent: Agent) -> None:
    for number in range(6):
        case = awaited(agent)
        permit, ours = propose(case), f"cr_{number}"
        accepted = ACCEPTED | {"credit_id": ours}
        told, said = at_once(
            lambda case=case, number=number, ours=ours: tell(case, f"evt_{number}", ours),
            lambda case=case, permit=permit, accepted=accepted: report(case, permit, reply(accepted, status=202)),
        )
        assert told in ("used", "waiting"), told
        assert not isinstance(said, Exception)
        assert case.action().state == "succeeded"
    assert set(states(case)) == {"used"}


def test_F073_a_callback_that_is_put_aside_while_the_reply_lands_looks_again(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = awaited(agent)
    permit = propose(case)
    hold = inbox.hold_identity
    landed: list[Any] = []

    def meanwhile(*args: Any) -> None:
        if not landed:
            landed.append(None)
            landed.extend(at_once(lambda: report(case, permit, reply(ACCEPTED, status=202))))
        hold(*args)

    monkeypatch.setattr(inbox, "hold_identity", meanwhile)
    assert tell(case) == "used"
    assert case.action().state == "succeeded"
    assert states(case) == ["used"]


def test_F073_a_reply_waits_for_the_callback_that_is_being_put_aside_and_finds_it(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = awaited(agent)
    permit, wait_for = propose(case), inbox.wait_for
    replies: list[Future[list[Any]]] = []

    with ThreadPoolExecutor(1) as pool:

        def slowly(letter: Any, named: Any) -> None:
            wait_for(letter, named)
            replies.append(pool.submit(at_once, lambda: report(case, permit, reply(ACCEPTED, status=202))))
            while not (replies[0].done() or somebody_waits()):
                pass

        monkeypatch.setattr(inbox, "wait_for", slowly)
        assert tell(case) == "waiting"
    assert case.action().state == "succeeded"
    assert states(case) == ["used"]


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return bool(cursor.fetchone()[0])


def test_the_same_batch_told_at_once_is_one_run(agent: Agent) -> None:
    register(agent)
    at = read_clock() - timedelta(minutes=10)
    seen = {"kind": "reply", "status": 200, "body": json.dumps(RESULTS["apply_credit"])}
    fields: list[dict[str, Any]] = [
        {"kind": "run", "workflow": WORKFLOW, "intent": "Credit the customer"},
        {"kind": "call", "step": "credit", "tool": "apply_credit", "arguments": ARGUMENTS["apply_credit"]},
        {"kind": "dispatch", "step": "credit"},
        {"kind": "observation", "step": "credit", "observation": seen},
    ]
    batch = [
        (place, RECORD.validate_python({"id": f"r{place}", "run": "one", "at": at + timedelta(seconds=place)} | one))
        for place, one in enumerate(fields)
    ]
    told = at_once(*[lambda: intake.ingest(agent.who, batch, request_id="test")] * 3)
    assert [one.errors for one in told] == [[], [], []]
    assert sum(one.accepted for one in told) == 4
    assert sum(one.duplicates for one in told) == 8
    with wall.within(agent.tenant.pk):
        run = Run.objects.get()
    case = Case(agent, run.pk, str(run.workflow_id))
    assert len(tries(case, "apply_credit")) == 1
    assert effects(case) == ["credit"]
