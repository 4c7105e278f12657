"""The people of a scenario: made for it, with the rights of somebody on call, pressing the product's own buttons."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from recovery import panel, permissions
from recovery.models import HumanTask
from recovery.scenarios.format import Event
from recovery.work import decisions, stops
from recovery.work.wishes import NoSuchTask, Order, Overtaken, ReasonMissing, Refused, Unusable
from runs import wall
from runs.models import Person, Tenant
from runs.querysets import read_clock
from runs.states import TASK_OPEN

DOUBLE_CLICK = timedelta(seconds=2)
VERBS = {
    "replay_dead_letter": "replay", "replay": "replay", "discard_dead_letter": "discard", "discard": "discard",
    "claim": "claim", "claim_task": "claim", "release": "release", "retry": "retry", "reconcile": "reconcile",
    "look_up": "reconcile", "resume": "resume", "cancel": "cancel", "approve": "approve", "reject": "reject",
    "deny": "reject", "top_up": "top_up", "raise_budget": "top_up", "top_up_budget": "top_up", "comment": "comment",
    "attest": "attest", "record_external_result": "attest", "record_result": "attest", "mark_done": "attest",
    "mark_success": "attest", "compensate": "compensate", "rollback": "compensate",
}  # fmt: skip
"""What a file may call a button, and the verb behind it."""
_ABSENT = re.compile(r"\b(absent|not|no|none|failed|not_applied|no_effect|not_found)\b")
_TURNED_DOWN = (NoSuchTask, Refused, Overtaken, ReasonMissing, Unusable, stops.Refused, stops.NoSuchStop)


@dataclass
class People:
    """Everybody who acts on the tasks of one run. `turned_down` keeps what the product said no to."""

    tenant: Tenant
    run_id: uuid.UUID
    known: dict[str, Person] = field(default_factory=dict)
    turned_down: list[tuple[str, str, str]] = field(default_factory=list)
    _forms: dict[tuple[str, str, str], tuple[Any, Order]] = field(default_factory=dict)
    _approvals: dict[str, uuid.UUID] = field(default_factory=dict)

    def somebody(self, name: str) -> Person:
        if name not in self.known:
            email = f"{uuid.uuid4().hex}@people.example"
            person = Person.objects.create_user(email, name[:120] or "somebody")
            permissions.grant_role(person, self.tenant, "oncall")
            self.known[name] = person
        return self.known[name]

    def has_task(self) -> bool:
        return self._latest() is not None

    def decide_approval(self, event: Event) -> None:
        """A click on an approval, also a late one: the product says what became of it."""
        said = str(event.get("decision", "approve")).lower()
        verb = "approve" if said.startswith("approv") or said in ("yes", "allow") else "reject"
        label = str(event.get("approval_id") or "approval")
        task_id = self._approvals.get(label) or self._approval_task()
        if task_id is not None:
            self._approvals[label] = task_id
            self._press(verb, task_id, str(event.get("actor", "approver")), event)

    def act(self, event: Event) -> None:
        """An operator's button, or the stop switch."""
        wish = str(event.get("action", "")).lower()
        actor = str(event.get("actor", "operator"))
        if "stop" in wish or wish in ("halt", "drain", "quarantine"):
            return self._switch(wish, actor, event)
        task_id = self._task_of(event.step, wish)
        if task_id is not None:
            self._press(VERBS.get(wish, wish), task_id, actor, event)
        return None

    def _press(self, verb: str, task_id: uuid.UUID, actor: str, event: Event) -> None:
        person = self.somebody(actor)
        try:
            order = self._form(verb, task_id, person, event)
            press = getattr(decisions, verb)
            press(order, ring=lambda decision_id: None) if verb == "reconcile" else press(order)
        except _TURNED_DOWN as no:
            self.turned_down.append((actor, verb, str(no)))

    def _form(self, verb: str, task_id: uuid.UUID, person: Person, event: Event) -> Order:
        """The form as drawn now; a second click within two seconds sends the first one again."""
        now, place = read_clock(), (verb, str(task_id), person.name)
        before = self._forms.get(place)
        if before is not None and now - before[0] <= DOUBLE_CLICK:
            return before[1]
        order = self._drawn(task_id, person, event)
        self._forms[place] = (now, order)
        return order

    def _drawn(self, task_id: uuid.UUID, person: Person, event: Event) -> Order:
        with wall.within(self.tenant.pk):
            task = HumanTask.objects.select_related("run", "action", "claimed_by").get(pk=task_id)
            seen = panel.read(task, person)
            order = Order(
                task_id=task_id,
                by=person,
                reason=str(event.get("reason") or event.get("comment") or "As the case asks."),
                evidence_hash=seen.evidence_hash,
                version=task.version,
                key=uuid.uuid4().hex,
            )
        return replace(order, **_extras(event))

    def _approval_task(self) -> uuid.UUID | None:
        return self._latest(kind="approval") or self._latest()

    def _task_of(self, step: str, wish: str) -> uuid.UUID | None:
        if "dead_letter" in wish:
            return self._latest(kind="dead_letter") or self._latest()
        return (self._latest(action__step=step) if step else None) or self._latest()

    def _latest(self, **which: Any) -> uuid.UUID | None:
        """The open task that fits, else the latest one that did."""
        with wall.within(self.tenant.pk):
            tasks = HumanTask.objects.filter(run_id=self.run_id, **which).order_by("-id")
            found: uuid.UUID | None = (
                tasks.filter(state__in=TASK_OPEN).values_list("pk", flat=True).first()
                or tasks.values_list("pk", flat=True).first()
            )
            return found

    def _switch(self, wish: str, actor: str, event: Event) -> None:
        person, reason = self.somebody(actor), str(event.get("reason") or "As the case asks.")
        try:
            if wish.startswith(("lift", "un")) or "resume" in wish:
                for stop_id in self._standing():
                    stops.lift_stop(person, self.tenant.pk, stop_id, reason=reason)
                return
            scope = str(event.get("scope", "run"))
            name = str(event.get("name") or (self.run_id if scope == "run" else event.get(scope, "")))
            mode = str(event.get("mode") or next((m for m in stops.MODES if m in wish), "halt"))
            stops.set_stop(person, self.tenant.pk, scope=scope, name=name, mode=mode, reason=reason)
        except _TURNED_DOWN as no:
            self.turned_down.append((actor, wish, str(no)))

    def _standing(self) -> list[uuid.UUID]:
        with wall.within(self.tenant.pk):
            return [stop.pk for stop in stops.listed(self.tenant.pk) if stop.lifted_at is None]


def _extras(event: Event) -> dict[str, Any]:
    found: dict[str, Any] = {}
    said = event.get("outcome") or event.get("result")
    if said:
        absent = isinstance(said, str) and bool(_ABSENT.search(said.lower()))
        found["outcome"] = "absent" if absent else "present"
    named = [event.get(name) for name in ("reference", "evidence", "external_id")]
    named += list(said.values()) if isinstance(said, dict) else []
    reference = next((text for text in named if isinstance(text, str) and text), None)
    if reference is not None:
        found["reference"] = reference[:200]
    if isinstance(event.get("amount"), int):
        found["amount"] = event.get("amount")
    if event.get("code"):
        found["code"] = str(event.get("code"))
    return found
