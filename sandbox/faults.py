"""The script of what goes wrong: which calls it is for, what each entry means, and whose turn it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sandbox.calls import MAX_BODY_BYTES, MAX_HANG_SECONDS, Call, Refused, canonical
from sandbox.ledger import Ledger
from sandbox.services import SERVICES, WRITABLE

MAX_SCRIPT = 200
MAX_SECONDS = 7 * 86400
REQUIRED = object()
OWN_HEADERS = {"content-length", "connection", "transfer-encoding", "content-type"}


@dataclass(frozen=True)
class Fault:
    """One entry of a script, with every default filled in."""

    do: str
    given: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.given[name]


OK = Fault("ok", {})


def number(value: Any, low: float, high: float) -> bool:
    """A number within bounds; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _seconds(most: float) -> Callable[[Any], bool]:
    return lambda value: number(value, 0, most)


def _status(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and number(value, low, high)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _json(value: Any) -> bool:
    return len(canonical(value).encode()) <= MAX_BODY_BYTES


def _headers(value: Any) -> bool:
    return isinstance(value, dict) and len(value) <= 20 and all(_header(*pair) for pair in value.items())


def _header(name: str, value: Any) -> bool:
    usable = re.fullmatch(r"[A-Za-z0-9-]{1,60}", name) and name.lower() not in OWN_HEADERS
    return bool(usable) and isinstance(value, str) and re.fullmatch(r"[\x20-\x7e]{0,500}", value) is not None


def _how(value: Any) -> bool:
    return value in ("rst", "fin")


Field = tuple[Callable[[Any], bool], Any]
HOW: dict[str, Field] = {"how": (_how, "rst")}
REPLY: dict[str, Field] = {"headers": (_headers, {}), "body": (_json, None)}

ENTRIES: dict[str, dict[str, Field]] = {
    "ok": {},
    "delay": {"seconds": (_seconds(MAX_HANG_SECONDS), REQUIRED)},
    "commit_then_drop": {**HOW},
    "drop_before_commit": {**HOW},
    "status": {"status": (_status(300, 599), REQUIRED), **REPLY},
    "commit_then_status": {"status": (_status(300, 599), REQUIRED), **REPLY},
    "error_in_200": {"body": (_json, {"error": {"code": "internal", "message": "This was not carried out."}})},
    "ok_without_fields": {"commit": (_flag, REQUIRED)},
    "late_commit": {"seconds": (_seconds(MAX_SECONDS), REQUIRED), **HOW},
    "lag_reads": {"seconds": (_seconds(MAX_SECONDS), REQUIRED)},
    "hang": {"seconds": (_seconds(MAX_HANG_SECONDS), REQUIRED), "commit": (_flag, REQUIRED)},
    "redeliver": {},
    "cut_body": {},
    "html_200": {"commit": (_flag, False)},
    "refuse": {"status": (_status(400, 499), 422), **REPLY},
    "already_done": {},
}
WRITES_ONLY = {"commit_then_drop", "commit_then_status", "late_commit", "redeliver", "already_done"}


def check_script(body: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The match with its kind settled, and the entries with defaults; ``Refused`` 400 names the field."""
    for name in body:
        if name not in ("match", "script"):
            raise _wrong(name, "is unknown here; a script has match and script")
    match = _check_match(body.get("match"))
    script = body.get("script")
    if not isinstance(script, list) or not 1 <= len(script) <= MAX_SCRIPT:
        raise _wrong("script", f"must be a list of 1 to {MAX_SCRIPT} entries")
    kind = match["kind"]
    return match, [_check_entry(f"script[{place}]", entry, kind) for place, entry in enumerate(script)]


def _check_match(match: Any) -> dict[str, Any]:
    if not isinstance(match, dict):
        raise _wrong("match", "must be an object with at least a service")
    for name in match:
        if name not in ("service", "operation", "kind", "reference", "field"):
            raise _wrong(f"match.{name}", "is unknown here")
    service, operation = match.get("service"), match.get("operation")
    if not isinstance(service, str) or service not in SERVICES:
        raise _wrong("match.service", f"must be one of {', '.join(sorted(SERVICES))}")
    if operation is not None and operation not in SERVICES[service]:
        raise _wrong("match.operation", f"must be one of {', '.join(sorted(SERVICES[service]))}")
    writes = operation is None or (service, operation) in WRITABLE
    kind = match.get("kind", "write" if writes else "read")
    if kind not in ("write", "read") or (kind == "write" and not writes):
        raise _wrong("match.kind", "must be write or read, and the operation must have it")
    if not isinstance(match.get("reference", ""), str):
        raise _wrong("match.reference", "must be text")
    if not isinstance(match.get("field", {}), dict):
        raise _wrong("match.field", "must be an object of argument names and values")
    return {**match, "kind": kind}


def _check_entry(where: str, entry: Any, kind: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise _wrong(where, "must be an object with do")
    do = entry.get("do")
    if not isinstance(do, str) or do not in ENTRIES:
        raise _wrong(f"{where}.do", f"must be one of {', '.join(sorted(ENTRIES))}")
    if kind == "read" and do in WRITES_ONLY:
        raise _wrong(f"{where}.do", f"{do} is for writes, and this script matches reads")
    known = {name: field for name, field in ENTRIES[do].items() if kind == "write" or name != "commit"}
    for name in entry:
        if name != "do" and name not in known:
            raise _wrong(f"{where}.{name}", f"is unknown for {do}")
    return {"do": do, **{name: _settle(where, name, field, entry) for name, field in known.items()}}


def _settle(where: str, name: str, field: Field, entry: dict[str, Any]) -> Any:
    check, default = field
    if name not in entry:
        if default is REQUIRED:
            raise _wrong(f"{where}.{name}", "is missing")
        return default
    if not check(entry[name]):
        raise _wrong(f"{where}.{name}", "has an unusable value")
    return entry[name]


def _wrong(field: str, what: str) -> Refused:
    return Refused(400, "invalid_fault", f"{field} {what}.", field=field)


def fits(match: dict[str, Any], call: Call) -> bool:
    """Whether a script is for this call."""
    if match["service"] != call.service or match["kind"] != call.kind:
        return False
    if match.get("operation", call.operation) != call.operation:
        return False
    if "reference" in match and match["reference"] not in (call.reference, call.action_id):
        return False
    return all(str(call.fields.get(name)) == str(value) for name, value in match.get("field", {}).items())


def add_script(ledger: Ledger, body: dict[str, Any]) -> dict[str, Any]:
    """Store a checked script on disk; the answer is what ``list_scripts`` shows of it."""
    match, script = check_script(body)
    with ledger.transaction():
        cursor = ledger.db.execute(
            "INSERT INTO faults (match, script) VALUES (?,?)", (canonical(match), canonical(script))
        )
    return {"fault_id": cursor.lastrowid, "match": match, "used": 0, "remaining": script}


def list_scripts(ledger: Ledger) -> list[dict[str, Any]]:
    """The scripts that still have entries to play, the oldest first."""
    made = []
    for row in ledger.rows("SELECT * FROM faults ORDER BY id"):
        remaining = json.loads(row["script"])[row["used"] :]
        if remaining:
            match = json.loads(row["match"])
            made.append({"fault_id": row["id"], "match": match, "used": row["used"], "remaining": remaining})
    return made


def clear_scripts(ledger: Ledger) -> None:
    """Behave from now on."""
    with ledger.transaction():
        ledger.db.execute("DELETE FROM faults")


def next_fault(ledger: Ledger, call: Call) -> Fault:
    """Use up the next entry of the oldest script that is for this call; ``OK`` when there is none."""
    with ledger.transaction():
        for script in list_scripts(ledger):
            if fits(script["match"], call):
                ledger.db.execute("UPDATE faults SET used = used + 1 WHERE id = ?", (script["fault_id"],))
                entry = dict(script["remaining"][0])
                return Fault(entry.pop("do"), entry)
    return OK
