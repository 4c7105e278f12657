"""Every kind of connector answers in the same words, asks once, and proves nothing by failing (DECISIONS 5, F042)."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings
from steadyhand.connector import Answer, Ask
from steadyhand.manifest import Connector, Idempotency, Send

from recovery.connectors import python
from recovery.connectors.base import Finding, Outgoing, Question, Whom
from recovery.rules import signatures
from recovery.rules.signatures import Signed
from recovery.work import sending, worker
from tests.recovery.installed import installed
from tests.sdk.counting_server import Answer as Served
from tests.sdk.counting_server import Counted, counting, cut, drop, plainly

SECRET, OLDER = b"s" * 32, b"o" * 32
RECORD = {"id": "cr_1", "amount_minor": 500, "account": "acct_1"}
MATCH = {"amount_minor": "{arguments.amount_minor}", "account": "{arguments.account}"}
ARGUMENTS = {"account": "acct_1", "amount_minor": 500}
WHOM = Whom("ledger", "tenant-1", (SECRET,))


def question(connector: Connector, **changes: Any) -> Question:
    asked = Question("a1", "r1", "k1", dict(ARGUMENTS), connector, None, tool="credit", match=MATCH, whom=WHOM)
    return replace(asked, **changes)


def outgoing(connector: Connector, **changes: Any) -> Outgoing:
    made = Outgoing(
        action_id="a1", run_id="r1", key="k1", tool="credit", attempt=2, arguments=dict(ARGUMENTS),
        send=Send(connector="ledger"), connector=connector, idempotency=Idempotency(), timeout_seconds=2, whom=WHOM,
    )  # fmt: skip
    return replace(made, **changes)


# --- webhook ------------------------------------------------------------------------------------------------


class Endpoint:
    """The host product's endpoint: what it says, and the last message that it got."""

    def __init__(self) -> None:
        self.answer: Served = plainly(200, body=json.dumps({"verdict": "absent", "count": 0}).encode())
        self.headers: dict[str, str] = {}
        self.body = b""

    def says(self, document: Any, status: int = 200) -> None:
        self.answer = plainly(status, body=json.dumps(document).encode())

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        self.headers = {name.lower(): value for name, value in handler.headers.items()}
        self.body = handler.body  # type: ignore[attr-defined]
        self.answer(handler)


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint()


@pytest.fixture
def served(endpoint: Endpoint, settings: Settings) -> Iterator[Counted]:
    with counting(answer=endpoint) as counted:
        settings.TRUSTED_ENDPOINTS = (counted.url.removeprefix("http://"),)
        yield counted


def hook(served: Counted, **more: Any) -> Connector:
    return Connector(kind="webhook", base_url=f"{served.url}/steadyhand", timeout_seconds=1, **more)


def ask_hook(served: Counted, **changes: Any) -> Finding:
    return worker.ask(question(hook(served), **changes))


def test_the_endpoint_is_asked_once_with_everything_about_the_call(served: Counted, endpoint: Endpoint) -> None:
    assert ask_hook(served).verdict == "absent"
    assert served.paths == ["/steadyhand"]
    assert json.loads(endpoint.body) == {
        "ask": "reconcile", "connector": "ledger", "tenant": "tenant-1", "tool": "credit", "action_id": "a1",
        "run_id": "r1", "key": "k1", "attempt": 1, "arguments": ARGUMENTS,
    }  # fmt: skip


def test_SEC_21_the_message_is_signed_with_every_valid_secret_of_this_connector(
    served: Counted, endpoint: Endpoint
) -> None:
    ask_hook(served, whom=Whom("ledger", "tenant-1", (OLDER, SECRET)))
    told = endpoint.headers
    signed = Signed(told["webhook-id"], told["webhook-timestamp"], told["webhook-signature"])
    for secret in (OLDER, SECRET):
        assert signatures.holds(signed, endpoint.body, [secret])
    assert not signatures.holds(signed, endpoint.body, [b"x" * 32])
    assert not signatures.holds(signed, endpoint.body + b" ", [SECRET])
    assert abs(int(signed.timestamp) - time.time()) < 60


