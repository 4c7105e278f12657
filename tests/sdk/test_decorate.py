"""A decorated function is called as usual, and its call passes the boundary of the run it is in."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import pytest
from steadyhand import AsyncBoundary, Boundary, Call, Run

from tests.sdk.fake_server import FakeServer, answered

WORK = {"workflow": "billing", "intent": "Credit the customer."}


@pytest.fixture
def boundary(server: FakeServer) -> Boundary:
    return server.boundary()


def test_a_decorated_function_is_a_guarded_call(server: FakeServer, boundary: Boundary) -> None:
    @boundary.tool
    def apply_credit(call: Call, *, account: str, amount_minor: int, currency: str = "EUR") -> dict[str, Any]:
        return {"id": "cr_1", "account": account, "key": call.idempotency_key}

    with boundary.run(**WORK):
        assert apply_credit(account="acct_1", amount_minor=2000) == {
            "id": "cr_1",
            "account": "acct_1",
            "key": "sh-key-1",
        }
    (proposal,) = server.came("proposals")
    assert proposal["tool"] == "apply_credit"
    assert proposal["arguments"] == {"account": "acct_1", "amount_minor": 2000, "currency": "EUR"}, "with the default"


def test_the_call_may_stand_anywhere_or_nowhere(server: FakeServer, boundary: Boundary) -> None:
    @boundary.tool
    def load_invoice(invoice: str) -> str:
        return invoice

    @boundary.tool(name="apply_credit")
    def credit(invoice: str, permit: Call, amount_minor: int) -> int:
        return permit.attempt * amount_minor

    with boundary.run(**WORK):
        assert (load_invoice("in_1"), credit("in_1", amount_minor=5), credit("in_1", 7)) == ("in_1", 5, 7)
    assert [proposal["tool"] for proposal in server.came("proposals")] == ["load_invoice", *["apply_credit"] * 2]


def test_a_tool_function_of_arguments_and_call_is_taken_as_it_is(server: FakeServer, boundary: Boundary) -> None:
    @boundary.tool
    def apply_credit(arguments: dict[str, Any], call: Call) -> Any:
        return arguments["invoice"]

    with boundary.run(**WORK) as run:
        assert apply_credit(invoice="in_1") == "in_1"
        assert run.call(apply_credit, {"invoice": "in_2"}, step="second") == "in_2"
    assert [proposal["step"] for proposal in server.came("proposals")] == [None, "second"]


def test_a_replayed_call_runs_no_code(server: FakeServer, boundary: Boundary) -> None:
    server.then("proposals", answered("replay", result={"id": "cr_1"}))

    @boundary.tool
    def apply_credit(account: str) -> None:
        raise AssertionError(account)

    with boundary.run(**WORK):
        assert apply_credit(account="acct_1") == {"id": "cr_1"}


def test_outside_a_run_nothing_is_called(boundary: Boundary) -> None:
    @boundary.tool
    def apply_credit(account: str) -> None:
        raise AssertionError(account)

    with pytest.raises(RuntimeError, match="inside the block of a run"):
        apply_credit(account="acct_1")
    with boundary.run(**WORK):
        pass
    with pytest.raises(RuntimeError, match="inside the block of a run"):
        apply_credit(account="acct_1")


def test_an_inner_run_takes_the_calls_of_its_block(server: FakeServer, boundary: Boundary) -> None:
    seen: list[str] = []

    @boundary.tool
    def note(call: Call, text: str) -> None:
        seen.append(text)

    with boundary.run(**WORK) as outer, boundary.run(**WORK, parent=outer) as inner:
        assert isinstance(inner, Run)
        note(text="inner")
    assert seen == ["inner"]
    assert [opened["parent_run_id"] for opened in server.came("open")] == [None, outer.run_id]


def test_a_thread_that_is_given_the_context_calls_in_the_same_run(server: FakeServer, boundary: Boundary) -> None:
    @boundary.tool
    def load(invoice: str) -> str:
        return invoice

    with boundary.run(**WORK):
        assert contextvars.copy_context().run(load, "in_1") == "in_1"


@pytest.mark.parametrize("kind", ["positional only", "open-ended"])
def test_what_cannot_be_passed_by_name_is_refused_when_it_is_decorated(boundary: Boundary, kind: str) -> None:
    def by_place(account: str, /) -> None: ...

    def open_ended(**fields: Any) -> None: ...

    with pytest.raises(TypeError, match="all its parameters need names"):
        boundary.tool(by_place if kind == "positional only" else open_ended)


def test_wrong_arguments_are_a_mistake_of_the_program(server: FakeServer, boundary: Boundary) -> None:
    @boundary.tool
    def apply_credit(account: str) -> str:
        return account

    with pytest.raises(TypeError), boundary.run(**WORK):
        apply_credit(acount="acct_1")
    assert server.came("proposals") == []


def test_an_async_function_needs_the_async_boundary(server: FakeServer, boundary: Boundary) -> None:
    @boundary.tool
    async def apply_credit(account: str) -> str:
        return account

    with pytest.raises(TypeError, match="use AsyncBoundary"), boundary.run(**WORK):
        apply_credit(account="acct_1")
    assert server.came("proposals") == []


def test_on_a_loop_plain_and_async_functions_are_awaited_alike(server: FakeServer) -> None:
    boundary: AsyncBoundary = server.async_boundary()

    @boundary.tool
    async def load(call: Call, *, invoice: str) -> str:
        await asyncio.sleep(0)
        return f"{invoice} {call.attempt}"

    @boundary.tool(name="apply_credit")
    def credit(invoice: str) -> str:
        return invoice

    async def main() -> list[str]:
        async with boundary.run(**WORK):
            return list(await asyncio.gather(load(invoice="in_1"), credit(invoice="in_2")))

    assert asyncio.run(main()) == ["in_1 1", "in_2"]


def test_on_a_loop_a_block_ends_where_it_ends(server: FakeServer) -> None:
    boundary: AsyncBoundary = server.async_boundary()

    @boundary.tool
    async def load(invoice: str) -> str:
        return invoice

    async def main() -> None:
        async with boundary.run(**WORK):
            await load("in_1")
        with pytest.raises(RuntimeError, match="inside the block of a run"):
            await load("in_1")

    asyncio.run(main())
