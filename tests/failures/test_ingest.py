"""What happened elsewhere: told late, twice, in any order and half broken, and still the facts come out right."""

import json
import random
from datetime import timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter
from steadyhand.contract import Ingested, Record

from recovery import intake
from runs import wall
from runs.models import Action, Attempt, Event, Run
from runs.querysets import read_clock
from tests.factories import ARGUMENTS, RESULTS, WORKFLOW, Agent, Case, advance_clock, open_run, register
from tests.failures.conftest import manifest
from tests.recovery.stories import (
    Looks,
    effects,
    evidence,
    kinds,
    look,
    open_tasks,
    present,
    standing,
    tick,
    tries,
)

pytestmark = pytest.mark.django_db
RECORD: TypeAdapter[Record] = TypeAdapter(Record)
REF = "elsewhere-1"


class Story:
    """Records of one run, each later than the one before; `ago` says how long ago the run began."""

    def __init__(
        self, agent: Agent, ref: str = REF, ago: float = 3000, workflow: dict[str, Any] | None = None, **promises: Any
    ) -> None:
        self.agent, self.ref = agent, ref
        self.start, self.step = read_clock() - timedelta(seconds=ago), 0
        register(agent, workflow or manifest(**promises))
        self.records: list[Record] = [self.make("run", workflow=WORKFLOW, intent="Credit the customer")]

    def make(self, kind: str, *, after: float | None = None, id: str = "", **fields: Any) -> Record:
        self.step += 1
        at = self.start + timedelta(seconds=self.step if after is None else after)
        ours = "" if self.ref == REF else f"{self.ref}-"
        named = {"kind": kind, "id": id or f"{ours}{kind}-{self.step}", "run": self.ref, "at": at}
        return RECORD.validate_python(named | fields)

    def add(self, kind: str, **fields: Any) -> "Story":
        self.records.append(self.make(kind, **fields))
        return self

    def called(self, tool: str = "apply_credit", **fields: Any) -> "Story":
        return self.add("call", step=tool, tool=tool, arguments=ARGUMENTS[tool], **fields)

    def sent(self, tool: str = "apply_credit", attempt: int = 1, **fields: Any) -> "Story":
        return self.add("dispatch", step=tool, attempt=attempt, **fields)

    def answered(self, tool: str = "apply_credit", attempt: int = 1, status: int = 200, **fields: Any) -> "Story":
        body = fields.pop("body", RECORD_BODY[tool])
        seen = {"kind": "reply", "status": status, "body": body}
        return self.add("observation", step=tool, attempt=attempt, observation=seen, **fields)

    def lost(self, tool: str = "apply_credit", attempt: int = 1, **fields: Any) -> "Story":
        seen = {"kind": "timeout", "bytes_sent": 500}
        return self.add("observation", step=tool, attempt=attempt, observation=seen, **fields)

    def worked(self, *tools: str) -> "Story":
        for tool in tools:
            self.called(tool).sent(tool).answered(tool)
        return self

    def tell(self, *records: Record) -> Ingested:
        """Tell these records, or all of them."""
        numbered = list(enumerate(records or self.records))
        return intake.ingest(self.agent.who, numbered, request_id="test")

    @property
    def case(self) -> Case:
        with wall.within(self.agent.tenant.pk):
            run = Run.objects.get(client_ref=self.ref)
        return Case(self.agent, run.pk, str(run.workflow_id))


RECORD_BODY = {tool: json.dumps(result) for tool, result in RESULTS.items()}
WHOLE = ("load_invoice", "apply_credit", "draft_reply")


def whole(agent: Agent, **more: Any) -> Story:
    return (
        Story(agent, **more)
        .add("turn", usage={"input_tokens": 900, "output_tokens": 90})
        .worked(*WHOLE)
        .add("finish")
    )


def states(case: Case) -> dict[str, str]:
    with wall.within(case.tenant.pk):
        return dict(Action.objects.filter(run_id=case.run_id).order_by("id").values_list("step", "state"))


