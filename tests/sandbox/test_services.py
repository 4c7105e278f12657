"""A healthy outside world: what is created can be read, listed and counted."""

import httpx
import pytest

from sandbox.client import Sandbox
from tests.sandbox.wire import CREDIT


def test_a_credit_is_created_read_and_found_by_the_action_that_made_it(world: Sandbox, http: httpx.Client) -> None:
    made = http.post("/payments/credits", json=CREDIT | {"note": "sorry"}, headers={"X-Action-Id": "act-1"})
    assert made.status_code == 201
    credit = made.json()
    assert credit.items() >= (CREDIT | {"status": "issued", "reference": "act-1", "note": "sorry"}).items()
    assert http.get(f"/payments/credits/{credit['credit_id']}").json() == credit
    found = http.get("/payments/credits", params={"reference": "act-1"}).json()
    assert found == {"items": [credit], "count": 1, "has_more": False}
    assert http.get("/payments/credits", params={"reference": "act-2"}).json()["count"] == 0


def test_a_reference_in_the_body_is_kept_beside_the_action(world: Sandbox, http: httpx.Client) -> None:
    http.post("/payments/credits", json=CREDIT | {"reference": "case-9"}, headers={"X-Action-Id": "act-1"})
    [effect] = world.effects()
    assert (effect["reference"], effect["action_id"]) == ("case-9", "act-1")
    for reference in ("case-9", "act-1"):
        found = http.get("/payments/credits", params={"reference": reference}).json()
        assert found["count"] == 1


def test_credits_are_filtered_by_field_and_by_time(world: Sandbox, http: httpx.Client) -> None:
    first = http.post("/payments/credits", json=CREDIT).json()
    world.advance(60)
    second = http.post("/payments/credits", json=CREDIT | {"account": "AC-2"}).json()
    by_account = http.get("/payments/credits", params={"account": "AC-2"}).json()
    assert [item["credit_id"] for item in by_account["items"]] == [second["credit_id"]]
    since = http.get("/payments/credits", params={"since": second["created_at"]}).json()
    assert [item["credit_id"] for item in since["items"]] == [second["credit_id"]]
    until = http.get("/payments/credits", params={"until": second["created_at"]}).json()
    assert [item["credit_id"] for item in until["items"]] == [first["credit_id"]]


def test_a_list_is_bounded_and_still_counts_all(world: Sandbox, http: httpx.Client) -> None:
    for _ in range(3):
        http.post("/payments/credits", json=CREDIT)
    found = http.get("/payments/credits", params={"limit": 2}).json()
    assert (len(found["items"]), found["count"], found["has_more"]) == (2, 3, True)
    assert http.get("/payments/credits", params={"limit": 501}).status_code == 400


