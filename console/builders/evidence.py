"""What is known about a call, strongest first, and what contradicts what; model prose comes last, proving nothing."""

from __future__ import annotations

from console import looks
from console.builders.attempts import bytes_words, came_back, declared, told
from console.builders.record import Record
from console.pages.task import Conflict, EvidenceRow
from recovery import gaps
from recovery.models import Demotion, Gap
from runs import redact
from runs.models import Action, Attempt, Event, Evidence, Run

MOST_LISTED, MOST_FIELDS, LONGEST_FACT = 20, 8, 500
OWN_RECEIPT, PROVIDERS_REPLY = 3, 4
_SENDERS = {True: "Our worker", False: "Agent's boundary"}
_FOUND = ("present", "present_final", "conflict")
_KIND = {
    "probe": "look-up",
    "listing": "listing",
    "late_report": "late report",
    "reply": "reply",
    "callback": "callback",
    "person": "a person",
}


def rows(record: Record, action: Action | None) -> list[EvidenceRow]:
    """The facts about a call, or about all calls of the run where the task names none."""
    about = [action] if action is not None else record.actions
    facts = [fact for one in about for fact in _of(record, one)]
    facts.sort(key=lambda fact: (fact.strength, fact.at), reverse=True)
    return [*facts, *_listed(record.run), *_claim(record)]


def conflicts(record: Record, action: Action | None) -> list[Conflict]:
    """Two facts that cannot both be true, side by side."""
    if action is None:
        return []
    facts = record.facts(action)
    found = next((fact for fact in reversed(facts) if fact.verdict in _FOUND), None)
    missed = next((fact for fact in reversed(facts) if fact.verdict == "absent_final"), None)
    refused = next((one for one in record.tries(action) if one.observed == "permanent_reject"), None)
    if found is None:
        return []
    if missed is not None:
        return [Conflict("One look-up found an effect, one proved that there is none", _look(found), _look(missed))]
    if refused is not None:
        return [
            Conflict("The provider refused the call and holds an effect of it", _look(found), _try(action, refused))
        ]
    return []


def warnings(past: list[Event], action: Action | None, demotion: Demotion | None) -> list[str]:
    """What a person has to know before the facts: what was decided on others, and whose word is worth less."""
    found = next((event for event in past if event.kind == "contradicted" and event.action == action), None)
    told = [f"Decided before: {found.reason}"] if found is not None and found.reason and action is not None else []
    if demotion is not None:
        told.append(f"A declared bound was not kept. {demotion.reason}")
    return told


def note(facts: list[EvidenceRow]) -> str:
    """The line beside the head of the card."""
    count = sum(not fact.claim for fact in facts)
    return f"Strongest first; {count} fact{'' if count == 1 else 's'}" if count else "Strongest first"


def words_of(fact: Evidence) -> str:
    """The fact as a sentence with its verdict: what a look-up found, and whether that counts as final."""
    verdict = looks.VERDICT.get(fact.verdict)
    return f"{fact.fact} {verdict.word}." if verdict and fact.kind == "probe" else fact.fact


def _of(record: Record, action: Action) -> list[EvidenceRow]:
    return [*(_look(fact) for fact in record.facts(action)), *(_try(action, one) for one in record.tries(action))]


def _look(fact: Evidence) -> EvidenceRow:
    return EvidenceRow(
        words_of(fact),
        f"{fact.source} {_KIND.get(fact.kind, fact.kind)}",
        fact.strength,
        _strength(fact),
        fact.started_at,
    )


def _strength(fact: Evidence) -> str:
    if fact.kind != "probe":
        return "Provider's reply" if fact.strength >= PROVIDERS_REPLY else "Own receipt"
    if fact.verdict == "probe_failed":
        return "No answer"
    return "Provider, final" if fact.verdict.endswith("_final") else "Provider, not final"


def _try(action: Action, attempt: Attempt) -> EvidenceRow:
    back, sizes = came_back(attempt).word, bytes_words(attempt)
    words = f"Attempt {attempt.number} of `{action.step}`: {back[:1].lower()}{back[1:]}"
    typed, replied = declared(attempt), attempt.observed in ("ok_valid", "transient_reject", "permanent_reject")
    said = f": “{told(attempt)}”" if told(attempt) else f"; {sizes}" if sizes else ""
    return EvidenceRow(
        f"{words}{said}",
        "The tool's own answer" if typed else "Provider's reply" if replied else _SENDERS[attempt.layer == "worker"],
        PROVIDERS_REPLY if replied and not typed else OWN_RECEIPT,
        "Typed answer" if typed else "Provider's reply" if replied else "Own receipt",
        attempt.ended_at or attempt.dispatched_at,
    )


def _listed(run: Run) -> list[EvidenceRow]:
    """The effects that no call admits, each with what the other system tells of it; the first of many."""
    found = run.gaps.order_by("id")[:MOST_LISTED] if run.origin == gaps.ORIGIN else ()
    return [
        EvidenceRow(_told_of(gap), f"{gap.connector} listing", PROVIDERS_REPLY, "Provider's listing", gap.happened_at)
        for gap in found
    ]


def _told_of(gap: Gap) -> str:
    """Its id and fields as the listing has them (redacted when it was kept), and since when we know of it."""
    record = gap.raw.get("record") if isinstance(gap.raw, dict) else None
    plain = record.items() if isinstance(record, dict) else ()
    told = [f"{name} {value}" for name, value in plain if isinstance(value, str | int | float)][:MOST_FIELDS]
    said = ", ".join([gap.external_id, *([f"reference {gap.reference}"] if gap.reference else []), *told])
    return redact.clean_text(f"{said}; first listed {gap.found_at:%Y-%m-%d %H:%M:%S} UTC.", LONGEST_FACT)


def _claim(record: Record) -> list[EvidenceRow]:
    """The agent's closing sentence: shown as its words, worth nothing (I14)."""
    run = record.run
    if not run.claim:
        return []
    reported = [one.ended_at or one.dispatched_at for tries in record.attempts.values() for one in tries]
    at = run.ended_at or max(reported, default=run.opened_at)
    return [EvidenceRow(run.claim, "Model text", 0, "Proves nothing", at, claim=True)]
