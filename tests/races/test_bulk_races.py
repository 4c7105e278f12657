"""Bulk operations with real commits: two workers at once, a worker killed between two items, two clicks at once."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from recovery.models import BulkItem, BulkOperation, Decision
from recovery.work import bulk, bulk_run
from recovery.work.bulk import Pace, Wish
from runs import wall
from runs.models import Person
from tests.factories import Agent, lose_the_reply, make_person, open_run, register
from tests.races.together import at_once

MANY = 8


def quiet(_: uuid.UUID) -> None:
    """Nobody hears it."""


def wish(agent: Agent) -> Wish:
    register(agent)
    cases = [open_run(agent) for _ in range(MANY)]
    for case in cases:
        lose_the_reply(case)
    return Wish("claim", [case.task().pk for case in cases], "Every task", "?", uuid.uuid4().hex)


def begun(agent: Agent, omar: Person, canary: int) -> BulkOperation:
    operation = bulk.freeze(omar, agent.tenant.pk, wish(agent), ring=quiet)
    pace, key = Pace("At once.", canary, 3000, 1), uuid.uuid4().hex
    return bulk.start(
        omar, agent.tenant.pk, operation.pk, pace, version=operation.version, key=key, ring=quiet
    )  # fmt: skip


def outcome(agent: Agent) -> tuple[str, Counter[str], Counter[uuid.UUID | None]]:
    """The operation's state, its items by state, and how many claims each task has."""
    with wall.within(agent.tenant.pk):
        claims = Counter(Decision.objects.filter(verb="claim").values_list("task", flat=True))
        return BulkOperation.objects.get().state, Counter(BulkItem.objects.values_list("state", flat=True)), claims


def test_two_workers_at_once_do_each_item_once(agent: Agent) -> None:
    operation = begun(agent, make_person("omar", agent.tenant, "oncall"), canary=2)
    errors = at_once(*[lambda: bulk_run.execute(operation.pk, ring=quiet)] * 3)
    assert errors == [None] * 3
    state, items, claims = outcome(agent)
    assert (state, items, set(claims.values())) == ("done", Counter(done=MANY), {1})


def test_a_worker_killed_between_two_items_loses_nothing_and_doubles_nothing(
    agent: Agent, child_env: dict[str, str], tmp_path: Path, later: Callable[[float], None]
) -> None:
    operation = begun(agent, make_person("omar", agent.tenant, "oncall"), canary=3)
    asked = tmp_path / "die"
    asked.write_text("B1")
    script = (
        "import django; django.setup()\nimport uuid\nfrom recovery.work import bulk_run\n"
        f"bulk_run.execute(uuid.UUID('{operation.pk}'), ring=lambda _: None)"
    )
    env = {**child_env, "STEADYHAND_DIE_AT": str(asked)}
    died = subprocess.run([sys.executable, "-c", script], env=env, timeout=120, check=False)
    assert died.returncode == -signal.SIGKILL
    state, items, claims = outcome(agent)
    assert (state, items, sum(claims.values())) == ("running", Counter(done=1, pending=MANY - 1), 1)
    bulk_run.execute(operation.pk, ring=quiet)
    assert outcome(agent)[1] == items, "its lease stands until it runs out"
    later(121)
    bulk_run.execute(operation.pk, ring=quiet)
    state, items, claims = outcome(agent)
    assert (state, items, set(claims.values())) == ("done", Counter(done=MANY), {1})


def test_U07_two_clicks_at_the_same_moment_freeze_one_list(agent: Agent) -> None:
    omar, one = make_person("omar", agent.tenant, "oncall"), wish(agent)
    made = at_once(*[lambda: bulk.freeze(omar, agent.tenant.pk, one, ring=quiet).pk] * 2)
    assert len(set(made)) == 1
    with wall.within(agent.tenant.pk):
        assert BulkItem.objects.count() == MANY


def test_two_people_who_move_it_at_once_do_not_both_win(agent: Agent) -> None:
    omar, ada = (make_person(name, agent.tenant, "oncall") for name in ("omar", "ada"))
    operation = begun(agent, omar, canary=0)

    def move(what: Callable[..., BulkOperation], by: Person) -> str:
        try:
            return what(by, agent.tenant.pk, operation.pk, version=operation.version, key=uuid.uuid4().hex).state
        except bulk.Refused:
            return "refused"

    said = at_once(lambda: move(bulk.suspend, omar), lambda: move(bulk.stop, ada))
    assert said.count("refused") == 1