@pytest.mark.parametrize(
    ("params", "field"),
    [({"refrence": "act-1"}, "refrence"), ({"since": "2026-01-01T00:00:00"}, "since"), ({"limit": "0"}, "limit")],
)
def test_a_filter_that_cannot_be_meant_is_refused_by_name(
    world: Sandbox, http: httpx.Client, params: dict[str, str], field: str
) -> None:
    refused = http.get("/payments/credits", params=params)
    assert (refused.status_code, refused.json()["error"]["field"]) == (400, field)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"amount_minor": 42.0}, "amount_minor"),
        ({"amount_minor": -1}, "amount_minor"),
        ({"amount_minor": True}, "amount_minor"),
        ({"currency": "eur"}, "currency"),
        ({"invoice": "7"}, "invoice"),
        ({"colour": "red"}, "colour"),
        ({"reference": 5}, "reference"),
        ({"account": None}, "account"),
    ],
)
def test_an_invalid_credit_changes_nothing_and_is_still_an_arrival(
    world: Sandbox, http: httpx.Client, change: dict[str, object], field: str
) -> None:
    refused = http.post("/payments/credits", json=CREDIT | change)
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, field)
    assert world.effects() == []
    [arrival] = world.arrivals()
    assert (arrival["outcome"], arrival["status"]) == ("sent", 422)


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"[1]",
        b'{"account": "a", "account": "b"}',
        b'{"note": NaN}',
        b'{"note": "\\ud800"}',
        b"\xff",
        b"[" * 90000,
    ],
)
def test_a_body_that_is_no_usable_json_object_is_refused(world: Sandbox, http: httpx.Client, raw: bytes) -> None:
    refused = http.post("/payments/credits", content=raw, headers={"Content-Type": "application/json"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_json")
    assert world.effects() == []


def test_a_body_of_more_than_256_kib_is_refused(world: Sandbox, http: httpx.Client) -> None:
    refused = http.post("/payments/credits", json=CREDIT | {"note": "x" * 300_000})
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "body_too_large")
    assert world.arrivals() == []


def test_only_json_is_taken_so_that_no_foreign_web_page_can_write(world: Sandbox, http: httpx.Client) -> None:
    for path in ("/payments/credits", "/_control/reset"):
        refused = http.post(path, content=b"{}", headers={"Content-Type": "text/plain"})
        assert refused.status_code == 415


def test_a_void_undoes_a_credit_once(world: Sandbox, http: httpx.Client) -> None:
    credit = http.post("/payments/credits", json=CREDIT).json()["credit_id"]
    assert http.get("/payments/invoices/INV-7").json()["credited_minor"] == 4200
    void = http.post("/payments/voids", json={"credit": credit, "fee_minor": 150})
    assert (void.status_code, void.json()["status"]) == (201, "done")
    assert http.get(f"/payments/credits/{credit}").json()["status"] == "voided"
    assert http.get("/payments/invoices/INV-7").json()["credited_minor"] == 0
    again = http.post("/payments/voids", json={"credit": credit})
    assert (again.status_code, again.json()["error"]["existing_id"]) == (409, void.json()["void_id"])
    assert http.post("/payments/voids", json={"credit": "cr_none"}).status_code == 404
    assert len(world.effects(operation="voids")) == 1


def test_a_refund_names_its_charge(world: Sandbox, http: httpx.Client) -> None:
    body = {"charge": "ch_1", "amount_minor": 100, "currency": "EUR", "reference": "r"}
    made = http.post("/payments/refunds", json=body).json()
    assert http.get("/payments/refunds", params={"charge": "ch_1"}).json()["items"] == [made]


def test_an_invoice_is_the_same_everywhere_and_others_do_not_exist(world: Sandbox, http: httpx.Client) -> None:
    invoice = http.get("/payments/invoices/INV-7").json()
    assert invoice == http.get("/payments/invoices/INV-7").json()
    assert invoice["status"] == "open"
    assert invoice["amount_minor"] > 0
    assert http.get("/payments/invoices/7").status_code == 404


def test_a_ticket_shows_its_notes_and_its_last_status(world: Sandbox, http: httpx.Client) -> None:
    assert http.get("/tickets/T-1").json() == {"ticket_id": "T-1", "status": "open", "notes": 0, "status_changes": 0}
    note = http.post("/tickets/T-1/notes", json={"body": "called back", "reference": "n"}).json()
    http.post("/tickets/T-1/status", json={"status": "solved"})
    assert http.get("/tickets/T-1").json()["status"] == "solved"
    assert http.get("/tickets/T-1/notes", params={"reference": "n"}).json()["items"] == [note]
    assert http.get(f"/tickets/T-1/notes/{note['note_id']}").json() == note
    assert http.get("/tickets/T-2/notes").json()["count"] == 0
    assert http.get(f"/tickets/T-2/notes/{note['note_id']}").status_code == 404
    assert http.get("/tickets", params={"status": "solved"}).json()["count"] == 1
    assert http.post("/tickets/missing-1/notes", json={"body": "x"}).status_code == 404


def test_mail_is_drafted_and_sent(world: Sandbox, http: httpx.Client) -> None:
    letter = {"to": "a@b.example", "subject": "s", "body": "b", "reference": "m"}
    draft = http.post("/mail/drafts", json=letter).json()
    sent = http.post("/mail/messages", json=letter | {"draft": draft["draft_id"]}).json()
    assert (draft["status"], sent["status"]) == ("draft", "sent")
    assert http.get("/mail/messages", params={"reference": "m"}).json()["items"] == [sent]


def test_the_same_put_twice_is_one_change(world: Sandbox, http: httpx.Client) -> None:
    first = http.put("/crm/customers/C-1", json={"plan": "gold"}).json()
    second = http.put("/crm/customers/C-1", json={"plan": "gold"}).json()
    assert (first["changed"], second["changed"]) == (True, False)
    assert http.get("/crm/customers/C-1").json()["plan"] == "gold"
    assert len(world.effects()) == 1
    assert http.get("/crm/changes", params={"customer": "C-1"}).json()["count"] == 1
    assert http.get("/crm/customers/missing-1").status_code == 404


def test_an_unknown_path_of_a_service_is_an_arrival_and_elsewhere_it_is_not(
    world: Sandbox, http: httpx.Client
) -> None:
    assert http.get("/payments/nothing").status_code == 404
    assert http.delete("/payments/credits").status_code == 405
    assert http.get("/nothing").status_code == 404
    assert [arrival["operation"] for arrival in world.arrivals()] == ["unknown", "unknown"]


def test_the_ledger_keeps_what_identifies_an_arrival(world: Sandbox, http: httpx.Client) -> None:
    http.post("/payments/credits", json=CREDIT, headers={"X-Action-Id": "act-1", "Idempotency-Key": "k-1"})
    http.get("/payments/credits", params={"reference": "act-1"})
    write, read = world.arrivals(reference="act-1")
    assert (write["kind"], read["kind"]) == ("write", "read")
    assert (write["key"], write["method"], write["path"]) == ("k-1", "POST", "/payments/credits")
    assert len(write["body_sha256"]) == 64
    assert world.effects()[0]["arrival_id"] == write["id"]
    assert world.counts()["operations"]["payments.credits"] == {"reads": 1, "writes": 1, "effects": 1}
