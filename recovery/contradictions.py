"""Late evidence that contradicts what the record rests on: a person is asked again, and told who decided what before
on which evidence (F028, F043, F072, F144)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from recovery import demotions, escalation
from recovery.case import Case
from recovery.models import Decision, HumanTask
from runs import record
from runs.models import Action, Event, Evidence
from runs.record import Actor

MOST_TOLD = 20
_NOT_ABOUT_THE_CALL = ("claim", "release", "comment", "snooze", "assign", "accept", "decline", "withdraw")


@dataclass(frozen=True)
class Decided:
    """One earlier decision about a call: by a rule or by a person, and the last thing that was known then."""

    id: str
    what: str
    rule: str
    by: str
    at: datetime
    evidence: str
    known: str
    person: bool

    def __str__(self) -> str:
        ground = f"when the latest evidence was {self.known}" if self.known else "before there was any evidence"
        return f"{self.by} decided {self.what.replace('_', ' ')} by rule {self.rule} {ground}."


def ask(case: Case, actor: Actor) -> HumanTask:
    """The task about this contradiction, opened again if the call had one that was closed."""
    task = escalation.open_task(
        case.run, reason_of(case.action), action=case.action, actor=actor, kind=kind_of(case.action),
        page=case.page("conflicting_evidence"),
    )  # fmt: skip
    tell(case, task, actor)
    return task


def tell(case: Case, task: HumanTask, actor: Actor) -> None:
    """Write down what contradicts which decisions, once for each new piece of evidence, and what follows for the
    connector."""
    newest = Evidence.objects.filter(action=case.action).order_by("-id").first()
    told = Event.objects.filter(run=case.run, action=case.action, kind="contradicted")
    if newest is None or told.filter(data__evidence=str(newest.pk)).exists():
        return
    earlier = decided(case.action, before=newest)
    record.write_event(
        case.run, "contradicted", actor, action=case.action, reason=" ".join(map(str, _worth_telling(earlier))),
        data={"task": str(task.pk), "evidence": str(newest.pk), "decided": [_plain(one) for one in earlier]},
    )  # fmt: skip
    demotions.note(case.run, case.action, case.known, actor)


def decided(action: Action, *, before: Evidence) -> list[Decided]:
    """What rules and people had decided about this call before that evidence came, the oldest first."""
    learned = list(Evidence.objects.filter(action=action, id__lt=before.pk).order_by("id"))
    made = [*_by_people(action, learned), *_by_rules(action, learned)]
    earlier = [one for one in made if one.at < before.recorded_at]
    return sorted(earlier, key=lambda one: one.at)[-MOST_TOLD:]


def _worth_telling(earlier: list[Decided]) -> list[Decided]:
    """What people chose, and the last rule that spoke."""
    last = earlier[-1:]
    return [one for one in earlier[:-1] if one.person][-2:] + last


def kind_of(action: Action) -> str | None:
    return "duplicate_effect" if _counted_twice(action) else None


def reason_of(action: Action) -> str:
    """More than one effect has its own reason on the task; the run's says that the records contradict each other."""
    return "duplicate_effect" if _counted_twice(action) else "conflicting_evidence"


def _counted_twice(action: Action) -> bool:
    return action.evidence.filter(verdict="conflict", count__gte=2).exists()


def _by_people(action: Action, learned: list[Evidence]) -> list[Decided]:
    rows = Decision.objects.filter(action=action, by__isnull=False).exclude(verb__in=_NOT_ABOUT_THE_CALL)
    return [
        _made(str(one.pk), one.verb, one.rule, str(one.by), one.requested_at, learned, person=True)
        for one in rows.select_related("by").order_by("id")
    ]


def _by_rules(action: Action, learned: list[Evidence]) -> list[Decided]:
    """Moves that a rule of the table made: its id stands in the event's data."""
    events = Event.objects.filter(action=action, data__has_key="rule").order_by(*Event.IN_ORDER)
    return [_made(str(one.pk), one.kind, one.data["rule"], one.actor, one.at, learned) for one in events]


def _made(
    id: str, what: str, rule: str, by: str, at: datetime, learned: list[Evidence], *, person: bool = False
) -> Decided:
    known = next((one for one in reversed(learned) if one.recorded_at <= at), None)
    said = f"“{known.verdict.replace('_', ' ')}” from {known.source}" if known else ""
    return Decided(id, what, rule, by, at, str(known.pk) if known else "", said, person)


def _plain(one: Decided) -> dict[str, str]:
    plain = {"id": one.id, "what": one.what, "rule": one.rule, "by": one.by, "evidence": one.evidence}
    return plain | {"at": one.at.isoformat(timespec="seconds")}
