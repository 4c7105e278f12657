"""A bad record is told everything that is wrong with it, so that it is mended once."""

import pytest

from tests.api.conftest import Agent
from tests.api.test_ingest import a_record, answer, told

pytestmark = pytest.mark.django_db
__all__ = ["told"]


def test_every_fault_of_a_bad_record_is_named_at_once(told: Agent) -> None:
    heard = answer(told.post("/ingest", [a_record("run", 0), a_record("call", 1, surprise=1)]))
    assert [(fault["item"], fault["record_id"], fault["field"]) for fault in heard["errors"]] == [
        (0, "run-0", "workflow"),
        (0, "run-0", "intent"),
        (1, "call-1", "step"),
        (1, "call-1", "tool"),
        (1, "call-1", "arguments"),
        (1, "call-1", "surprise"),
    ]
    assert heard["accepted"] == 0


def test_a_record_of_nothing_but_faults_does_not_fill_the_answer(told: Agent) -> None:
    heard = answer(told.post("/ingest", [a_record("run", 0, **{f"f{n}": n for n in range(100)})]))
    assert len(heard["errors"]) == 20
