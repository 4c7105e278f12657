"""What carries the product gives way: no connection is free, a replica is offered, a consumer is away for a day."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections
from django.test import Client

from console.embedded import addresses
from console.embedded.errors import Trouble
from recovery import intake
from recovery.work import worker
from runs import wall
from runs.models import Event
from tests.factories import (
    ARGUMENTS,
    RESULTS,
    Agent,
    Case,
    billing_manifest,
    lose_the_reply,
    make_person,
    open_run,
    propose,
    register,
    reply,
    report,
    turn,
)
from tests.recovery.stories import ABSENT, evidence, press, script, tries

PAGE = 7


@pytest.fixture
def case(agent: Agent) -> Case:
    register(agent, billing_manifest())
    return open_run(agent)


@pytest.fixture
def one_connection() -> Iterator[None]:
    """A pool with room for one, that waits for half a second; as in the web server, nothing is kept beside it."""
    database = settings.DATABASES["default"]
    kept, options = database["CONN_MAX_AGE"], database["OPTIONS"]
    connections.close_all()
    database["CONN_MAX_AGE"], options["pool"] = 0, {"min_size": 0, "max_size": 1, "timeout": 0.5}
    yield
    connections.close_all()
    connection.close_pool()
    del options["pool"]
    database["CONN_MAX_AGE"] = kept


@pytest.fixture
def taken(one_connection: None) -> Iterator[Callable[[], None]]:
    """Somebody else has the one connection until the returned function is called."""
    has, done = threading.Event(), threading.Event()

    def hold() -> None:
        connection.ensure_connection()
        has.set()
        done.wait(30)
        connection.close()

    holder = threading.Thread(target=hold)
    connection.close()
    holder.start()
    assert has.wait(10)

    def let_go() -> None:
        done.set()
        holder.join()

    yield let_go
    let_go()


def test_F065_without_a_free_connection_a_call_is_refused_before_it_is_permitted(
    agent: Agent, case: Case, taken: Callable[[], None]
) -> None:
    answer = proposed(agent, case)
    assert (answer.status_code, answer["content-type"]) == (503, "application/problem+json")
    taken()
    assert tries(case) == []
    assert (case.run.in_flight, case.run.tool_calls) == (0, 0)
    assert json.loads(proposed(agent, case).content)["answer"] == "execute"


def proposed(agent: Agent, case: Case) -> Any:
    body = {"workflow_id": case.workflow_id, "tool": "apply_credit", "arguments": ARGUMENTS["apply_credit"]}
    return Client(raise_request_exception=False).post(
        f"/api/v1/runs/{case.run_id}/proposals",
        json.dumps(body),
        content_type="application/json",
        headers={"authorization": f"Bearer {agent.token}"},
    )


def test_F066_there_is_one_database_to_decide_by_and_no_router_to_another() -> None:
    assert set(settings.DATABASES) <= {"default", "owner"}
    assert settings.DATABASE_ROUTERS == []
    assert settings.DATABASES["default"]["OPTIONS"]["target_session_attrs"] == "primary"


@pytest.mark.parametrize("asked", ["standby", "prefer-standby", "read-only", "any"])
def test_F066_an_address_that_asks_for_a_replica_is_refused(asked: str) -> None:
    with pytest.raises(Trouble, match="no decision is read from one"):
        addresses.database(f"postgresql://a,b/facts?target_session_attrs={asked}", variable="DATABASE_URL")


def test_F056_a_message_that_is_handed_out_again_during_its_look_makes_no_second_look(
    agent: Agent, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, looks = make_person("alice", case.tenant), script(monkeypatch)
    lose_the_reply(case)
    looks.say(ABSENT)
    pressed = press("reconcile", case, alice)
    looks.meanwhile = lambda: worker.execute(pressed.pk)
    worker.execute(pressed.pk)
    assert (len(looks.asked), evidence(case)) == (1, ["absent"])


def test_F071_a_consumer_that_was_away_for_a_day_reads_every_event_once_and_in_order(
    agent: Agent, later: Callable[[float], None]
) -> None:
    register(agent, billing_manifest())
    runs = [open_run(agent) for _ in range(4)]
    place = intake.events(agent.who, after=None, limit=PAGE).next
    already = 4
    for tool in ("load_invoice", "apply_credit", "draft_reply"):
        for case in runs:
            turn(case)
            report(case, propose(case, tool), reply(RESULTS[tool]), tool=tool)
    later(86_400)
    told = list(drained(agent, place))
    with wall.within(agent.tenant.pk):
        written = list(Event.objects.filter(run__isnull=False).order_by("txid", "id").values_list("pk", "run_id"))
    assert told == [str(pk) for pk, _ in written][already:]
    assert len(told) == len(set(told)) > PAGE * 2


def drained(agent: Agent, place: str | None) -> Iterator[str]:
    while (page := intake.events(agent.who, after=uuid.UUID(place) if place else None, limit=PAGE)).items:
        yield from (item.id for item in page.items)
        place = page.next
