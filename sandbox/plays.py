"""How each entry of a fault script is played: what is committed, when, and how the call ends."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import replace

from sandbox.calls import Answer, Call, Cut, Ending, Forgotten, Refused, json_answer
from sandbox.faults import Fault
from sandbox.ledger import Ledger, Promise
from sandbox.services import Route
from sandbox.world import commit, look

HTML = "<!doctype html><title>Sign in</title><p>Your session has ended. Please sign in again.</p>"
INTERRUPTED = Cut(how="rst", outcome="interrupted")


class Stage:
    """Everything a play may touch: the ledger, the route, and a wait that a stop cuts short."""

    def __init__(self, ledger: Ledger, route: Route, stopping: threading.Event) -> None:
        self.ledger = ledger
        self.route = route
        self.stopping = stopping

    def serve(self, call: Call, *, lag_seconds: float = 0.0) -> Answer:
        """What a healthy service does: a write is committed, a read is answered."""
        if call.kind == "read":
            return look(self.ledger, self.route, call, behind_seconds=lag_seconds)
        return commit(self.ledger, call, hidden_seconds=lag_seconds)

    def wait(self, seconds: float) -> bool:
        """False when the sandbox is being stopped; what was to follow must then not happen."""
        return not self.stopping.wait(seconds)


def play(stage: Stage, call: Call, fault: Fault) -> Ending:
    """Play one entry; the service's own refusal (a key mismatch) goes before the fault's reply."""
    try:
        return PLAYS[fault.do](stage, call, fault)
    except Refused as refused:
        return json_answer(refused.status, refused.body)


def _ok(stage: Stage, call: Call, fault: Fault) -> Ending:
    return stage.serve(call)


def _delay(stage: Stage, call: Call, fault: Fault) -> Ending:
    return stage.serve(call) if stage.wait(fault["seconds"]) else INTERRUPTED


def _commit_then_drop(stage: Stage, call: Call, fault: Fault) -> Ending:
    stage.serve(call)
    return Cut(how=fault["how"])


def _drop_before_commit(stage: Stage, call: Call, fault: Fault) -> Ending:
    return Cut(how=fault["how"])


def _status(stage: Stage, call: Call, fault: Fault) -> Ending:
    body = fault["body"]
    if body is None:
        body = {"error": {"code": f"status_{fault['status']}", "message": "The service did not do this."}}
    return json_answer(fault["status"], body, fault["headers"])


def _commit_then_status(stage: Stage, call: Call, fault: Fault) -> Ending:
    stage.serve(call)
    return _status(stage, call, fault)


def _error_in_200(stage: Stage, call: Call, fault: Fault) -> Ending:
    return json_answer(200, fault["body"])


def _ok_without_fields(stage: Stage, call: Call, fault: Fault) -> Ending:
    if fault.given.get("commit"):
        stage.serve(call)
    return json_answer(200, {"message": "Thank you."})


def _late_commit(stage: Stage, call: Call, fault: Fault) -> Ending:
    stage.ledger.postpone(call, fault["seconds"])
    return Cut(how=fault["how"])


def _lag_reads(stage: Stage, call: Call, fault: Fault) -> Ending:
    return stage.serve(call, lag_seconds=fault["seconds"])


def _hang(stage: Stage, call: Call, fault: Fault) -> Ending:
    if fault.given.get("commit"):
        stage.serve(call)
    stage.ledger.mark(call.arrival_id, "hanging")
    return Cut(how="fin") if stage.wait(fault["seconds"]) else INTERRUPTED


def _redeliver(stage: Stage, call: Call, fault: Fault) -> Ending:
    first = stage.serve(call)
    again = stage.ledger.arrive(replace(call, arrival_id=0))
    second = play(stage, again, Fault("ok", {}))
    status = second.status if isinstance(second, Answer) else None
    stage.ledger.mark(again.arrival_id, "redelivered", status=status, fault=fault.do)
    return first


def _cut_body(stage: Stage, call: Call, fault: Fault) -> Ending:
    whole = stage.serve(call)
    return replace(whole, sent_bytes=len(whole.body) // 2)


def _html_200(stage: Stage, call: Call, fault: Fault) -> Ending:
    if fault.given.get("commit"):
        stage.serve(call)
    return Answer(status=200, body=HTML.encode(), content_type="text/html; charset=utf-8")


def _refuse(stage: Stage, call: Call, fault: Fault) -> Ending:
    body = fault["body"]
    if body is None:
        body = {"error": {"code": "refused", "message": "This is against the rules and will stay so."}}
    return json_answer(fault["status"], body, fault["headers"])


def _already_done(stage: Stage, call: Call, fault: Fault) -> Ending:
    named = {"service": call.service, "operation": call.operation}
    for effect in stage.ledger.effects(named, descending=True, limit=None):
        same_reference = bool(call.reference) and effect["reference"] == call.reference
        if same_reference or effect["fields"] == call.fields:
            found: str | None = effect["effect_id"]
            break
    else:
        found = None
    message = "The world is already as this call wants it."
    return json_answer(409, {"error": {"code": "already_done", "message": message, "existing_id": found}})


PLAYS: dict[str, Callable[[Stage, Call, Fault], Ending]] = {
    "ok": _ok,
    "delay": _delay,
    "commit_then_drop": _commit_then_drop,
    "drop_before_commit": _drop_before_commit,
    "status": _status,
    "commit_then_status": _commit_then_status,
    "error_in_200": _error_in_200,
    "ok_without_fields": _ok_without_fields,
    "late_commit": _late_commit,
    "lag_reads": _lag_reads,
    "hang": _hang,
    "redeliver": _redeliver,
    "cut_body": _cut_body,
    "html_200": _html_200,
    "refuse": _refuse,
    "already_done": _already_done,
}


class LateCommits(threading.Thread):
    """Keeps the promises of ``late_commit``, those of an earlier life of this process included."""

    def __init__(self, ledger: Ledger, stopping: threading.Event) -> None:
        super().__init__(name="late-commits", daemon=True)
        self.ledger = ledger
        self.stopping = stopping

    def run(self) -> None:
        """Until stopped: commit what is due, sleep until the next one or until something changed."""
        while not self.stopping.is_set():
            self.ledger.changed.clear()
            wait = self.commit_due()
            self.ledger.changed.wait(wait)

    def commit_due(self) -> float | None:
        """Make every commit that is due; seconds until the next one, or none."""
        for promise in self.ledger.promises():
            seconds = promise.due_at - self.ledger.now()
            if seconds > 0:
                return seconds
            self._keep(promise)
        return None

    def _keep(self, promise: Promise) -> None:
        try:
            with self.ledger.transaction():
                if self.ledger.forget(promise):
                    commit(self.ledger, promise.call)
        except (Refused, Forgotten) as refused:
            self.ledger.forget(promise)
            print(f"a late commit came to nothing: {refused!r}", file=sys.stderr, flush=True)