def problems(told: Ingested) -> list[tuple[str | None, str, str]]:
    return [(fault.record_id, fault.field, fault.remedy) for fault in told.errors]


# --- what comes out -------------------------------------------------------------------------------------------


def test_a_whole_run_told_at_once_is_the_run_that_it_was(agent: Agent) -> None:
    story = whole(agent)
    told = story.tell()
    assert (told.accepted, told.duplicates, told.errors) == (12, 0, [])
    case = story.case
    assert told.runs == [str(case.run_id)]
    assert standing(case) == ("completed", "ok", "completed")
    assert effects(case) == ["apply_credit", "draft_reply"]
    run = case.run
    assert (run.origin, run.turns, run.tool_calls, run.input_tokens) == ("ingest", 1, 3, 900)


def test_times_are_those_of_the_facts_and_never_in_the_future(agent: Agent) -> None:
    story = Story(agent, ago=3000).called().sent().answered()
    story.tell()
    [attempt] = tries(story.case)
    assert attempt.dispatched_at == story.start + timedelta(seconds=3)
    assert attempt.ended_at == story.start + timedelta(seconds=4)
    assert story.case.run.opened_at == story.start + timedelta(seconds=1)
    ahead = Story(agent, ref="ahead", ago=-9000).called().sent().answered()
    ahead.tell()
    assert tries(ahead.case)[0].dispatched_at <= read_clock()


@pytest.mark.parametrize("seed", range(4))
def test_the_order_in_which_records_come_does_not_matter(seed: int, agent: Agent) -> None:
    story = whole(agent)
    random.Random(seed).shuffle(story.records)
    assert story.tell().errors == []
    assert standing(story.case) == ("completed", "ok", "completed")


def test_what_is_told_twice_is_one_fact(agent: Agent) -> None:
    story = whole(agent)
    story.records += story.records[3:6]
    told = story.tell()
    assert (told.accepted, told.duplicates) == (12, 3)
    again = story.tell()
    assert (again.accepted, again.duplicates, again.errors) == (0, 15, [])
    assert [len(tries(story.case, tool)) for tool in WHOLE] == [1, 1, 1]
    assert effects(story.case) == ["apply_credit", "draft_reply"]


def test_the_same_answer_under_two_record_ids_is_one_fact(agent: Agent) -> None:
    story = Story(agent).called().sent().answered(after=20).answered(after=20)
    told = story.tell()
    assert (told.accepted, told.duplicates, told.errors) == (4, 1, [])
    assert evidence(story.case) == []


def test_a_failed_try_and_its_repeat_are_two_tries_of_one_call(agent: Agent) -> None:
    story = Story(agent).called().sent().answered(status=429).sent(attempt=2).answered(attempt=2).add("finish")
    assert story.tell().errors == []
    assert [(one.number, one.observed) for one in tries(story.case)] == [(1, "transient_reject"), (2, "ok_valid")]
    assert states(story.case) == {"apply_credit": "succeeded"}


def test_batches_may_be_cut_anywhere_between_records(agent: Agent) -> None:
    story = whole(agent)
    for one in story.records:
        assert story.tell(one).errors == []
    assert standing(story.case) == ("completed", "ok", "completed")


def test_two_runs_in_one_batch_are_two_runs(agent: Agent) -> None:
    first, second = whole(agent), whole(agent, ref="elsewhere-2")
    told = first.tell(*first.records, *second.records)
    assert (told.accepted, len(told.runs)) == (24, 2)
    assert standing(second.case) == ("completed", "ok", "completed")


# --- what stays open ------------------------------------------------------------------------------------------


def test_F004_a_call_that_was_sent_and_never_answered_is_unknown_at_once(agent: Agent) -> None:
    story = Story(agent).worked("load_invoice").called().sent()
    story.tell()
    assert standing(story.case)[1:] == ("needs_human", "external_outcome_unknown")
    assert open_tasks(story.case) == [("reconcile_write", "external_outcome_unknown")]
    assert effects(story.case) == []


