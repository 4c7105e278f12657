"""What the author of an agent is told where it runs: mistakes of a tool, cautions about a manifest, problems."""

from __future__ import annotations

import pytest
from steadyhand import Problem, Suspended, Tool

from tests.sdk.desk import ARGUMENTS, opened
from tests.sdk.fake_server import FakeServer, verdict


def test_a_mistake_in_a_tool_is_logged_once_with_its_place(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.then("reports", verdict("suspend", "needs_human", "external_outcome_unknown"))

    def misspelt(arguments: dict[str, object], _call: object) -> object:
        return arguments["invioce"]

    with pytest.raises(Suspended):
        opened(server).call(Tool("apply_credit", misspelt), ARGUMENTS)
    [told] = [one for one in caplog.records if "a mistake in its own code" in one.getMessage()]
    assert told.exc_info is not None
    assert "invioce" in caplog.text
    assert "in misspelt" in caplog.text


def test_a_provider_that_fails_is_no_mistake_of_the_tool(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.then("reports", verdict("suspend", "needs_human", "external_outcome_unknown"))

    def away(_arguments: object, _call: object) -> object:
        raise TimeoutError("no answer")

    with pytest.raises(Suspended):
        opened(server).call(Tool("apply_credit", away), ARGUMENTS)
    assert "a mistake" not in caplog.text


def test_warnings_of_a_registration_are_logged(server: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
    warned = {
        "workflow_id": "w",
        "name": "billing",
        "version": 1,
        "warnings": [{"field": "tools.0", "remedy": "mind"}],
    }
    server.then("workflows", warned)
    server.boundary().register("billing", {"tools": []})
    assert "workflow billing: tools.0: mind" in caplog.text


def test_a_problem_reads_as_sentences() -> None:
    faults = [{"field": "tools", "remedy": "add this field"}]
    problem = Problem(422, "Unprocessable Entity", "The request is not acceptable as it is.", faults)
    assert str(problem) == "422 Unprocessable Entity. The request is not acceptable as it is. tools: add this field"
