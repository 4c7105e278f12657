"""Strict reading of a request body: what JSON leaves open is closed here, before any model sees it (SEC-16).

A document is parsed once, by the C scanner, and walked once. The walk reports every fault with its dotted path; it
names fields and never repeats values.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final, NamedTuple

from django.http import HttpRequest, UnreadablePostError
from steadyhand.contract import MAX_BODY_BYTES, MAX_REPLY_BYTES
from steadyhand.identity import MAX_DEPTH, MAX_FIELDS, MAX_SAFE_INTEGER, MAX_STRING

BODY: Final = "body"
# A manifest declares up to two hundred tools; its models bound each part of it.
MAX_MANIFEST_FIELDS: Final = 5000
# The one text that may be longer: what a tool answered.
_LONGER: Final = {"observation.body": MAX_REPLY_BYTES}
# Longer runs of digits are not read at all: int() would refuse them, and slowly.
_DIGITS: Final = 20
_SPACE: Final = re.compile(r"[ \t\n\r]*")
# Always matches to the end of what it began, closed or not: linear whatever is sent.
_QUOTED: Final = re.compile(r'"(?:[^"\\]+|\\.?)*+"?', re.DOTALL)


class Fault(NamedTuple):
    """One thing that is wrong: where, and what the sender should do about it."""

    field: str
    remedy: str


class Refused(Exception):
    """The request cannot be read. `status` is a 4xx; every fault found is listed."""

    def __init__(self, status: int, *faults: Fault) -> None:
        super().__init__(f"{status}: {len(faults)} faults")
        self.status = status
        self.faults = faults


class Document(NamedTuple):
    """A body that passed: the text for the model, the plain value for whoever explains the model's faults."""

    text: str
    value: dict[str, Any]


def document(request: HttpRequest, *, fields: int = MAX_FIELDS, limit: int = MAX_BODY_BYTES) -> Document:
    """The JSON object in the body of at most `limit` bytes, at most `fields` fields and items in it.

    Raises Refused: 400, 411, 413 or 415.
    """
    check_type(request, "application/json")
    return read(text_of(content(request, limit=limit)), fields=fields)


def read(text: str, *, fields: int = MAX_FIELDS) -> Document:
    """The JSON object in a text, as `document` takes it. Raises Refused with status 400."""
    if _is_crowded(text, fields):
        raise Refused(400, _crowded(fields))
    value = parsed(text)
    if not isinstance(value, dict):
        raise Refused(400, Fault(BODY, "send a JSON object"))
    walk = _Walk(fields)
    walk.container(value, "", 1)
    if walk.faults:
        raise Refused(400, *walk.faults)
    return Document(text, value)


def items(text: str) -> list[str]:
    """Each item of the JSON list in a text, as it stands there. Raises Refused with status 400."""
    place = _space(text, 0)
    if text[place : place + 1] != "[":
        raise Refused(400, Fault(BODY, "send a JSON list"))
    found: list[str] = []
    place = _space(text, place + 1)
    goes_on = text[place : place + 1] != "]"
    while goes_on:
        end = _end_of_value(text, place)
        found.append(text[place:end])
        place = _space(text, end)
        goes_on = text[place : place + 1] == ","
        place = _space(text, place + 1) if goes_on else place
    if text[place : place + 1] != "]" or _space(text, place + 1) != len(text):
        raise _broken(text, place)
    return found


def _end_of_value(text: str, place: int) -> int:
    try:
        return _SCAN(text, place)[1]
    except json.JSONDecodeError as wrong:
        raise _broken(text, wrong.pos) from wrong
    except RecursionError as wrong:
        raise Refused(400, Fault(BODY, f"nest at most {MAX_DEPTH} levels")) from wrong


def _space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _broken(text: str, place: int) -> Refused:
    line, column = text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)
    return Refused(400, Fault(BODY, f"send valid JSON: it breaks at line {line}, column {column}"))


def shown(text: str, longest: int = 80) -> str:
    """Text from outside as it may stand in an answer or a log: short, printable, no surrogates."""
    cut = text if len(text) <= longest else text[:longest] + "…"
    return cut if cut.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in cut)


def check_type(request: HttpRequest, *kinds: str) -> None:
    """Raises Refused unless the body is said to be one of these kinds, in UTF-8 and as it is."""
    charset = (request.content_params or {}).get("charset", "utf-8").lower()
    if request.content_type not in kinds or charset not in ("utf-8", "utf8"):
        raise Refused(415, Fault(BODY, f"send Content-Type: {' or '.join(kinds)}, in UTF-8"))
    if request.META.get("HTTP_CONTENT_ENCODING", "identity") != "identity":
        raise Refused(415, Fault(BODY, "send the body without Content-Encoding"))


