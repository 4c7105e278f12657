"""Each fault does to the socket and to the ledger what its name says."""

import json

import httpx
import pytest

from sandbox.client import Process, Sandbox
from sandbox.faults import ENTRIES, WRITES_ONLY
from tests.sandbox.wire import CREDIT, post_credit, request_bytes, send


def script(world: Sandbox, *entries: dict[str, object], **match: object) -> int:
    return world.fault("payments", "credits", entries, **match)  # type: ignore[arg-type]


def look(port: int) -> dict[str, object]:
    found: dict[str, object] = json.loads(send(port, request_bytes("GET", "/payments/credits")).body)
    return found


@pytest.mark.parametrize("how", ["rst", "fin"])
def test_a_commit_can_lose_its_reply(world: Sandbox, process: Process, how: str) -> None:
    script(world, {"do": "commit_then_drop", "how": how})
    ended = post_credit(process.port, X_Action_Id="act-1")
    assert (ended.raw, ended.how) == (b"", how)
    assert len(world.effects(reference="act-1")) == 1
    [arrival] = world.arrivals()
    assert (arrival["outcome"], arrival["fault"], arrival["status"]) == ("dropped", "commit_then_drop", None)


def test_a_call_can_be_dropped_before_its_commit(world: Sandbox, process: Process) -> None:
    script(world, {"do": "drop_before_commit"})
    assert post_credit(process.port).how == "rst"
    assert (len(world.arrivals()), world.effects()) == (1, [])


def test_a_script_is_played_entry_by_entry_and_then_the_service_behaves(world: Sandbox, process: Process) -> None:
    script(world, {"do": "status", "status": 429, "headers": {"Retry-After": "1"}}, {"do": "status", "status": 503})
    limited, broken, fine = (post_credit(process.port) for _ in range(3))
    assert (limited.status, broken.status, fine.status) == (429, 503, 201)
    assert b"Retry-After: 1" in limited.head
    assert len(world.effects()) == 1
    assert world.faults() == []


def test_a_commit_can_be_answered_by_an_error(world: Sandbox, process: Process) -> None:
    script(world, {"do": "commit_then_status", "status": 502})
    assert post_credit(process.port).status == 502
    assert len(world.effects()) == 1


def test_an_error_can_hide_in_a_200(world: Sandbox, process: Process) -> None:
    script(world, {"do": "error_in_200", "body": {"error": {"code": "limit"}}})
    ended = post_credit(process.port)
    assert (ended.status, json.loads(ended.body)) == (200, {"error": {"code": "limit"}})
    assert world.effects() == []


@pytest.mark.parametrize("commit", [True, False])
def test_a_200_can_lack_the_identity_of_its_result(world: Sandbox, process: Process, commit: bool) -> None:
    script(world, {"do": "ok_without_fields", "commit": commit})
    ended = post_credit(process.port)
    assert ended.status == 200
    assert "credit_id" not in json.loads(ended.body)
    assert len(world.effects()) == int(commit)


def test_a_late_commit_is_cut_at_once_and_lands_later(world: Sandbox, process: Process) -> None:
    script(world, {"do": "late_commit", "seconds": 30})
    assert post_credit(process.port, X_Action_Id="act-1").how == "rst"
    assert look(process.port)["count"] == 0
    assert len(world.pending()) == 1
    world.advance(31)
    [effect] = world.wait_for_effects(1, reference="act-1")
    assert effect["arrival_id"] == world.arrivals()[0]["id"]
    assert world.pending() == []


def test_a_late_commit_lands_by_itself_when_its_seconds_have_passed(world: Sandbox, process: Process) -> None:
    script(world, {"do": "late_commit", "seconds": 0.3})
    post_credit(process.port)
    assert world.effects() == []
    assert len(world.wait_for_effects(1)) == 1


def test_a_commit_can_stay_out_of_sight_of_look_ups(world: Sandbox, process: Process, http: httpx.Client) -> None:
    script(world, {"do": "lag_reads", "seconds": 30})
    credit = json.loads(post_credit(process.port).body)["credit_id"]
    assert len(world.effects()) == 1
    assert look(process.port)["count"] == 0
    assert http.get(f"/payments/credits/{credit}").status_code == 404
    world.advance(31)
    assert look(process.port)["count"] == 1
    assert http.get(f"/payments/credits/{credit}").status_code == 200


def test_a_read_can_be_answered_as_the_world_was(world: Sandbox, process: Process) -> None:
    post_credit(process.port)
    script(world, {"do": "lag_reads", "seconds": 30}, kind="read")
    assert look(process.port)["count"] == 0
    assert look(process.port)["count"] == 1


