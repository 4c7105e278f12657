"""The ceilings of a run beside what it has used; the one that fired comes first."""

from __future__ import annotations

from datetime import datetime

from console.builders import words
from console.builders.record import Record
from console.pages.run import Budget

FIRED = {
    "turn_budget_exhausted": "Turns",
    "tool_call_budget_exhausted": "Tool calls",
    "time_budget_exhausted": "Elapsed",
    "token_budget_exhausted": "Tokens",
    "cost_budget_exhausted": "Estimated cost",
    "budget_exhausted": "Budget",
}


def rows(record: Record, now: datetime, stopped_at: datetime | None) -> list[Budget]:
    """`stopped_at` is when the run was escalated, if a budget did it."""
    run = record.run
    elapsed = round(((run.ended_at or now) - run.opened_at).total_seconds())
    whole = round((run.elapses_at - run.opened_at).total_seconds())
    most = max((len(tries) for tries in record.attempts.values()), default=0)
    named = [
        ("Elapsed", min(elapsed, whole), whole, f"{words.lasting(elapsed)} / {words.lasting(whole)}"),
        ("Turns", run.turns, run.max_turns, ""),
        ("Tool calls", run.tool_calls, run.max_tool_calls, ""),
        ("Attempts per step", most, run.max_attempts, ""),
        ("Input tokens", run.input_tokens, run.max_input_tokens, ""),
        ("Output tokens", run.output_tokens, run.max_output_tokens, ""),
        ("Estimated cost", run.cost_minor, run.max_cost_minor, ""),
    ]
    fired = FIRED.get(run.reason_code or "", "") if stopped_at else ""
    found = [
        Budget(name, used, limit, text or f"{used:,} / {limit:,}", stopped_at if fired and _is(name, fired) else None)
        for name, used, limit, text in named
        if limit is not None
    ]
    return sorted(found, key=lambda budget: budget.fired_at is None)


def _is(name: str, fired: str) -> bool:
    return name == fired or (fired == "Tokens" and name.endswith("tokens"))
