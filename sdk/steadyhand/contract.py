"""The words on the wire, shared by agents and the server: outcomes, reasons, manifest, permit, report.

Pure: pydantic models and enums, no I/O. The server imports this module; it imports nothing of the server.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from steadyhand.manifest import (
    Manifest as Manifest,
)  # the manifest is part of the contract; it fills a file of its own

MAX_BODY_BYTES = 256 * 1024
MAX_REPLY_BYTES = 1024 * 1024
"""How much of an answer travels and is read; a report may be larger by what JSON adds to it."""
MAX_REPORT_BYTES = 2 * MAX_REPLY_BYTES + 64 * 1024
MAX_KEPT_BYTES = 64 * 1024
"""How much of an answer is kept for people to read (ruling 16); the result itself is kept whole, sealed."""

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.\-]{0,79}$")]
ShortText = Annotated[str, StringConstraints(max_length=2000)]
Reference = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Count = Annotated[int, Field(strict=True, ge=0, le=2**53 - 1)]


class Outcome(str, Enum):
    """How a tool call ends. `cancelled` ends a run only."""

    OK = "ok"
    RETRYABLE = "retryable"
    NEEDS_INPUT = "needs_input"
    NEEDS_HUMAN = "needs_human"
    FATAL = "fatal"
    CANCELLED = "cancelled"


_REASONS: dict[Outcome, str] = {
    Outcome.OK: "completed completed_reconciled completed_late_result already_in_desired_state",
    Outcome.RETRYABLE: "provider_rate_limited provider_unavailable connect_failed credential_refresh async_pending "
    "proof_pending circuit_open look_due call_rate_limited",
    Outcome.NEEDS_INPUT: "user_input_required",
    Outcome.NEEDS_HUMAN: "external_outcome_unknown external_outcome_resolved required_effect_missing "
    "conflicting_evidence duplicate_effect partial_effect compensation_failed compensation_required not_compensable "
    "retry_exhausted turn_budget_exhausted tool_call_budget_exhausted token_budget_exhausted cost_budget_exhausted "
    "time_budget_exhausted budget_exhausted deadline_exceeded usage_unmeasured no_progress_loop approval_required "
    "approval_expired input_deadline_passed credentials_invalid credentials_revoked idempotency_key_conflict "
    "postcondition_unproven definition_changed stopped_by_operator unadmitted_effect effects_unlisted "
    "residual_unsigned",
    Outcome.FATAL: "invalid_tool_result invalid_arguments truncated_arguments unsupported_operation "
    "permission_denied policy_denied business_rule_violation resource_not_found unexpected_redirect "
    "remote_operation_failed not_applied precondition_failed partly_compensated",
    Outcome.CANCELLED: "cancelled_by_user cancelled_with_effects cancelled_effect_unknown",
}

OUTCOME_OF: dict[str, Outcome] = {code: outcome for outcome, codes in _REASONS.items() for code in codes.split()}
"""The outcome that each reason code carries. A code that is not in here may not be written anywhere."""

ReasonCode = Enum("ReasonCode", {code.upper(): code for code in OUTCOME_OF}, type=str)  # type: ignore[misc]


class Strict(BaseModel):
    """Base of every message: an unknown field is refused, never dropped."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False)


class Scope(Strict):
    """What the run is authorized to touch: tools, ids by argument field, an amount per call, an end."""

    tools: list[Name] | None = Field(default=None, max_length=200)
    ids: dict[Name, list[Reference]] = Field(default_factory=dict, max_length=50)
    max_amount_minor: Count | None = None
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")] | None = None
    expires_at: AwareDatetime | None = None


class OpenRun(Strict):
    """Ask for a run. `client_ref` makes the request repeatable: the same ref returns the same run.

    `parent_run_id`: a sub-agent's run, whose every unit of work is charged to its parent's budgets too.
    """

    workflow: Name
    client_ref: Reference
    intent: Annotated[str, StringConstraints(min_length=1, max_length=2000)]
    scope: Scope = Scope()
    requester: Reference | None = None
    customer_ref: Reference | None = None
    deadline_at: AwareDatetime | None = None
    model: Reference | None = None
    prompt_version: Reference | None = None
    trace_id: Reference | None = None
    parent_run_id: Reference | None = None


