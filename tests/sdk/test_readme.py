"""An engineer wraps a tool in ten lines, and every example of the README runs as it stands."""

from __future__ import annotations

import asyncio

import pytest

from tests.sdk.fake_server import FakeServer, answered
from tests.sdk.readme import World, examples


@pytest.fixture
def world(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(server, monkeypatch)


def test_a_tool_is_wrapped_in_ten_lines(world: World) -> None:
    first = examples()[0]
    assert len([line for line in first.splitlines() if line.strip()]) <= 10
    names = world.names()
    exec(first, names)
    assert names["credit"] == {"id": "cr_1"}
    assert world.paid == ["POST /credits/in_1 sh-key-1"]
    assert [arrival.verb for arrival in world.server.arrivals] == ["open", "proposals", "reports", "finish"]


def test_the_other_examples_run_one_after_the_other(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    names = world.names()
    first, resumed, turns, given, loop, ingest, _agents = examples()
    exec(first, names)
    world.server.then("proposals", answered("replay", result={"id": "cr_1"}))
    for example in (resumed, turns, given, loop, ingest):
        exec(example, names)
    assert asyncio.run(names["main"]()) == [{"id": "cr_1"}, {"id": "cr_1"}]
    assert world.paid == ["POST /credits/in_1 sh-key-1", "GET /invoices/in_1 -", "GET /invoices/in_2 -"]
    assert [turn["phase"] for turn in world.server.came("turns")] == ["begin", "end"]
    assert capsys.readouterr().out == "2 []\n"