def test_without_a_secret_nothing_leaves(served: Counted) -> None:
    bare = Whom("ledger", "tenant-1", ())
    assert "no secret" in ask_hook(served, whom=bare).fact
    assert sending.transmit(outgoing(hook(served), whom=bare)).kind == "not_sent"
    assert served.arrivals == 0


@pytest.mark.parametrize(
    ("document", "verdict", "count"),
    [
        ({"verdict": "absent"}, "absent", None),
        ({"verdict": "present", "count": 1, "external_id": "cr_1", "record": RECORD}, "present", 1),
        ({"verdict": "present", "count": 2, "external_id": "cr_1", "record": RECORD}, "conflict", 2),
        ({"verdict": "partial", "count": 1, "external_id": "cr_1"}, "partial", 1),
        ({"verdict": "processing", "external_id": "cr_1"}, "processing", None),
        ({"verdict": "conflict", "count": 3}, "conflict", 3),
        ({"verdict": "failed", "fact": "The ledger is closed for the night."}, "probe_failed", None),
    ],
)
def test_an_answer_is_taken_for_what_it_counts(
    served: Counted, endpoint: Endpoint, document: Any, verdict: str, count: int | None
) -> None:
    endpoint.says(document)
    found = ask_hook(served)
    assert (found.verdict, found.count) == (verdict, count)
    assert found.fact


@pytest.mark.parametrize(
    "document",
    [
        [], "present", {}, {"verdict": "yes"}, {"verdict": "present"}, {"verdict": "present", "external_id": ""},
        {"verdict": "present", "external_id": " "},
        {"verdict": "present", "count": 0, "external_id": "cr_1"}, {"verdict": "absent", "count": 1},
        {"verdict": "absent", "count": -1}, {"verdict": "absent", "count": True}, {"verdict": "absent", "fact": 7},
    ],
)  # fmt: skip
def test_F042_an_answer_that_contradicts_itself_proves_nothing(
    served: Counted, endpoint: Endpoint, document: Any
) -> None:
    endpoint.says(document)
    assert ask_hook(served).verdict == "probe_failed"


@pytest.mark.parametrize(
    ("record", "verdict"),
    [
        ({**RECORD, "amount_minor": 501}, "conflict"),
        ({**RECORD, "account": "acct_2"}, "conflict"),
        ({**RECORD, "account": None}, "partial"),
        ({"id": "cr_1"}, "partial"),
        (None, "partial"),
        ({**RECORD, "amount_minor": "500"}, "conflict"),
    ],
)
def test_F044_F045_the_record_that_comes_back_is_compared_field_by_field(
    served: Counted, endpoint: Endpoint, record: Any, verdict: str
) -> None:
    endpoint.says({"verdict": "present", "count": 1, "external_id": "cr_1", "record": record})
    assert ask_hook(served).verdict == verdict


def _html(handler: BaseHTTPRequestHandler) -> None:
    plainly(200, body=b"<html>")(handler)