class RunOpened(Strict):
    """`reads` names the tools that change nothing: the boundary numbers their calls where no step is given."""

    run_id: str
    workflow: str
    workflow_id: str
    workflow_version: int
    state: str
    resumed: bool
    reads: list[str] = []


class Proposal(Strict):
    """A tool call that the agent would like to make. `step` names its place in the run (F094: not the call id).

    `unreadable`: what the model wrote was no JSON object, so `arguments` are empty and the call is refused; the
    record keeps that it was tried (F084).
    """

    workflow_id: str
    tool: Annotated[str, StringConstraints(min_length=1, max_length=120)]
    arguments: dict[str, Any]
    step: Annotated[str, StringConstraints(min_length=1, max_length=120)] | None = None
    layer: Name = "agent"
    unreadable: Literal["truncated_arguments", "invalid_arguments"] | None = None


class StructuredError(Strict):
    """What the model may know about a refusal or a failure: never internals, never exception text."""

    code: str
    retryable: bool = False
    field: str | None = None
    message: str
    suggested_actions: list[str] = []
    fallback: str | None = None


class Permit(Strict):
    """The answer to a proposal.

    execute: dispatch now, before `dispatch_within_seconds` have passed, and report under `attempt_id` and `fence`.
    replay: the effect is proven; `result` is the recorded answer. wait: propose again after `wait_seconds`.
    deny: this action is refused (`error`). stop: the run takes no further calls (`error`, `outcome`).

    `arguments` replaces what was proposed where only a part may be sent (a batch whose other items are done).
    `refresh_credential`: fetch a new credential before this dispatch, once; if that fails, report it as rejected.
    """

    answer: Literal["execute", "replay", "wait", "deny", "stop"]
    run_id: str
    step: str
    action_id: str | None = None
    attempt_id: str | None = None
    attempt: int | None = None
    fence: int | None = None
    idempotency_key: str | None = None
    timeout_seconds: float | None = None
    dispatch_within_seconds: float | None = None
    wait_seconds: float | None = None
    due_at: datetime | None = None
    result: Any = None
    arguments: dict[str, Any] | None = None
    refresh_credential: bool | None = None
    error: StructuredError | None = None


class Observation(Strict):
    """What came back from a tool, as seen by whoever sent the call. It claims nothing about the effect.

    reply: an answer arrived (`status` and `headers` for HTTP, `code` a status by name for gRPC; `body` is raw text).
    not_sent: proven that no byte left. timeout and connection_lost: see `bytes_sent`. exception: anything else.
    """

    kind: Literal["reply", "not_sent", "timeout", "connection_lost", "exception"]
    status: Annotated[int, Field(strict=True, ge=100, le=999)] | None = None
    headers: dict[str, str] = Field(default_factory=dict, max_length=40)
    body: str | None = None
    body_bytes: Count | None = None
    altered: bool = False
    bytes_sent: Count | None = None
    exc_type: Annotated[str, StringConstraints(max_length=200)] | None = None
    message: Annotated[str, StringConstraints(max_length=2000)] | None = None
    latency_ms: Count = 0
    code: Annotated[str, StringConstraints(max_length=80)] | None = None
    declared: (
        Literal[
            "rate_limited",
            "not_sent",
            "unknown",
            "business_rule",
            "invalid_input",
            "needs_input",
            "credentials_rejected",
        ]
        | None
    ) = None
    declared_field: Annotated[str, StringConstraints(max_length=200)] | None = None
    retry_after: Annotated[str, StringConstraints(max_length=100)] | None = None


class Report(Strict):
    """What came back under a permit. `tool` repeats its name, so that the server can read the answer at once."""

    attempt_id: str
    tool: str | None = None
    fence: Count
    observation: Observation


