"""An agent as a process of its own that dies by SIGKILL at one point of its credit, or hangs there to be killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from typing import Any
from urllib.parse import urlsplit

import httpx
from steadyhand import Boundary, Call, Run, Tool

from tests.stories.billing import ACCOUNT, Agent

BEGUN_REPLY = 12


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def on_the_wire(url: str, arguments: dict[str, Any], call: Call, *, share: float, read: int) -> None:
    """Send this share of the request's body and read so many bytes of its reply, then die."""
    place = urlsplit(url)
    body = json.dumps(arguments).encode()
    head = f"POST /payments/credits HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: {len(body)}\r\n"
    head += f"X-Action-Id: {call.action_id}\r\nContent-Type: application/json\r\n\r\n"
    with socket.create_connection((place.hostname or "", place.port or 80), timeout=5) as line:
        line.sendall(head.encode() + body[: int(len(body) * share)])
        if read:
            line.recv(read)
        die()


def credit(agent: Agent, run: Run, sandbox: str, point: str) -> None:
    def apply_credit(arguments: dict[str, Any], call: Call) -> Any:
        if point == "C06":
            die()
        if point == "C08":
            on_the_wire(sandbox, arguments, call, share=0.5, read=0)
        if point == "C11":
            on_the_wire(sandbox, arguments, call, share=1, read=BEGUN_REPLY)
        headers = {"X-Action-Id": call.action_id or ""}
        reply = httpx.post(f"{sandbox}/payments/credits", json=arguments, headers=headers, timeout=9)
        if point == "C12":
            die()
        return reply

    arguments = {"account": ACCOUNT, "invoice": agent.invoice, "amount_minor": 12_000, "currency": "EUR"}
    run.call(Tool("apply_credit", apply_credit), arguments)


def main(url: str, sandbox: str, workflow: str, reference: str, invoice: str, point: str) -> None:
    agent = Agent(sandbox, invoice)
    with Boundary(url, os.environ["AGENT_TOKEN"], max_wait=0) as boundary:
        run = boundary.run(workflow=workflow, intent="Credit", client_ref=reference)
        run.turn()
        credit(agent, run, sandbox, point)


if __name__ == "__main__":
    main(*sys.argv[1:])
