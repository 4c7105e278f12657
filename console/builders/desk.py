"""Who has a task, as its page says it: the claim and what is left of it, and what else bears on its place."""

from __future__ import annotations

from datetime import datetime, timedelta

from console import looks
from console.access import Visit
from console.builders import verbs, words
from console.builders.record import Record
from console.pages.common import Person
from console.pages.task import Claim, Offer, Presence
from console.presence import Here
from recovery.models import HumanTask
from recovery.panel import Panel
from recovery.rules import pauses
from recovery.rules.policy import LABELS
from runs.models import Event

WARN_BEFORE = timedelta(minutes=5)
"""From when on a claim that is about to end says so (UX: claims decay)."""
TAKEN = ("verb_claim", "verb_accept", "verb_assign", "claim_decayed")
"""What moves a claim by itself; the newest of them says whether the last one decayed."""


def claim(visit: Visit, task: HumanTask, past: list[Event], company: list[Here]) -> Claim | None:
    if task.state != "claimed" or task.claimed_by is None or task.claimed_until is None:
        return None
    name = task.claimed_by.name
    by = Person(
        name, task.claimed_by_id == visit.person.pk, any(one.name == name and one.deciding for one in company)
    )
    claimed = (event for event in past if event.kind in ("verb_claim", "verb_accept") and _about(event, task))
    since = next((event.at for event in claimed), task.opened_at)
    left = task.claimed_until - visit.now
    return Claim(by, since, task.claimed_until, left=remaining(left), warning=_warning(left, by.you))


def company(here: list[Here]) -> list[Presence]:
    """The colleagues on this page, those who decide first."""
    return [Presence(Person(one.name, deciding=one.deciding), in_words(one)) for one in here]


def in_words(one: Here) -> str:
    return "is deciding" if one.deciding else "is reading"


def together(names: list[str]) -> str:
    """ "Omar is deciding", "Nia and Omar are deciding"; empty for nobody."""
    if len(names) < 2:
        return f"{names[0]} is deciding" if names else ""
    return f"{', '.join(names[:-1])} and {names[-1]} are deciding"


def at_sheet(here: list[Here], verb: str, now: datetime) -> list[str]:
    """Who has a sheet of this task open, said on the sheet of `verb`."""
    return [
        f"{one.name} has {_sheet(one, verb)} open since {words.moment(one.since, now)}."
        for one in here
        if one.deciding
    ]


def _sheet(one: Here, verb: str) -> str:
    if one.verb == verb:
        return "this sheet"
    return f"the sheet “{LABELS[one.verb]}”" if one.verb in LABELS else "a sheet"


def remaining(left: timedelta) -> str:
    """What is left of a claim, to the minute: "24 min left"."""
    seconds = left.total_seconds()
    return f"{words.lasting(max(seconds // 60 * 60, 60))} left" if seconds > 0 else "claim has ended"


def _warning(left: timedelta, mine: bool) -> str:
    """What the holder is told before a claim ends; empty while there is time, and for everybody else."""
    if not mine or left > WARN_BEFORE:
        return ""
    if left <= timedelta(0):
        return "Your claim has ended; the task goes back to the queue unless you extend it now."
    minutes = words.plural(max(1, -(-int(left.total_seconds()) // 60)), "minute")
    return f"Your claim ends in {minutes}; then the task goes back to the queue. Extend it if you are still at it."


def notes(task: HumanTask, record: Record, past: list[Event], now: datetime) -> list[str]:
    """What else is to be known about its place: came back, sleeps, was handed over, was asked for again."""
    found = [_came_back(task, past, now)]
    if task.pause and task.left_seconds is not None:
        left = words.lasting(round(task.left_seconds))
        found.append(f"The clock stands still: {pauses.WORDS[task.pause]}. {left} are left.")
    if task.snoozed_until is not None:
        found.append(f"Snoozed until {words.moment(task.snoozed_until, now)}, or until something new is learned.")
    found.append(_handed(task, record))
    if task.reminded_at is not None:
        again = words.plural(task.reminders, "time")
        found.append(f"Asked for again {again}, last at {words.moment(task.reminded_at, now)}.")
    return [note for note in found if note]


def _came_back(task: HumanTask, past: list[Event], now: datetime) -> str:
    """That the last claim decayed and nobody has taken the task since."""
    if task.state != "open":
        return ""
    last = next((event for event in past if event.kind in TAKEN and _about(event, task)), None)
    if last is None or last.kind != "claim_decayed":
        return ""
    return f"{last.reason.rstrip('.')} at {words.moment(last.at, now)}; nobody has taken it since."


HANDED = {
    "accept": "{by} accepted it from {kept[from]}",
    "decline": "{by} declined it: {reason}",
    "withdraw": "{by} took the offer to {kept[to]} back",
}


def _handed(task: HumanTask, record: Record) -> str:
    """The last step of its way from hand to hand; an offer that waits stands above, with its facts."""
    steps = ("assign", *HANDED)
    last = next((one for one in reversed(record.decisions) if one.task_id == task.pk and one.verb in steps), None)
    if last is None:
        return ""
    if last.verb in HANDED:
        return f"{HANDED[last.verb].format(by=last.by, kept=last.snapshot, reason=last.reason).rstrip('.')}."
    what = "offered it" if "offer" in last.snapshot else "handed it"
    return f"{last.by} {what} to {last.snapshot.get('to')}: {last.reason}"


def offer(panel: Panel) -> Offer | None:
    """The handover that waits for an answer, with what the record said when it was offered."""
    made, at = panel.offer, panel.situation
    if made is None:
        return None
    who = "you" if at.offer_mine else str(made.to)
    by = "You offer" if at.offer_given else f"{made.by} offers"
    facts = [(label, text) for label, text in made.facts]
    return Offer(
        looks.HANDOVER[made.state],
        f"{by} {who} this task",
        made.reason,
        facts,
        made.expires_at,
        verbs.offer_verbs(panel),
    )


def _about(event: Event, task: HumanTask) -> bool:
    return bool(event.data.get("task") == str(task.pk))