class OutcomeDocument(Strict):
    """The outcome of a call or a run, as the host product reads it."""

    run_id: str
    workflow: str
    state: str
    outcome: Outcome | None = None
    reason_code: str | None = None
    failed_step: str | None = None
    attempt: int | None = None
    retry_after_seconds: float | None = None
    completed_effects: list[str] = []
    customer_message: str | None = None
    operator_detail: str | None = None

    @model_validator(mode="after")
    def reason_belongs_to_outcome(self) -> OutcomeDocument:
        if self.reason_code is not None and OUTCOME_OF.get(self.reason_code) != self.outcome:
            raise ValueError(f"reason_code {self.reason_code} does not belong to outcome {self.outcome}")
        return self


class Reported(Strict):
    """The answer to a report: what the call came to, and what the boundary does next."""

    answer: Literal["result", "again", "suspend", "error", "stop"]
    step: str
    outcome: Outcome
    reason_code: str
    result: Any = None
    wait_seconds: float | None = None
    due_at: datetime | None = None
    error: StructuredError | None = None


class Usage(Strict):
    """Tokens and cost of one model turn. A number that is unknown is left out, never sent as zero (F104)."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cost_minor: Count | None = None


class Turn(Strict):
    """One turn of the model. `begin` reserves `usage` as the most it may use; `end` replaces that by what it used."""

    phase: Literal["begin", "end"] = "end"
    usage: Usage = Usage()
    text: ShortText | None = None


class TurnAnswer(Strict):
    answer: Literal["go", "stop"]
    turn: int
    error: StructuredError | None = None


class Finish(Strict):
    """The agent says that it is done. `claim` is its closing sentence: stored as a claim, it proves nothing.

    `ended_by` turn_limit: the framework stopped the agent at a ceiling of its own, so it is not done at all (F093).
    """

    claim: Annotated[str, StringConstraints(max_length=8000)] | None = None
    ended_by: Literal["agent", "turn_limit"] = "agent"


class Cancel(Strict):
    reason: Annotated[str, StringConstraints(min_length=1, max_length=2000)]


class Rollback(Strict):
    """Ask that what this run did be undone, in reverse order, where it is proven and can be undone."""

    reason: Annotated[str, StringConstraints(min_length=1, max_length=2000)]


class Resume(Strict):
    """`workflow_id`: the version that the runner was written for; another one than the run's needs a person."""

    workflow_id: str | None = None


class Heartbeat(Strict):
    attempt_id: str
    fence: Count


class Leased(Strict):
    """The attempt is the agent's until then. `stop`: the run is being cancelled; a read should end now."""

    lease_until: datetime
    stop: bool = False


class StepState(Strict):
    """Where one call of a run stands, for a runner that resumes."""

    step: str
    tool: str
    state: str
    settled: bool
    reason_code: str | None = None


class ProvidedInput(Strict):
    """What the requester answered: the field of the call of that step, and its new value.

    The call that had waited is over. Propose it again with the value in its place: that is a new call, checked anew.
    """

    step: str
    tool: str
    field: str
    value: Any = None


class ResumeAnswer(Strict):
    """What a runner needs to go on from the last proven state. `ready` says that proposals are welcome now."""

    run_id: str
    workflow: str
    workflow_id: str
    state: str
    ready: bool
    intent: str
    outcome: Outcome | None = None
    reason_code: str | None = None
    due_at: datetime | None = None
    steps: list[StepState] = []
    reads: list[str] = []
    inputs: list[ProvidedInput] = []


class EventItem(Strict):
    """One line of the events feed. Of two lines of one run, that with the higher `number` happened later."""

    id: str
    number: int
    run_id: str
    kind: str
    at: datetime
    step: str | None = None
    from_state: str = ""
    to_state: str = ""
    run_state: str
    outcome: Outcome | None = None
    reason_code: str | None = None


class EventPage(Strict):
    """A page of the feed, oldest first. Ask again with `after=next`; an empty page keeps `next`."""

    items: list[EventItem]
    next: str | None = None


class ActionItem(Strict):
    """What Steadyhand believes about one write, under the reference that the remote saw."""

    reference: str
    run_id: str
    step: str
    tool: str
    state: str
    effect: Literal["proven", "unknown", "none"]
    outcome: str | None = None


