"""A good connector to the sandbox's payments, and bad ones: each with one fault that a check of the kit is for."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import httpx
from steadyhand.connector import Answer, Ask, Listed, Page, moment
from steadyhand.testing.subject import Promises

CREDIT = {"account": "AC-1", "invoice": "INV-7", "amount_minor": 4200, "currency": "EUR"}


class Good:
    """Each method one request; a timeout of one second."""

    promises = Promises(
        tool="credit", arguments=CREDIT, key=True, retention_seconds=86400, max_in_flight_seconds=20,
        max_visibility_lag_seconds=1, timeout_seconds=1, undo="void", undo_arguments={"credit": "credit_id"},
    )  # fmt: skip

    def __init__(self, url: str) -> None:
        self.url = url

    def reconcile(self, ask: Ask) -> Answer:
        found = self.ours(ask)
        if not found:
            return Answer("absent", 0)
        wanted = {name: found[0].get(name) for name in ask.arguments}
        verdict = "conflict" if len(found) > 1 or wanted != ask.arguments else "present"
        return Answer(verdict, len(found), self.identity(found[0]), found[0])  # type: ignore[arg-type]

    def execute(self, ask: Ask) -> Any:
        return self.send("/payments/credits", ask)

    def compensate(self, ask: Ask) -> Any:
        return self.send("/payments/voids", ask)

    def list_effects(self, since: datetime, until: datetime, cursor: str) -> Page:
        made = [Listed(one["credit_id"], moment(one["created_at"])) for one in self.get("/payments/credits", {})]
        return Page(tuple(one for one in made if since <= one.at < until))

    def ours(self, ask: Ask) -> list[dict[str, Any]]:
        path = "/payments/voids" if ask.tool == "void" else "/payments/credits"
        return self.get(path, {"reference": ask.action_id})

    def identity(self, record: dict[str, Any]) -> str:
        return record.get("credit_id") or record["void_id"]

    def get(self, path: str, query: dict[str, str]) -> list[dict[str, Any]]:
        reply = httpx.get(self.url + path, params=query, timeout=self.promises.timeout_seconds, trust_env=False)
        reply.raise_for_status()
        return reply.json()["items"]

    def send(self, path: str, ask: Ask) -> Any:
        body, headers = {**ask.arguments, "reference": ask.action_id}, {"Idempotency-Key": ask.key}
        reply = httpx.post(self.url + path, json=body, headers=headers, timeout=1, trust_env=False)
        reply.raise_for_status()
        return reply.json()


class ExistenceOnly(Good):
    """Looks whether there is one, and says one."""

    def reconcile(self, ask: Ask) -> Answer:
        found = self.ours(ask)
        return Answer("present", 1, self.identity(found[0]), found[0]) if found else Answer("absent", 0)


class ByAmount(Good):
    """Takes any effect of the same amount for ours."""

    def ours(self, ask: Ask) -> list[dict[str, Any]]:
        found = self.get("/payments/credits", {})
        return [one for one in found if one["amount_minor"] == ask.arguments.get("amount_minor")][-1:]


class NoFields(Good):
    """Compares no field, and shows none."""

    def reconcile(self, ask: Ask) -> Answer:
        found = self.ours(ask)
        return Answer("present", len(found), self.identity(found[0])) if found else Answer("absent", 0)


class ForgetsTheKey(Good):
    """Sends no key."""

    def send(self, path: str, ask: Ask) -> Any:
        reply = httpx.post(self.url + path, json={**ask.arguments, "reference": ask.action_id}, timeout=1)
        return reply.raise_for_status().json()


class SwallowsRefusals(Good):
    """A refused call is one that was done."""

    def send(self, path: str, ask: Ask) -> Any:
        try:
            return super().send(path, ask)
        except httpx.HTTPStatusError:
            return {}


class ShortKey(Good):
    promises = Promises(**{**vars(Good.promises), "retention_seconds": 10})


class NoBound(Good):
    promises = Promises(**{**vars(Good.promises), "max_in_flight_seconds": None})


class SlowToShow(Good):
    """Shows an effect only after its declared lag."""

    made: dict[str, float] = {}
    promises = Promises(**{**vars(Good.promises), "max_visibility_lag_seconds": 0})

    def execute(self, ask: Ask) -> Any:
        self.made[ask.action_id] = time.monotonic()
        return super().execute(ask)

    def ours(self, ask: Ask) -> list[dict[str, Any]]:
        return super().ours(ask) if time.monotonic() - self.made.get(ask.action_id, 0) > 4 else []


class AbsentWhenDown(Good):
    """A system that does not answer has nothing of ours."""

    def get(self, path: str, query: dict[str, str]) -> list[dict[str, Any]]:
        try:
            return super().get(path, query)
        except Exception:
            return []


class AbsentOnAnyJson(Good):
    """Finds no list, so there is nothing."""

    def get(self, path: str, query: dict[str, str]) -> list[dict[str, Any]]:
        reply = httpx.get(self.url + path, params=query, timeout=1, trust_env=False)
        return reply.raise_for_status().json().get("items", [])


class Patient(Good):
    """Waits as long as it takes."""

    def get(self, path: str, query: dict[str, str]) -> list[dict[str, Any]]:
        return httpx.get(self.url + path, params=query, timeout=60, trust_env=False).json()["items"]


class LooksAgain(Good):
    """Asks again where it got no answer."""

    def get(self, path: str, query: dict[str, str]) -> list[dict[str, Any]]:
        try:
            return super().get(path, query)
        except Exception:
            return super().get(path, query)


class SendsAgain(Good):
    """Sends again where it got no answer."""

    def send(self, path: str, ask: Ask) -> Any:
        try:
            return super().send(path, ask)
        except httpx.TransportError:
            return super().send(path, ask)


class UndoesTwice(Good):
    """Pays back what was credited, each time under a key of its own."""

    def compensate(self, ask: Ask) -> Any:
        sent = {"charge": ask.arguments["credit"], "amount_minor": 4200, "currency": "EUR"}
        own = Ask(**{**vars(ask), "arguments": sent, "key": f"{ask.key}{time.monotonic_ns()}"})
        return self.send("/payments/refunds", own)

    def ours(self, ask: Ask) -> list[dict[str, Any]]:
        path = "/payments/refunds" if ask.tool == "void" else "/payments/credits"
        return self.get(path, {"reference": ask.action_id})

    def identity(self, record: dict[str, Any]) -> str:
        return str(record.get("credit_id") or record["refund_id"])


class ListsAll(Good):
    """Keeps to no interval."""

    def list_effects(self, since: datetime, until: datetime, cursor: str) -> Page:
        return Page(tuple(Listed(one["credit_id"], since) for one in self.get("/payments/credits", {})))


class ListsNothingWhenDown(AbsentWhenDown):
    """An empty listing where there was no answer."""


class CountsNothing(Good):
    """Says absent, and not of how many."""

    def reconcile(self, ask: Ask) -> Answer:
        return Answer("absent")


class SeesNothing(Good):
    """Finds nothing, whatever there is."""

    def ours(self, ask: Ask) -> list[dict[str, Any]]:
        return []
