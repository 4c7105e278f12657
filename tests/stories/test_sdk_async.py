"""An agent on an event loop against the whole product: a call cancelled in the air is recovered, not repeated."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from steadyhand import AsyncBoundary, Call, Suspended, Tool, async_http_call

from tests.stack import Stack, wait_for
from tests.stories.billing import ACCOUNT, Agent
from tests.stories.telling import attempts, credits, press_check, record, script, settled

pytestmark = pytest.mark.failures


def test_F026_a_cancelled_task_leaves_an_unknown_write_that_a_look_settles(stack: Stack, agent: Agent) -> None:
    script(stack, agent, {"do": "hang", "seconds": 60, "commit": True})
    workflow = stack.register()
    arguments = {"account": ACCOUNT, "invoice": agent.invoice, "amount_minor": 12_000, "currency": "EUR"}

    async def cut_short() -> str:
        async with AsyncBoundary(stack.url, stack.token, max_wait=0) as boundary, httpx.AsyncClient() as client:

            async def apply_credit(given: dict[str, Any], call: Call) -> httpx.Response:
                url = f"{stack.sandbox_url}/payments/credits"
                return await async_http_call(
                    call, client, "POST", url, json=given, headers={"X-Action-Id": call.action_id or ""}
                )

            tool = Tool("apply_credit", apply_credit)
            run = await boundary.run(workflow=workflow, intent="Credit")
            task = asyncio.ensure_future(run.call(tool, arguments))
            await asyncio.to_thread(wait_for, lambda: len(credits(stack, agent)) == 1, "the credit in the world")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(Suspended):
                await run.call(tool, arguments)
            return run.run_id

    run_id = asyncio.run(cut_short())
    stored = record(stack, run_id)
    assert (stored.state, stored.reason_code) == ("verifying", "external_outcome_unknown")
    decision = press_check(stack, run_id)
    wait_for(lambda: settled(stack, decision), "the worker's verdict")
    with stack.boundary() as boundary:
        assert agent.work(boundary.resume(run_id)).state == "completed"
    assert len(credits(stack, agent)) == len(attempts(stack, run_id, "apply_credit")) == 1