@pytest.mark.parametrize("commit", [True, False])
def test_a_hanging_call_never_answers(world: Sandbox, process: Process, commit: bool) -> None:
    script(world, {"do": "hang", "seconds": 20, "commit": commit})
    ended = post_credit(process.port, timeout=0.3)
    assert (ended.raw, ended.how) == (b"", "silence")
    assert len(world.effects()) == int(commit)
    assert world.arrivals()[0]["outcome"] == "hanging"


def test_a_hang_ends_with_a_closed_connection(world: Sandbox, process: Process) -> None:
    script(world, {"do": "hang", "seconds": 0.1, "commit": False})
    assert post_credit(process.port).how == "fin"
    assert world.arrivals()[0]["outcome"] == "dropped"


def test_a_delayed_call_commits_although_its_caller_is_gone(world: Sandbox, process: Process) -> None:
    script(world, {"do": "delay", "seconds": 0.4})
    assert post_credit(process.port, timeout=0.1).how == "silence"
    assert world.effects() == []
    assert len(world.wait_for_effects(1)) == 1


def test_F029_a_redelivered_call_commits_twice_without_a_key(world: Sandbox, process: Process) -> None:
    script(world, {"do": "redeliver"})
    assert post_credit(process.port, X_Action_Id="act-1").status == 201
    assert len(world.effects(reference="act-1")) == 2
    assert [arrival["outcome"] for arrival in world.arrivals()] == ["sent", "redelivered"]


def test_F029_a_redelivered_call_commits_once_under_an_honoured_key(world: Sandbox, process: Process) -> None:
    world.mode("payments", keys="honour")
    script(world, {"do": "redeliver"})
    post_credit(process.port, Idempotency_Key="k-1")
    assert (len(world.effects()), len(world.arrivals())) == (1, 2)


