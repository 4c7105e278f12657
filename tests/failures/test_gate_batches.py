"""A batch of which a part is done: only what is missing may be sent, and nothing while a part is in doubt (F049)."""

from __future__ import annotations

from typing import Any

import pytest

from recovery import proposal
from runs import definitions, record, vault, wall
from runs.ids import new_id
from runs.models import Action
from tests.factories import Case, propose, reply, report
from tests.failures.conftest import Opener
from tests.recovery.stories import tries

BATCH = {
    "batch": {
        "items": "payload.lines", "key": "line", "results": "payload.done", "result_key": "line",
        "ok": {"path": "status", "equals": "ok"},
    },
    "input_schema": {"type": "object"},
    "value_field": None,
    "currency_field": None,
    "identity_fields": [],
    "output_schema": {"type": "object"},
}  # fmt: skip
LINES = [{"line": f"l{number}", "amount": number} for number in range(4)]


@pytest.fixture
def case(opened: Opener) -> Case:
    return opened(**BATCH, run={"scope": {}})


def sent(lines: list[dict[str, Any]]) -> dict[str, Any]:
    return {"account": "acct_8841", "payload": {"lines": lines, "note": "weekly"}}


def part(case: Case, line: dict[str, Any], state: str) -> None:
    """One line of an earlier batch, as the report of that batch leaves it."""
    with wall.within(case.tenant.pk):
        run, definition = case.run, definitions.of_run(case.run)
        settled = state in ("succeeded", "refused_permanent")
        action = Action.objects.create(
            tenant=case.tenant, run=run, role="item", action_id=new_id().hex, step=f"first:{line['line']}",
            tool="apply_credit", tool_version=3, effect="write", turn=0, arguments=line, sealed_arguments=b"x",
            arguments_hash=proposal.item_hash(definition, line), state=state,
            sealed_result=vault.seal(definition.keys, {"line": line["line"], "status": "ok"}),
            settled_at=run.opened_at if settled else None, due_at=None if settled else run.elapses_at,
        )  # fmt: skip
        if state == "succeeded":
            record.prove_effect(action, run=run, by="response", external_id=line["line"])


def test_F049_only_the_missing_items_may_be_sent(case: Case) -> None:
    part(case, LINES[0], "succeeded")
    part(case, LINES[2], "succeeded")
    part(case, LINES[3], "refused_permanent")
    permit = propose(case, arguments=sent(LINES), step="the rest")
    assert permit.answer == "execute"
    assert permit.arguments == sent([LINES[1], LINES[3]])


def test_F049_an_item_with_other_content_is_another_item(case: Case) -> None:
    part(case, LINES[0], "succeeded")
    permit = propose(case, arguments=sent([LINES[0] | {"amount": 99}]), step="changed")
    assert (permit.answer, permit.arguments) == ("execute", None)


def test_F049_nothing_is_sent_while_an_item_is_in_doubt(case: Case) -> None:
    part(case, LINES[0], "unknown")
    permit = propose(case, arguments=sent(LINES), step="the rest")
    assert (permit.answer, permit.error.code) == ("wait", "external_outcome_unknown")
    assert tries(case) == []


def test_F049_a_batch_that_is_done_is_not_sent_again(case: Case) -> None:
    for line in LINES[:2]:
        part(case, line, "succeeded")
    permit = propose(case, arguments=sent(LINES[:2]), step="again")
    assert permit.answer == "replay"
    assert permit.result == {"payload": {"done": [{"line": "l0", "status": "ok"}, {"line": "l1", "status": "ok"}]}}


def test_a_batch_of_which_nothing_was_sent_goes_as_it_is(case: Case) -> None:
    permit = propose(case, arguments=sent(LINES))
    assert (permit.answer, permit.arguments) == ("execute", None)


def test_F049_after_a_partial_reply_the_rest_is_asked_for_alone(case: Case) -> None:
    permit = propose(case, arguments=sent(LINES))
    done = [{"line": "l0", "status": "ok"}, {"line": "l1", "status": "ok"}]
    refused = [{"line": "l2", "status": "no"}, {"line": "l3", "status": "no"}]
    report(case, permit, reply({"payload": {"done": done + refused}}), tool="apply_credit")
    with wall.within(case.tenant.pk):
        states = list(case.run.actions.filter(role="item").order_by("id").values_list("state", flat=True))
        hashes = set(case.run.actions.filter(role="item").values_list("arguments_hash", flat=True))
        definition = definitions.of_run(case.run)
    assert states[:2] == ["succeeded", "succeeded"]
    assert hashes == {proposal.item_hash(definition, line) for line in LINES}
