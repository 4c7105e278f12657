"""The page that shows the world's ledger beside what Steadyhand believes."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from sandbox.beliefs import Asked, Beliefs, Verdict, judge
from sandbox.calls import Answer, iso
from sandbox.ledger import Ledger

MOST_ROWS = 50
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
COLUMNS = ("Reference", "Arrived at the service", "Effects in the world", "Steadyhand believes", "Verdict")
REPLIES = {
    "received": "being handled",
    "sent": "answered",
    "cut": "half a reply,",
    "dropped": "no reply",
    "hanging": "kept waiting",
    "redelivered": "delivered again,",
    "interrupted": "broken off by a stop",
    "truncated": "the request broke off",
}
SIGNS = {
    "ok": '<path d="M20 6 9 17l-5-5"/>',
    "bad": '<path d="M18 6 6 18M6 6l12 12"/>',
    "unk": '<circle cx="12" cy="12" r="10"/><path d="M9.1 9a3 3 0 0 1 5.8 1c0 2-3 3-3 3M12 17h.01"/>',
    "idle": '<path d="M5 12h14"/>',
}


def gather(ledger: Ledger) -> list[dict[str, Any]]:
    """The latest writes by reference, newest first: arrivals, effects and what is still under way."""
    with ledger.transaction():
        arrivals = ledger.arrivals({"kind": "write"}, descending=True)
        effects, pending = ledger.effects(descending=True), ledger.promises()
    rows: dict[str, dict[str, Any]] = {}
    for arrival in arrivals:
        reference = arrival["action_id"] or arrival["reference"]
        name = reference or f"without a reference, arrival {arrival['id']}"
        empty = {"reference": reference, "name": name, "arrivals": [], "effects": [], "pending": []}
        rows.setdefault(name, empty)["arrivals"].append(arrival)
    chosen = list(rows.values())[:MOST_ROWS]
    by_arrival = {arrival["id"]: row for row in chosen for arrival in row["arrivals"]}
    for effect in effects:
        if effect["arrival_id"] in by_arrival:
            by_arrival[effect["arrival_id"]]["effects"].append(effect)
    for promise in pending:
        if promise.call.arrival_id in by_arrival:
            by_arrival[promise.call.arrival_id]["pending"].append(promise)
    return chosen


def render(rows: list[dict[str, Any]], asked: Asked, *, now: float, url: str = "", steadyhand: str = "") -> str:
    """The whole page; every value from outside is escaped."""
    head = "".join(f'<th scope="col">{column}</th>' for column in COLUMNS)
    body = "".join(_row(row, asked) for row in rows) or _nothing()
    link = f'<a href="{escape(steadyhand)}">Open Steadyhand</a>' if steadyhand else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>The outside world</title>"
        '<link rel="stylesheet" href="/sandbox.css"></head><body><header><h1>The outside world</h1>'
        f"<p>What the services really did, beside what Steadyhand believes. {_clock(now)} UTC</p>"
        f"{link}</header><main>{_notice(asked, url)}<table>"
        "<caption>Latest writes by reference, newest first</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></main></body></html>"
    )


def _notice(asked: Asked, url: str) -> str:
    if not asked.problem:
        return ""
    if not url:
        return f'<p class="note" role="status">{escape(asked.problem)} The last column cannot be filled.</p>'
    where = f"Steadyhand not reachable at {url}, checked {_clock(asked.checked_at)}"
    return f'<p class="note" role="status">{escape(where)}<small>{escape(asked.problem)}</small></p>'


def _nothing() -> str:
    return f'<tr><td colspan="{len(COLUMNS)}">No write has arrived yet.</td></tr>'


def _row(row: dict[str, Any], asked: Asked) -> str:
    belief = asked.items.get(row["reference"]) if row["reference"] else None
    verdict = judge(belief, reachable=not asked.problem, effects=len(row["effects"]), pending=len(row["pending"]))
    cells = (
        f"<code>{escape(row['reference'])}</code>" if row["reference"] else escape(row["name"]),
        "".join(map(_arrival, row["arrivals"])),
        _effects(row),
        _belief(belief, asked),
        _verdict(verdict),
    )
    return "<tr>" + "".join(map(_cell, COLUMNS, cells)) + "</tr>"


def _cell(label: str, html: str) -> str:
    return f'<td data-label="{label}">{html}</td>'


def _arrival(arrival: dict[str, Any]) -> str:
    what = f"{arrival['service']} {arrival['operation']}"
    status = f" {arrival['status']}" if arrival["status"] is not None else ""
    reply = REPLIES[arrival["outcome"]]
    fault = f", script: {arrival['fault']}" if arrival["fault"] not in ("", "ok") else ""
    said = f"{_time(arrival['at'])}, {reply}{status}{fault}"
    return f"<div>{escape(what)}<small>{escape(said)}</small></div>"


def _effects(row: dict[str, Any]) -> str:
    made = "".join(map(_effect, row["effects"]))
    for promise in row["pending"]:
        made += f"<div>Under way<small>commits at {_clock(promise.due_at)}</small></div>"
    return made or "Nothing changed"


def _effect(effect: dict[str, Any]) -> str:
    fields = effect["fields"]
    money = ""
    if "amount_minor" in fields:
        units, cents = divmod(fields["amount_minor"], 100)
        money = f" {units:,}.{cents:02d} {fields['currency']}"
    said = f"{_time(effect['at'])}{money}"
    name = f'<code class="id">{escape(effect["effect_id"])}</code>'
    return f"<div>{name}<small>{escape(said)}</small></div>"


def _belief(belief: dict[str, Any] | None, asked: Asked) -> str:
    if belief is None:
        return "Not known here" if asked.problem else "Does not list it"
    state, outcome = (str(belief.get(name) or "none") for name in ("state", "outcome"))
    said = f"state {state}, outcome {outcome}"
    return f"Effect {escape(str(belief.get('effect')))}<small>{escape(said)}</small>"


def _verdict(verdict: Verdict) -> str:
    sign = f'<svg viewBox="0 0 24 24" aria-hidden="true">{SIGNS[verdict.tone]}</svg>'
    badge = f'<span class="badge {verdict.tone}">{sign}{verdict.words}</span>'
    return f"{badge}<small>{escape(verdict.why)}</small>"


def _clock(at: float) -> str:
    return _time(iso(at))


def _time(text: str) -> str:
    return text[11:19]


def _page(ledger: Ledger, beliefs: Beliefs) -> Answer:
    html = render(gather(ledger), beliefs.ask(), now=ledger.now(), url=beliefs.url, steadyhand=beliefs.steadyhand)
    raw = html.encode(errors="replace")
    return Answer(status=200, body=raw, content_type="text/html; charset=utf-8", headers=HEADERS)


def _css(ledger: Ledger, beliefs: Beliefs) -> Answer:
    raw = Path(__file__).with_name("sandbox.css").read_bytes()
    return Answer(status=200, body=raw, content_type="text/css; charset=utf-8", headers=HEADERS)


FILES: dict[str, Callable[[Ledger, Beliefs], Answer]] = {"/": _page, "/sandbox.css": _css}