def test_F030_a_reply_can_break_off_in_the_middle(world: Sandbox, process: Process, http: httpx.Client) -> None:
    script(world, {"do": "cut_body"}, {"do": "cut_body"})
    ended = post_credit(process.port)
    announced = int(ended.head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    assert (ended.how, ended.status) == ("fin", 201)
    assert 0 < len(ended.body) < announced
    with pytest.raises(json.JSONDecodeError):
        json.loads(ended.body)
    with pytest.raises(httpx.RemoteProtocolError):
        http.post("/payments/credits", json=CREDIT)
    assert len(world.effects()) == 2
    assert world.arrivals()[0]["outcome"] == "cut"


def test_a_sign_in_page_can_stand_where_json_was_promised(world: Sandbox, process: Process) -> None:
    script(world, {"do": "html_200"}, {"do": "html_200", "commit": True})
    ended = post_credit(process.port)
    assert (ended.status, ended.body[:9]) == (200, b"<!doctype")
    assert world.effects() == []
    post_credit(process.port)
    assert len(world.effects()) == 1


def test_a_refusal_is_for_good(world: Sandbox, process: Process) -> None:
    script(world, {"do": "refuse", "status": 409, "body": {"error": {"code": "window_closed"}}}, {"do": "refuse"})
    first, second = post_credit(process.port), post_credit(process.port)
    assert (first.status, json.loads(first.body)["error"]["code"]) == (409, "window_closed")
    assert second.status == 422
    assert world.effects() == []


def test_F036_an_already_done_names_what_exists(world: Sandbox, process: Process) -> None:
    script(world, {"do": "already_done"}, {"do": "ok"}, {"do": "already_done"})
    before, made, after = (json.loads(post_credit(process.port).body) for _ in range(3))
    assert before["error"] == after["error"] | {"existing_id": None}
    assert after["error"]["existing_id"] == made["credit_id"]
    assert len(world.effects()) == 1


@pytest.mark.parametrize(
    ("entry", "status"),
    [({"do": "status", "status": 500}, 500), ({"do": "html_200"}, 200), ({"do": "delay", "seconds": 0}, 200)],
)
def test_F042_a_look_up_can_fail_too(world: Sandbox, process: Process, entry: dict[str, object], status: int) -> None:
    script(world, entry, kind="read")
    assert send(process.port, request_bytes("GET", "/payments/credits?reference=x")).status == status
    assert look(process.port)["count"] == 0


def test_a_script_for_writes_lets_look_ups_pass(world: Sandbox, process: Process) -> None:
    script(world, {"do": "status", "status": 503})
    assert look(process.port)["count"] == 0
    assert post_credit(process.port).status == 503


def test_a_script_is_only_for_the_calls_it_matches(world: Sandbox, process: Process) -> None:
    script(world, {"do": "status", "status": 503}, field={"invoice": "INV-8"})
    script(world, {"do": "status", "status": 500}, reference="act-2")
    world.fault("payments", "invoices", [{"do": "status", "status": 504}], field={"invoice": "INV-9"})
    assert post_credit(process.port).status == 201
    assert post_credit(process.port, X_Action_Id="act-2").status == 500
    other = send(process.port, request_bytes("POST", "/payments/credits", CREDIT | {"invoice": "INV-8"}))
    assert other.status == 503
    assert send(process.port, request_bytes("GET", "/payments/invoices/INV-7")).status == 200
    assert send(process.port, request_bytes("GET", "/payments/invoices/INV-9")).status == 504


def test_two_calls_at_once_use_up_two_entries(world: Sandbox, process: Process) -> None:
    script(world, {"do": "delay", "seconds": 0.5}, {"do": "status", "status": 503})
    assert post_credit(process.port, timeout=0.1).how == "silence"
    assert post_credit(process.port).status == 503


def test_F006_a_request_that_breaks_off_is_no_commit(world: Sandbox, process: Process) -> None:
    whole = request_bytes("POST", "/payments/credits", CREDIT, {"X-Action-Id": "act-1"})
    assert send(process.port, whole[:-10], half_close=True).how == "rst"
    assert world.effects() == []
    [arrival] = world.arrivals()
    assert (arrival["outcome"], arrival["reference"]) == ("truncated", "act-1")


def test_an_invalid_call_uses_up_no_entry(world: Sandbox, process: Process) -> None:
    script(world, {"do": "status", "status": 503})
    send(process.port, request_bytes("POST", "/payments/credits", {}))
    assert len(world.faults()[0]["remaining"]) == 1


@pytest.mark.parametrize(
    ("match", "entry", "field"),
    [
        ({"service": "bank"}, {"do": "ok"}, "match.service"),
        ({"service": "payments", "operation": "notes"}, {"do": "ok"}, "match.operation"),
        ({"service": "payments", "operaton": "x"}, {"do": "ok"}, "match.operaton"),
        ({"service": "payments", "operation": "invoices", "kind": "write"}, {"do": "ok"}, "match.kind"),
        ({"service": "payments", "field": []}, {"do": "ok"}, "match.field"),
        ({"service": "payments"}, {"do": "explode"}, "script[0].do"),
        ({"service": "payments"}, {"do": ["ok"]}, "script[0].do"),
        ({"service": "payments"}, {"do": "ok", "seconds": 1}, "script[0].seconds"),
        ({"service": "payments"}, {"do": "delay"}, "script[0].seconds"),
        ({"service": "payments"}, {"do": "delay", "seconds": 121}, "script[0].seconds"),
        ({"service": "payments"}, {"do": "hang", "seconds": 1}, "script[0].commit"),
        ({"service": "payments"}, {"do": "status", "status": 200}, "script[0].status"),
        ({"service": "payments"}, {"do": "status", "status": 429, "headers": {"A": "x\nB"}}, "script[0].headers"),
        ({"service": "payments", "kind": "read"}, {"do": "late_commit", "seconds": 1}, "script[0].do"),
        ({"service": "payments", "kind": "read"}, {"do": "hang", "seconds": 1, "commit": True}, "script[0].commit"),
    ],
)  # fmt: skip
def test_a_wrong_script_is_refused_by_the_name_of_its_field(
    world: Sandbox, http: httpx.Client, match: object, entry: object, field: str
) -> None:
    refused = http.post("/_control/faults", json={"match": match, "script": [entry]})
    assert (refused.status_code, refused.json()["error"]["field"]) == (400, field)
    assert world.faults() == []


def test_every_entry_of_the_vocabulary_can_be_played_on_writes_and_where_allowed_on_reads(
    world: Sandbox, process: Process
) -> None:
    given = {"seconds": 0, "status": 429, "commit": False}
    for do, known in ENTRIES.items():
        entry = {"do": do, **{name: value for name, value in given.items() if name in known}}
        script(world, entry)
        post_credit(process.port)
        if do not in WRITES_ONLY:
            entry.pop("commit", None)
            script(world, entry, kind="read")
            send(process.port, request_bytes("GET", "/payments/credits"))
    assert world.faults() == []
    assert {arrival["fault"] for arrival in world.arrivals()} == set(ENTRIES)
    assert 500 not in {arrival["status"] for arrival in world.arrivals()}
