"""What happened elsewhere, told in batches: each record is read by itself, so that a bad one costs no other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast, get_args

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import ValidationError
from steadyhand.contract import Fault, Ingested, Record, Recorded

from console.api import parsing, remedies
from console.api.agents import AgentRequest, answer
from console.api.parsing import BODY, Refused
from recovery import intake

router = Router()

MAX_BYTES = 1024 * 1024
MAX_RECORDS = 1000
LINES = "application/x-ndjson"
MAX_LISTED = 20
"""Faults of one record that are named; who mends them sends it again."""
_MODELS: dict[str, type[Recorded]] = {
    get_args(model.model_fields["kind"].annotation)[0]: model for model in get_args(get_args(Record)[0])
}

_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"type": "array", "maxItems": MAX_RECORDS, "items": {"type": "object"}}},
            LINES: {"schema": {"type": "string"}},
        },
    }
}

Numbered = tuple[int, Record]


@router.post("/ingest", response=Ingested, summary="Tell what happened elsewhere", openapi_extra=_BODY)
def ingest(request: AgentRequest) -> HttpResponse:
    """A JSON list of records, or one a line as application/x-ndjson; at most 1 MiB and 1000 of them.

    In any order, sent twice or half broken: what is sound is taken in, and each bad record is named by its place,
    with every fault of it.
    """
    records: list[Numbered] = []
    faults: list[Fault] = []
    for place, text in _texts(request):
        read = _read(place, text)
        if isinstance(read, list):
            faults += read
        else:
            records.append((place, read))
    told = intake.ingest(request.auth, records, request_id=request.request_id)
    errors = sorted([*told.errors, *faults], key=lambda fault: fault.item)
    return answer(told.model_copy(update={"errors": errors}))


def _texts(request: HttpRequest) -> list[tuple[int, str]]:
    """Each record as text with its place: in a list from 0, in lines by the line's number from 1. Raises Refused."""
    parsing.check_type(request, "application/json", LINES)
    text = parsing.text_of(parsing.content(request, limit=MAX_BYTES))
    found = list(_lines(text) if request.content_type == LINES else _items(text))
    if len(found) > MAX_RECORDS:
        raise Refused(413, parsing.Fault(BODY, f"send at most {MAX_RECORDS} records at a time"))
    return found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def _items(text: str) -> Iterable[tuple[int, str]]:
    return enumerate(parsing.items(text))


def _read(place: int, text: str) -> Record | list[Fault]:
    """One record, or every fault of it with what to do about it."""
    value: Any = None
    try:
        document = parsing.read(text)
        value = document.value
        return cast(Record, _model_of(value).model_validate_json(document.text, strict=True))
    except Refused as wrong:
        found = list(wrong.faults)
    except ValidationError as wrong:
        found = remedies.faults(wrong, value)
    named = value.get("id") if isinstance(value, dict) else None
    record_id = named if isinstance(named, str) else None
    return [Fault(item=place, record_id=record_id, field=one.field, remedy=one.remedy) for one in found[:MAX_LISTED]]


def _model_of(value: dict[str, Any]) -> type[Recorded]:
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in _MODELS:
        raise Refused(422, parsing.Fault("kind", f"send one of {', '.join(_MODELS)}"))
    return _MODELS[kind]
