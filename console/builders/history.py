"""The history in words: one sentence an event, the same on the task and on the run."""

from __future__ import annotations

from django.db.models import Q

from console import looks
from console.builders import words
from console.looks import Look
from console.pages.run import EventRow
from console.pages.task import HistoryRow
from recovery.rules.policy import LABELS
from runs.models import Event

SHORT = 8
MOST_SHOWN = 240
TRANSITIONS, EVIDENCE, PEOPLE = "transitions", "evidence", "people"
_EVIDENCE_KINDS = ("look_started", "outcome_unknown", "late_look", "late_report", "lease_expired", "bound_violated",
                   "contradicted", "undone_outside", "recount_started", "recounted", "recount_given_up")  # fmt: skip
_QUIET = ("rule", "timer")

_WORDS = {
    "item": "Item `{step}` {end}",
    "partial": "`{step}`: a part of it happened, and which is known",
    "opened": "Run opened",
    "permitted": "`{step}` dispatched",
    "succeeded": "`{step}` proven",
    "outcome_unknown": "`{step}`: outcome unknown",
    "retry_planned": "`{step}` refused for now, to be tried again",
    "refused": "Refused",
    "rejected": "`{step}` refused before dispatch",
    "held": "`{step}` held for a person",
    "void": "`{step}`: nothing happened",
    "look_started": "Look-up of `{step}` began",
    "recount_started": "A later count of `{step}` began",
    "recounted": "A later count of `{step}` came back",
    "recount_given_up": "Nobody could confirm `{step}`",
    "late_look": "A look-up answered after its lease",
    "lease_expired": "`{step}`: no report before the lease ended",
    "task_opened": "Task opened",
    "task_resolved": "Task resolved",
    "task_reopened": "Task reopened",
    "contradicted": "New evidence contradicts what was decided about `{step}`",
    "bound_violated": "A declared bound was not kept",
    "demotion_lifted": "A connector's bounds count again",
    "undone_outside": "`{step}` was taken back outside",
    "claim_decayed": "Claim ended",
    "tagged": "Tag added",
    "untagged": "Tag taken off",
    "owner_left": "Owner left",
    "offer_expired": "Offer ended",
    "offer_withdrawn": "Offer taken back",
    "statement_withdrawn": "A statement that nobody confirmed was withdrawn",
    "woken": "Task woke",
    "sla_breached": "SLA breached",
    "sla_paused": "The clock stands still",
    "sla_resumed": "The clock goes on",
    "priority_raised": "Priority raised",
    "reminded": "Asked again for the approval",
    "escalated_further": "Somebody else is asked for the approval",
    "superseded": "`{step}`: another call takes its place",
    "input_provided": "`{step}`: the requester answered",
    "approval_required": "`{step}` waits for an approval",
    "approved": "`{step}` approved",
    "approval_expired": "`{step}` void: nobody approved it in time",
    "input_expired": "`{step}` not sent: the requester did not answer in time",
    "task_updated": "Task changed",
    "paged": "Somebody was paged",
    "dead_letter": "`{step}` used all its tries: a dead letter",
    "dead_letter_replayed": "`{step}` may be tried once more",
    "dead_letter_discarded": "Dead letter discarded",
    "dead_letter_recovered": "Dead letter recovered",
    "compensating": "Undoing began",
    "undo_planned": "`{step}` is next to be undone",
    "undo_impossible": "`{step}` cannot be undone by us",
    "residual_recorded": "`{step}` was undone only in part",
    "record_accepted": "`{step}` is left as the record has it",
    "residual_accepted": "What stays of `{step}` was accepted",
    "undo_waived": "The undo of `{step}` was given up",
    "letter_given_up": "`{step}` is not sent again; what became of it stays open",
    "compensation_stopped": "Undoing stopped",
    "stop_set": "A stop was set on this run",
    "stop_lifted": "The stop on this run was lifted",
    "waiting": "`{step}` waits",
    "ready": "The run may go on",
    "cancelling": "Cancelling",
    "cancelled": "Cancelled",
    "completed": "Completed",
    "failed": "Failed",
    "escalated": "Stopped for a person",
    "corrected": "Reason corrected",
    "record_corrected": "`{step}`: the record is corrected",
}


_ITEM_ENDS = {"succeeded": "is done", "refused_permanent": "was refused", "refused_transient": "was refused for now"}


def lines(events: list[Event]) -> list[HistoryRow]:
    """The newest few for the right column."""
    return [_line(event) for event in events[:SHORT]]


def _line(event: Event) -> HistoryRow:
    shown, rest = words.split(words_of(event).replace("`", ""), MOST_SHOWN)
    return HistoryRow(shown, event.at, rest)


def rows(events: list[Event], total: int) -> list[EventRow]:
    """Newest first; `total` is the number of the newest."""
    return [row(event, total - index) for index, event in enumerate(events)]


def kind_of(event: Event) -> str:
    """Which of the event tabs it belongs to, besides All."""
    if event.actor_kind == "person" and _verb(event):
        return PEOPLE
    return EVIDENCE if event.kind in _EVIDENCE_KINDS else TRANSITIONS


def kinds_of(tab: str) -> Q:
    """The events of one tab, asked of the database as `kind_of` says it of one event; every event without a tab."""
    acted = Q(kind__startswith="verb_") | Q(kind="refused", data__has_key="verb")
    people = Q(actor_kind="person") & acted
    evidence = Q(kind__in=_EVIDENCE_KINDS)
    return {PEOPLE: people, EVIDENCE: evidence & ~people, TRANSITIONS: ~evidence & ~people}.get(tab, Q())


def words_of(event: Event) -> str:
    """Who did what, with the reason that was recorded."""
    said = _verb(event) or _WORDS.get(event.kind, event.kind.replace("_", " ").capitalize())
    text = said.format(step=event.data.get("step") or (event.action.step if event.action else "the call"),
                       end=_ITEM_ENDS.get(event.to_state, "has no known end"))  # fmt: skip
    who = f"{event.actor}: " if event.actor_kind == "person" and _verb(event) else ""
    reason = event.reason.rstrip(".")
    return f"{who}{text}{'. ' + reason if reason else ''}."


def _verb(event: Event) -> str:
    name = event.kind.removeprefix("verb_")
    if name != event.kind:
        return LABELS.get(name, name).lower()
    if event.kind == "refused" and event.data.get("verb"):
        return f"was refused: {LABELS.get(event.data['verb'], event.data['verb']).lower()}"
    return ""


def row(event: Event, seq: int) -> EventRow:
    detail, rest = words.split(words_of(event), MOST_SHOWN * 2)
    moved = event.to_state and event.to_state != event.from_state
    return EventRow(
        event_id=str(event.pk),
        seq=seq,
        at=event.at,
        actor=_actor(event),
        actor_name=_actor_name(event),
        before=event.from_state if moved else "",
        after=event.to_state if moved else "",
        detail=detail,
        rest=rest,
        kind=event.kind.replace("_", " "),
    )


def _actor_name(event: Event) -> str:
    """A person is named for what she did; what the machine did on her wish is the machine's, "for" her."""
    if event.actor_kind == "person" and not _verb(event):
        return f"for {event.actor}"
    return "" if event.actor_kind in _QUIET else event.actor


def _actor(event: Event) -> Look:
    if event.actor_kind == "person" and not _verb(event):
        return looks.ACTOR["worker"]
    return looks.ACTOR.get(event.actor_kind, looks.ACTOR["worker"])
