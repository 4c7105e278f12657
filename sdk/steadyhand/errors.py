"""What the boundary raises to the agent, and what a tool may raise to say exactly what happened."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, ClassVar

from steadyhand.contract import OUTCOME_OF, Outcome, StructuredError


class SteadyhandError(Exception):
    """Base of everything that the boundary raises."""


class Refused(SteadyhandError):
    """This call is refused, or the tool refused it for good; the agent may propose something else.

    `str()` is safe for the model. `outcome` is None where the call was refused before it was dispatched
    and its code names no outcome.
    """

    def __init__(self, error: StructuredError, outcome: Outcome | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.outcome = outcome

    def for_model(self) -> str:
        """The refusal as JSON for the model: code, sentence, the field at fault, what it may do."""
        return json.dumps({"error": self.error.model_dump(mode="json", exclude_none=True)}, ensure_ascii=False)


class Suspended(SteadyhandError):
    """The run cannot go on now. Leave it; `Boundary.resume(run_id)` goes on once the feed says so.

    `due_at` is the time of the next look or try, None where a person or a callback must settle it first.
    """

    def __init__(self, run_id: str, due_at: datetime | None = None, reason_code: str | None = None) -> None:
        super().__init__(f"Run {run_id} waits: {reason_code or 'not ready'}. Resume it later.")
        self.run_id = run_id
        self.due_at = due_at
        self.reason_code = reason_code


class Unrecorded(Suspended):
    """A tool was called, and its report could not be delivered: nobody may go on as if it were known."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id, None, "report_not_delivered")


class Stopped(SteadyhandError):
    """The run takes no further calls: a budget fired, an operator stopped it, or it has ended."""

    def __init__(self, run_id: str, error: StructuredError, outcome: Outcome | None = None) -> None:
        super().__init__(error.message)
        self.run_id = run_id
        self.error = error
        self.outcome = outcome


class Cancelled(SteadyhandError):
    """The run is being cancelled: a read ends at once, for nobody waits for its answer (F134)."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run {run_id} is being cancelled.")
        self.run_id = run_id


class Unavailable(SteadyhandError):
    """Steadyhand gave no usable answer, so nothing was sent: writes fail closed (DESIGN 2, rule 1)."""


class Problem(SteadyhandError):
    """Steadyhand refused the request itself (4xx, problem+json). `errors` holds {field, remedy} pairs."""

    def __init__(self, status: int, title: str, detail: str = "", errors: list[dict[str, Any]] | None = None) -> None:
        self.status = status
        self.title = title
        self.detail = detail
        self.errors = errors or []
        faults = "; ".join(f"{e.get('field', '')}: {e.get('remedy', '')}" for e in self.errors)
        parts = (f"{status} {title}", detail.removesuffix("."), faults)
        super().__init__(". ".join(part for part in parts if part))


class ToolSignal(Exception):
    """Base of what a tool raises to state its own outcome. Only its author knows better than the network."""

    declared: ClassVar[str]

    def __init__(self, message: str = "", *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class RateLimited(ToolSignal):
    """The provider asked to slow down and did nothing. `retry_after`: seconds, or the header's own text."""

    declared = "rate_limited"

    def __init__(self, message: str = "", *, retry_after: float | str | None = None) -> None:
        super().__init__(message)
        self.retry_after = None if retry_after is None else str(retry_after)


class NotSent(ToolSignal):
    """The tool proves that no byte left. Never raise it on a guess: it licenses a second send."""

    declared = "not_sent"


class OutcomeUnknown(ToolSignal):
    """The call left, and the tool cannot say what came of it."""

    declared = "unknown"


class BusinessRule(ToolSignal):
    """The provider refused by one of its rules, for good, and changed nothing (F038)."""

    declared = "business_rule"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(f"{code}: {message}" if code else message)
        self.code = code


class CredentialsRejected(ToolSignal):
    """The provider did not accept the credential, so it did nothing; or no new one could be fetched (F037)."""

    declared = "credentials_rejected"


class InvalidInput(ToolSignal):
    """The arguments cannot be used, and nothing was sent (F081)."""

    declared = "invalid_input"


class NeedsInput(ToolSignal):
    """Only the requester can supply what is missing; `field` names it."""

    declared = "needs_input"


def refused_input(field: str, remedy: str) -> Refused:
    """The refusal of arguments that cannot be recorded at all."""
    error = StructuredError(code="invalid_arguments", field=field, message=f"{field}: {remedy}.")
    return Refused(error, OUTCOME_OF[error.code])


def plain_error(code: str) -> StructuredError:
    """An error for an answer that carries none."""
    return StructuredError(code=code, message=f"The call was refused: {code.replace('_', ' ')}.")