def content(request: HttpRequest, *, limit: int = MAX_BODY_BYTES) -> bytes:
    """The body, or Refused after at most one byte too many; a body without a length is read the same way."""
    length = request.META.get("CONTENT_LENGTH") or ""
    if not length and "HTTP_TRANSFER_ENCODING" in request.META:
        return _unmeasured(request, limit)
    if length.isascii() and length.isdigit() and int(length[:_DIGITS]) > limit:
        raise _too_long(limit)
    try:
        return request.read(limit + 1)
    except UnreadablePostError as gone:
        raise Refused(400, Fault(BODY, "send the whole body")) from gone


def _unmeasured(request: HttpRequest, limit: int) -> bytes:
    if not request.META.get("wsgi.input_terminated"):
        raise Refused(411, Fault(BODY, "send Content-Length"))
    data: bytes = request.META["wsgi.input"].read(limit + 1)
    if len(data) > limit:
        raise _too_long(limit)
    return data


def _too_long(limit: int) -> Refused:
    return Refused(413, Fault(BODY, f"send at most {limit // 1024} KiB"))


def text_of(data: bytes) -> str:
    """The text of a body. Raises Refused for bytes that are no UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as wrong:
        raise Refused(400, Fault(BODY, f"encode the body as UTF-8: byte {wrong.start} is not")) from wrong


def _is_crowded(text: str, fields: int) -> bool:
    """More commas between values than fields are allowed. Ten thousands of lists would keep the collector busy."""
    return text.count(",") > fields and _QUOTED.sub("", text).count(",") > fields


def _crowded(fields: int) -> Fault:
    return Fault(BODY, f"send at most {fields} fields and items in all")


class _Repeating(dict[str, Any]):
    """An object in which a name stood twice; the walk, which knows the path, reports it."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _Repeating(pairs)


def _integer(digits: str) -> int:
    return int(digits[:_DIGITS])


_DECODE: Final = json.JSONDecoder(object_pairs_hook=_object).decode
# Only the ends of values matter here: a number of thousands of digits is not read as one.
_SCAN: Final = json.JSONDecoder(parse_int=len).raw_decode
_DECODE_DIGITS: Final = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer).decode


def parsed(text: str) -> Any:
    """The JSON value of a text; what is wrong inside it is for a walk to say. Raises Refused."""
    try:
        return _DECODE(text)
    except json.JSONDecodeError as wrong:
        raise _broken(text, wrong.pos) from wrong
    except RecursionError as wrong:
        raise Refused(400, Fault(BODY, f"nest at most {MAX_DEPTH} levels")) from wrong
    except ValueError:
        # Thousands of digits in one number: read again, so that the walk can say where.
        return _DECODE_DIGITS(text)


class _Walk:
    """One pass over a parsed document, as deep as the allowed depth and no deeper."""

    def __init__(self, room: int) -> None:
        self.limit = self.room = room
        self.faults: list[Fault] = []

    def container(self, value: dict[str, Any] | list[Any], field: str, depth: int) -> None:
        self.room -= len(value)
        if self.room < 0:
            return self.stop()
        if depth > MAX_DEPTH:
            return self.add(field, f"nest at most {MAX_DEPTH} levels")
        if isinstance(value, dict):
            return self.mapping(value, field, depth)
        for index, item in enumerate(value):
            self.value(item, f"{field}.{index}", depth)
        return None

    def mapping(self, value: dict[str, Any], field: str, depth: int) -> None:
        if isinstance(value, _Repeating):
            for name in value.repeated:
                self.add(_below(field, name), "send each field once")
        for name, item in value.items():
            path = _below(field, name)
            self.text(name, path, MAX_STRING, "in the field's name ")
            self.value(item, path, depth)

    def value(self, value: Any, field: str, depth: int) -> None:
        kind = type(value)
        if kind is str:
            self.text(value, field, _LONGER.get(field, MAX_STRING))
        elif kind is int or kind is float:
            self.number(value, field)
        elif value is not None and kind is not bool:
            self.container(value, field, depth + 1)

    def text(self, value: str, field: str, longest: int, where: str = "") -> None:
        if len(value) > longest:
            self.add(field, f"{where}send at most {longest} characters")
        if "\x00" in value:
            self.add(field, f"{where}remove the NUL character")
        if not value.isascii() and not _encodes(value):
            self.add(field, f"{where}remove the lone surrogate: it is not valid Unicode")

    def number(self, value: float, field: str) -> None:
        if value != value or value in (float("inf"), float("-inf")):
            self.add(field, "send a finite number")
        elif abs(value) > MAX_SAFE_INTEGER:
            self.add(field, "send a number this long as text: readers of JSON lose digits beyond 2^53")

    def add(self, field: str, remedy: str) -> None:
        self.faults.append(Fault(field, remedy))

    def stop(self) -> None:
        if _crowded(self.limit) not in self.faults:
            self.faults.append(_crowded(self.limit))


def _below(field: str, name: str) -> str:
    return f"{field}.{shown(name)}" if field else shown(name)


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