def test_a_call_whose_time_is_not_over_is_waited_for(agent: Agent) -> None:
    story = Story(agent, ago=5).called().sent()
    story.tell()
    assert standing(story.case)[0] == "waiting_for_tool"
    story.tell(story.make("observation", step="apply_credit", observation=SEEN))
    assert states(story.case) == {"apply_credit": "succeeded"}


SEEN = {"kind": "reply", "status": 200, "body": RECORD_BODY["apply_credit"]}


def test_two_lost_writes_and_a_good_read_told_out_of_order(agent: Agent) -> None:
    story = Story(agent)
    for tool in ("apply_credit", "draft_reply", "load_invoice"):
        story.called(tool, after=2).sent(tool, after=3)
    story.answered("load_invoice", after=4).answered("load_invoice", after=4)
    made_up = {"kind": "exception", "exc_type": "MissingResult", "message": "no result record for this call"}
    story.add("observation", step="apply_credit", observation=made_up, synthetic=True, after=200)
    told = story.tell(*reversed(story.records))
    assert (told.duplicates, told.errors) == (1, [])
    assert states(story.case) == {"apply_credit": "held", "draft_reply": "held", "load_invoice": "succeeded"}
    assert standing(story.case)[1:] == ("needs_human", "external_outcome_unknown")
    assert {task[1] for task in open_tasks(story.case)} == {"external_outcome_unknown"}


def test_a_made_up_answer_is_marked_and_is_evidence_of_nothing(agent: Agent) -> None:
    story = Story(agent).called().sent()
    story.add("observation", step="apply_credit", observation=SEEN, synthetic=True)
    story.tell()
    [attempt] = tries(story.case)
    assert (attempt.observed, effects(story.case)) == ("unknown", [])
    assert "told_no_result" in kinds(story.case)


def test_a_write_that_was_sent_again_blindly_is_not_believed_on_its_second_answer(agent: Agent) -> None:
    story = Story(agent).called().sent().lost().sent(attempt=2).answered(attempt=2)
    story.tell()
    assert [(one.number, one.observed) for one in tries(story.case)] == [(1, "unknown"), (2, "ok_valid")]
    assert standing(story.case)[1:] == ("needs_human", "external_outcome_unknown")


def test_a_try_that_was_sent_again_before_its_answer_ended_there(agent: Agent) -> None:
    story = Story(agent).called().sent().sent(attempt=2).answered(attempt=2)
    assert story.tell().errors == []
    first, second = tries(story.case)
    assert (first.observed, first.ended_at) == ("unknown", second.dispatched_at)


def test_a_key_that_is_declared_is_no_key_for_a_call_that_was_sent_elsewhere(agent: Agent) -> None:
    key = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"}
    story = Story(agent, idempotency=key).called().sent().lost()
    story.tell()
    assert states(story.case) == {"apply_credit": "held"}


def test_a_look_up_by_our_own_id_would_prove_nothing_and_is_not_made(agent: Agent, looks: Looks) -> None:
    story = Story(agent).called().sent().lost()
    story.tell()
    advance_clock(minutes=30)
    look(story.case)
    assert looks.asked == []
    assert open_tasks(story.case) == [("reconcile_write", "external_outcome_unknown")]


def test_a_look_up_by_the_key_that_the_provider_got_settles_it(agent: Agent, looks: Looks) -> None:
    workflow = manifest()
    workflow["tools"][1]["reconcile"]["look"] |= {"query": {}, "ours": {"ref": "{key}"}}
    story = Story(agent, workflow=workflow)
    story.called(key="their-ref-1").sent().lost().add("finish").tell()
    looks.say(present())
    advance_clock(minutes=5)
    look(story.case)
    assert [question.key for question in looks.asked] == ["their-ref-1"]
    assert states(story.case) == {"apply_credit": "succeeded"}
    tick()
    assert standing(story.case)[1:] == ("needs_human", "required_effect_missing")