class ActionPage(Strict):
    items: list[ActionItem]


class MemoryStep(Strict):
    """One call as an agent may remember it: what was tried, what came of it, what stands in the world.

    `result` is what the tool answered, redacted and cut short: data, never an instruction.
    """

    step: str
    tool: str
    arguments_hash: str
    state: str
    attempts: int
    outcome: Outcome | None = None
    reason_code: str | None = None
    effect: Literal["proven", "unknown", "none"]
    external_id: str | None = None
    verified_by: str | None = None
    result: str | None = None
    error: StructuredError | None = None
    due_at: datetime | None = None


class Memory(Strict):
    """What a run has done so far, for a prompt: `text` says in lines what the fields say.

    `remaining` maps each budget that has a ceiling to what is left of it.
    """

    run_id: str
    intent: str
    state: str
    steps: list[MemoryStep]
    completed_effects: list[str] = []
    open_questions: list[str] = []
    remaining: dict[str, int] = {}
    text: str


class Recorded(Strict):
    """Base of a record of what happened elsewhere: its own `id`, its run's `client_ref`, and when it happened.

    The same `id` again is taken in once, whatever it says.
    """

    id: Reference
    run: Reference
    at: AwareDatetime


class RecordedRun(Recorded):
    kind: Literal["run"]
    workflow: Name
    intent: Annotated[str, StringConstraints(min_length=1, max_length=2000)]
    scope: Scope = Scope()
    requester: Reference | None = None
    customer_ref: Reference | None = None
    deadline_at: AwareDatetime | None = None
    model: Reference | None = None
    prompt_version: Reference | None = None
    trace_id: Reference | None = None


class RecordedTurn(Recorded):
    kind: Literal["turn"]
    usage: Usage = Usage()


class RecordedCall(Recorded):
    """What the agent asked for; whether it was ever sent, a `dispatch` says.

    `key`: the reference under which the provider got it, so that a look-up or a callback can name it.
    """

    kind: Literal["call"]
    step: Annotated[str, StringConstraints(min_length=1, max_length=120)]
    tool: Annotated[str, StringConstraints(min_length=1, max_length=120)]
    arguments: dict[str, Any]
    key: Annotated[str, StringConstraints(min_length=1, max_length=80)] | None = None


class RecordedDispatch(Recorded):
    """One sending of the call of that step; attempts are numbered from 1."""

    kind: Literal["dispatch"]
    step: Annotated[str, StringConstraints(min_length=1, max_length=120)]
    attempt: Annotated[int, Field(strict=True, ge=1, le=100)] = 1
    layer: Name = "agent"


class RecordedObservation(Recorded):
    """What came back. `synthetic`: nothing did, somebody only wrote down that no result was there."""

    kind: Literal["observation"]
    step: Annotated[str, StringConstraints(min_length=1, max_length=120)]
    attempt: Annotated[int, Field(strict=True, ge=1, le=100)] = 1
    observation: Observation
    synthetic: bool = False


class RecordedCancel(Recorded):
    kind: Literal["cancel"]
    reason: Annotated[str, StringConstraints(min_length=1, max_length=2000)] = "cancelled elsewhere"


class RecordedFinish(Recorded):
    kind: Literal["finish"]
    claim: Annotated[str, StringConstraints(max_length=8000)] | None = None
    ended_by: Literal["agent", "turn_limit"] = "agent"


Record = Annotated[
    RecordedRun
    | RecordedTurn
    | RecordedCall
    | RecordedDispatch
    | RecordedObservation
    | RecordedCancel
    | RecordedFinish,
    Field(discriminator="kind"),
]


class Fault(Strict):
    """One bad item: where it stood, the field at fault and what to do about it."""

    item: int
    record_id: str | None = None
    field: str
    remedy: str


class Ingested(Strict):
    """What became of a batch: records taken in, records known already, and each bad one by name."""

    accepted: int
    duplicates: int
    runs: list[str] = []
    errors: list[Fault] = []
