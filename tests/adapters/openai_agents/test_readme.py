"""The adapter's example in the README runs as it stands."""

from __future__ import annotations

import pytest
from agents.testing import ScriptedModel, assistant_message, function_call

from tests.sdk.fake_server import FakeServer
from tests.sdk.readme import World, examples


def test_the_example_of_the_readme_runs(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = [[function_call("load_invoice", {"invoice": "in_1"}, call_id="c1")], [assistant_message("It is paid.")]]
    names = World(server, monkeypatch).names(text="Is in_1 paid?", model=ScriptedModel(turns))
    first, *_, agents = examples()
    exec(first, names)
    exec(agents, names)
    assert names["end"].ok
    assert server.came("proposals")[-1]["tool"] == "load_invoice"
    assert "It is paid." in capsys.readouterr().out