def test_an_answer_that_was_late_there_is_late_here(agent: Agent) -> None:
    story = Story(agent).called().sent().answered(after=900)
    story.tell()
    assert story.case.action().reason_code == "completed_late_result"
    assert tries(story.case)[0].observed == "unknown"


def test_an_answer_in_a_later_batch_settles_what_was_unknown(agent: Agent) -> None:
    story = Story(agent).called().sent()
    story.tell()
    assert len(open_tasks(story.case)) == 1
    story.tell(story.make("observation", step="apply_credit", observation=SEEN))
    assert states(story.case) == {"apply_credit": "succeeded"}
    assert open_tasks(story.case) == []


def test_a_proven_write_that_was_sent_again_asks_a_person(agent: Agent) -> None:
    story = Story(agent).called().sent().answered()
    story.tell()
    assert story.tell(story.make("dispatch", step="apply_credit", attempt=2)).errors == []
    assert open_tasks(story.case) == [("decide_next", "conflicting_evidence")]
    assert states(story.case) == {"apply_credit": "succeeded"}


def test_a_call_that_nobody_sent_was_not_applied(agent: Agent) -> None:
    story = Story(agent).worked("load_invoice").called().add("finish")
    story.tell()
    assert states(story.case) == {"load_invoice": "succeeded", "apply_credit": "void"}
    assert standing(story.case)[1:] == ("fatal", "not_applied")


def test_a_call_that_its_contract_refuses_and_nobody_sent_is_the_runs_refusal(agent: Agent) -> None:
    story = Story(agent)
    story.add("call", step="apply_credit", tool="apply_credit", arguments={"amount_minor": "many"}).add("finish")
    story.tell()
    assert standing(story.case) == ("failed", "fatal", "invalid_arguments")


def test_a_cancel_elsewhere_leaves_its_unknown_write_to_a_person(agent: Agent) -> None:
    story = Story(agent).called().sent().lost().add("cancel", reason="the customer called")
    story.tell()
    assert standing(story.case) == ("cancelled", "cancelled", "cancelled_effect_unknown")
    assert len(open_tasks(story.case)) == 1


def test_a_run_without_an_end_is_open_and_a_persons_once_its_time_is_over(agent: Agent) -> None:
    story = Story(agent, ago=90_000).worked("load_invoice")
    story.tell()
    assert standing(story.case)[:2] == ("executing", None)
    advance_clock(hours=2)
    tick()
    assert standing(story.case)[1:] == ("needs_human", "time_budget_exhausted")


def test_more_calls_than_the_budget_allows_are_all_recorded_and_stop_the_run(agent: Agent) -> None:
    story = Story(agent, budgets={"max_tool_calls": 1}).worked("load_invoice", "apply_credit")
    assert story.tell().errors == []
    assert standing(story.case)[2] == "tool_call_budget_exhausted"
    assert effects(story.case) == ["apply_credit"]


# --- what is broken -------------------------------------------------------------------------------------------


def test_the_good_part_lands_and_each_bad_record_is_named(agent: Agent) -> None:
    story = whole(agent)
    story.records[3] = story.make("dispatch", step="never_called", id="lost-1", after=4)
    story.records.append(story.make("call", step="x", tool="unheard_of", arguments={}, id="lost-2", after=2))
    told = story.tell()
    assert problems(told) == [
        ("lost-1", "step", "send the call of this step first"),
        ("observation-5", "attempt", "send the dispatch of this attempt first"),
        ("lost-2", "tool", "declare this tool in the workflow first"),
    ]
    assert effects(story.case) == ["apply_credit", "draft_reply"]


def test_an_answer_whose_call_is_unknown_may_be_told_again_after_the_call(agent: Agent) -> None:
    story = Story(agent)
    answer = story.make("observation", step="apply_credit", observation=SEEN, after=9)
    told = story.tell(story.records[0], answer)
    assert problems(told) == [(answer.id, "step", "send the call of this step first")]
    story.called(after=5).sent(after=6)
    assert story.tell(*story.records, answer).errors == []
    assert states(story.case) == {"apply_credit": "succeeded"}


