"""What the tests of the boundary share: a tool that counts its calls, and a run on a scripted server."""

from __future__ import annotations

from steadyhand import Call, Run

from tests.sdk.fake_server import FakeServer

DUE = "2026-11-30T12:00:00Z"
ARGUMENTS = {"invoice": "in_1", "amount_minor": 2000}


class Credit:
    """A tool that counts how often it is called."""

    name = "apply_credit"

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.calls: list[Call] = []

    def __call__(self, arguments: dict[str, object], call: Call) -> object:
        self.calls.append(call)
        answer = self.answers.pop(0) if self.answers else {"id": "cr_1"}
        if isinstance(answer, BaseException):
            raise answer
        return answer


def opened(server: FakeServer, **ways: object) -> Run:
    return server.boundary(**ways).run(workflow="billing", intent="Credit the customer.")