def _late(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(1.3)


def _elsewhere(handler: BaseHTTPRequestHandler) -> None:
    plainly(307, {"location": "/other"})(handler)


BROKEN: list[Served] = [drop, cut, _html, _late, _elsewhere, plainly(500), plainly(503, {"retry-after": "0"})]


@pytest.mark.parametrize("answer", BROKEN)
def test_F042_F107_an_endpoint_that_fails_proves_nothing_and_is_asked_once(
    served: Counted, endpoint: Endpoint, answer: Served
) -> None:
    endpoint.answer = answer
    assert ask_hook(served).verdict == "probe_failed"
    assert served.arrivals == 1


@pytest.mark.parametrize("answer", BROKEN)
def test_F107_a_send_through_an_endpoint_is_one_request_whatever_comes_back(
    served: Counted, endpoint: Endpoint, answer: Served
) -> None:
    endpoint.answer = answer
    sending.transmit(outgoing(hook(served), timeout_seconds=1))
    assert served.arrivals == 1


def test_a_send_says_whether_it_does_or_undoes_and_its_answer_is_the_tools(
    served: Counted, endpoint: Endpoint
) -> None:
    endpoint.says({"id": "cr_9"}, 201)
    done = sending.transmit(outgoing(hook(served)))
    assert (done.kind, done.status, json.loads(done.body or "")) == ("reply", 201, {"id": "cr_9"})
    told = json.loads(endpoint.body)
    assert (told["ask"], told["key"], told["attempt"], told["arguments"]) == ("execute", "k1", 2, ARGUMENTS)
    sending.transmit(outgoing(hook(served), undoes=True))
    assert json.loads(endpoint.body)["ask"] == "compensate"


def test_SEC_19_an_endpoint_that_is_not_allowed_is_not_asked() -> None:
    inside = Connector(kind="webhook", base_url="https://127.0.0.1/steadyhand", allow_hosts=["127.0.0.1"])
    assert worker.ask(question(inside)).verdict == "probe_failed"
    assert sending.transmit(outgoing(inside)).kind == "not_sent"
    elsewhere = Connector(kind="webhook", base_url="https://host.example/x", allow_hosts=["other.example"])
    assert "allow_hosts" in worker.ask(question(elsewhere)).fact


# --- python -------------------------------------------------------------------------------------------------


class Ledger:
    """A connector in the same process, whose every method does what the test says."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Ask]] = []
        self.does: Callable[[Ask], Any] = lambda ask: Answer("absent", 0)

    def reconcile(self, ask: Ask) -> Answer:
        return self._do("reconcile", ask)

    def execute(self, ask: Ask) -> Any:
        return self._do("execute", ask)

    def compensate(self, ask: Ask) -> Any:
        return self._do("compensate", ask)

    def _do(self, what: str, ask: Ask) -> Any:
        self.asked.append((what, ask))
        return self.does(ask)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger()
    with installed(tmp_path, "ledger", made):
        yield made


PYTHON = Connector(kind="python", timeout_seconds=0.3)


def test_an_installed_connector_is_asked_once_about_the_call(ledger: Ledger) -> None:
    found = worker.ask(question(PYTHON))
    assert (found.verdict, found.count) == ("absent", 0)
    assert ledger.asked == [("reconcile", Ask("credit", "a1", "r1", "k1", ARGUMENTS, tenant="tenant-1"))]


def test_an_entry_point_may_have_another_name(ledger: Ledger) -> None:
    named = PYTHON.model_copy(update={"entry_point": "ledger"})
    assert worker.ask(question(named, whom=Whom("books"))).verdict == "absent"
    assert "No installed package offers a connector books" in worker.ask(question(PYTHON, whom=Whom("books"))).fact


def test_F044_F029_what_an_installed_connector_says_is_counted_and_compared(ledger: Ledger) -> None:
    ledger.does = lambda ask: Answer("present", 1, "cr_1", RECORD)
    assert worker.ask(question(PYTHON)).verdict == "present"
    ledger.does = lambda ask: Answer("present", 1, "cr_1", {**RECORD, "amount_minor": 1})
    assert worker.ask(question(PYTHON)).verdict == "conflict"
    ledger.does = lambda ask: Answer("present", 2, "cr_1", RECORD)
    assert worker.ask(question(PYTHON)).verdict == "conflict"


def _raises(ask: Ask) -> Any:
    raise RuntimeError("quiet-harbour")


@pytest.mark.parametrize("does", [_raises, lambda ask: None, lambda ask: "absent", lambda ask: Answer("present", 1)])
def test_F042_whatever_an_installed_connector_raises_or_makes_up_is_a_failed_look(
    ledger: Ledger, does: Callable[[Ask], Any]
) -> None:
    ledger.does = does
    found = worker.ask(question(PYTHON))
    assert found.verdict == "probe_failed"
    assert "quiet-harbour" not in found.fact
    assert len(ledger.asked) == 1


@pytest.mark.parametrize("ends", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
def test_what_would_end_a_process_ends_no_worker(ledger: Ledger, ends: type[BaseException]) -> None:
    def does(ask: Ask) -> Any:
        raise ends("quiet-harbour")

    ledger.does = does
    assert worker.ask(question(PYTHON)).fact == "The look-up broke: Quit."
    seen = sending.transmit(outgoing(PYTHON))
    assert (seen.kind, "quiet-harbour" in str(seen)) == ("exception", False)


@pytest.mark.parametrize("count", [-1, 10**7, 10**400, True, 1.0])
def test_a_count_that_cannot_be_one_is_no_answer(ledger: Ledger, count: Any) -> None:
    ledger.does = lambda ask: Answer("present", count, "cr_1", RECORD)
    assert worker.ask(question(PYTHON)).verdict == "probe_failed"


class Odd:
    def __str__(self) -> str:
        raise RuntimeError("quiet-harbour")


@pytest.mark.parametrize(
    "value", [Decimal("1.50"), datetime(2026, 1, 1, tzinfo=UTC), math.nan, 10**400, Odd(), {1, 2}, b"x", "a\0b\ud800"]
)
def test_whatever_an_installed_connector_puts_into_its_record_can_be_stored(ledger: Ledger, value: Any) -> None:
    ledger.does = lambda ask: Answer("present", 1, "cr_1", {**RECORD, "more": [value], 7: "seven"})
    found = worker.ask(question(PYTHON))
    assert (found.verdict, found.record["7"]) == ("present", "seven")
    assert "\0" not in str(found.record)
    json.dumps(found.record, allow_nan=False, ensure_ascii=False).encode()


def test_a_connector_that_does_not_come_back_is_left_behind_and_only_so_many_are(ledger: Ledger) -> None:
    free = threading.Event()
    ledger.does = lambda ask: free.wait(20)
    quick = PYTHON.model_copy(update={"timeout_seconds": 0.05})
    for _ in range(python.MAX_LEFT_BEHIND):
        assert "in time" in worker.ask(question(quick)).fact
    assert "have not come back" in worker.ask(question(quick)).fact
    assert sending.transmit(outgoing(quick)).kind == "not_sent", "nothing left, and it says so"
    assert len(ledger.asked) == python.MAX_LEFT_BEHIND
    free.set()


def test_a_send_that_raises_or_does_not_end_is_unknown_unless_it_proves_that_nothing_left(ledger: Ledger) -> None:
    ledger.does = lambda ask: {"id": "cr_2"}
    assert json.loads(sending.transmit(outgoing(PYTHON)).body or "") == {"id": "cr_2"}
    ledger.does = lambda ask: time.sleep(0.5)
    assert sending.transmit(outgoing(PYTHON, timeout_seconds=0.05)).kind == "timeout"
    ledger.does = _raises
    assert sending.transmit(outgoing(PYTHON)).kind == "exception"
    ledger.does = lambda ask: (_ for _ in ()).throw(_not_sent())
    assert sending.transmit(outgoing(PYTHON)).kind == "not_sent"
    assert [what for what, _ in ledger.asked] == ["execute"] * 4


def _not_sent() -> Exception:
    from steadyhand.errors import NotSent

    return NotSent("The queue is full.")


def test_an_undo_goes_to_compensate(ledger: Ledger) -> None:
    ledger.does = lambda ask: {"undo_id": "u_1"}
    sending.transmit(outgoing(PYTHON, undoes=True))
    assert [what for what, _ in ledger.asked] == ["compensate"]


def test_a_connector_that_cannot_do_it_is_not_called(tmp_path: Path) -> None:
    class Looks:
        def reconcile(self, ask: Ask) -> Answer:
            return Answer("absent", 0)

    with installed(tmp_path, "ledger", Looks):
        assert worker.ask(question(PYTHON)).verdict == "absent", "a class is made once"
        seen = sending.transmit(outgoing(PYTHON))
        assert (seen.kind, "no execute" in (seen.message or "")) == ("not_sent", True)


# --- manual -------------------------------------------------------------------------------------------------


def test_nobody_is_asked_and_nothing_is_sent_through_a_manual_connector() -> None:
    by_hand = Connector(kind="manual")
    assert worker.ask(question(by_hand)).verdict == "probe_failed"
    assert sending.transmit(outgoing(by_hand)).kind == "not_sent"
