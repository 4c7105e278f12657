"""Records for ingest, cut into requests that are never too large. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from steadyhand.contract import Ingested

MAX_RECORDS = 500
MAX_BYTES = 512 * 1024


@dataclass(frozen=True)
class Batch:
    body: bytes
    count: int


def of(records: Iterable[Any]) -> Iterator[Batch]:
    """JSON arrays of at most MAX_RECORDS and about MAX_BYTES; a record larger than that goes alone."""
    texts: list[bytes] = []
    size = 0
    for record in records:
        text = json.dumps(to_jsonable_python(record, exclude_none=True), ensure_ascii=False).encode()
        if texts and (len(texts) == MAX_RECORDS or size + len(text) > MAX_BYTES):
            yield _batch(texts)
            texts, size = [], 0
        texts.append(text)
        size += len(text)
    if texts:
        yield _batch(texts)


def together(told: Ingested, answer: Ingested, *, offset: int) -> Ingested:
    """The sum of two answers; a fault's `item` counts from the first record of all."""
    faults = [fault.model_copy(update={"item": fault.item + offset}) for fault in answer.errors]
    return Ingested(
        accepted=told.accepted + answer.accepted,
        duplicates=told.duplicates + answer.duplicates,
        runs=list(dict.fromkeys([*told.runs, *answer.runs])),
        errors=[*told.errors, *faults],
    )


def _batch(texts: list[bytes]) -> Batch:
    return Batch(b"[" + b",".join(texts) + b"]", len(texts))