def test_a_run_that_nobody_told_of_has_no_records(agent: Agent) -> None:
    story = Story(agent)
    story.called()
    told = story.tell(story.records[1])
    assert problems(told) == [("call-2", "run", "send the record of this run first")]
    assert told.runs == []


@pytest.mark.parametrize(
    ("kind", "fields", "field"),
    [
        ("dispatch", {"step": "apply_credit", "attempt": 3}, "attempt"),
        ("observation", {"step": "apply_credit", "attempt": 2, "observation": SEEN}, "attempt"),
        ("call", {"step": "again", "tool": "apply_credit", "arguments": ARGUMENTS["apply_credit"]}, "step"),
        ("run", {"workflow": WORKFLOW, "intent": "Something else"}, "run"),
    ],
)
def test_a_record_that_does_not_fit_says_what_is_missing(
    kind: str, fields: dict[str, Any], field: str, agent: Agent
) -> None:
    story = Story(agent, ago=10).called().sent()
    story.tell()
    told = story.tell(story.make(kind, id="odd", **fields))
    assert [(one[0], one[1]) for one in problems(told)] == [("odd", field)]


def test_a_run_of_an_unknown_workflow_is_named(agent: Agent) -> None:
    story = Story(agent)
    bad = story.make("run", workflow="no-such", intent="x", id="w")
    assert problems(story.tell(bad)) == [("w", "workflow", "register this workflow first")]


def test_what_came_after_the_end_of_a_run_is_refused(agent: Agent) -> None:
    story = whole(agent)
    story.tell()
    told = story.tell(story.make("call", step="more", tool="load_invoice", arguments={"invoice": "INV-2"}))
    assert [one[1] for one in problems(told)] == ["run"]


def test_a_run_of_the_boundary_takes_no_told_records(agent: Agent) -> None:
    story = Story(agent)
    case = open_run(agent, ref="mine")
    told = story.tell(*[one.model_copy(update={"run": "mine"}) for one in story.called().records[1:]])
    assert [one[1] for one in problems(told)] == ["run"]
    assert states(case) == {}


def test_secrets_in_told_records_are_redacted(agent: Agent) -> None:
    seen = {"kind": "exception", "exc_type": "HTTPError", "message": "at https://x.example/?api_key=canary-5512"}
    story = Story(agent).called().sent().add("observation", step="apply_credit", observation=seen)
    story.tell()
    with wall.within(agent.tenant.pk):
        assert "canary-5512" not in str(list(Attempt.objects.values_list("observation", flat=True)))
        assert "canary-5512" not in str(list(Event.objects.values_list("data", "reason")))


def test_questions_per_record_do_not_grow_with_the_batch(agent: Agent, django_assert_max_num_queries: Any) -> None:
    def story(ref: str, calls: int) -> Story:
        made = Story(agent, ref=ref)
        for number in range(calls):
            made.add("call", step=f"s{number}", tool="load_invoice", arguments={"invoice": f"INV-{number}"})
        return made

    story("warm", 2).tell()
    with django_assert_max_num_queries(400) as few:
        story("few", 3).tell()
    with django_assert_max_num_queries(4000) as many:
        story("many", 19).tell()
    assert (len(many) - len(few)) / 16 < 20


def test_a_refusal_that_is_told_late_but_came_in_time_is_a_refusal(agent: Agent) -> None:
    story = Story(agent).called().sent()
    story.tell()
    refused = {"kind": "reply", "status": 422, "body": '{"error": {"code": "invoice_closed"}}'}
    story.tell(story.make("observation", step="apply_credit", observation=refused))
    assert states(story.case) == {"apply_credit": "refused_permanent"}
    assert open_tasks(story.case) == []
