"""The manifest of a workflow: which tools it may call, and what each tool promises about its effects.

Validation reports every fault at once, each with its path. Promises are checked against each other here
(DECISIONS 5): a tool that demands a proof which it cannot get is refused at registration, not when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Literal, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError
from typing_extensions import Self

from steadyhand import promises
from steadyhand.promises import Broken, Place

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.\-]{0,79}$")]
Text = Annotated[str, StringConstraints(max_length=2000)]
Path = Annotated[str, StringConstraints(min_length=1, max_length=300)]
Seconds = Annotated[float, Field(ge=0, le=366 * 86400)]
Minor = Annotated[int, Field(strict=True, ge=0, le=2**53 - 1)]
Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
Clock = Annotated[str, StringConstraints(pattern=r"^(([01]\d|2[0-3]):[0-5]\d|24:00)$")]
Pause = Literal["requester", "provider", "snoozed"]
Share = Annotated[float, Field(gt=0, lt=1)]
Reminders = Annotated[list[Share], Field(max_length=5)]
Status = Annotated[int, Field(strict=True, ge=100, le=599)]
M = TypeVar("M", bound="Part")


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Condition(Part):
    """A statement about a JSON result: the value at `path` is present, or not empty, or equals, or is one of."""

    path: Path
    equals: Any = None
    one_of: list[Any] | None = None
    present: bool | None = None
    nonempty: bool | None = None


class Idempotency(Part):
    """none; key: the remote honours a key we send; natural: repeating the same request changes nothing more."""

    kind: Literal["none", "key", "natural"] = "none"
    header: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9\-]{1,80}$")] | None = None
    field: Path | None = None
    retention_seconds: Seconds | Literal["unlimited"] | None = None
    compares_arguments: bool = True

    @model_validator(mode="after")
    def a_key_has_a_place(self) -> Idempotency:
        if self.kind == "key" and (self.header is None) == (self.field is None):
            raise ValueError("name exactly one of header or field for the idempotency key")
        return self


class Look(Part):
    """A declared look-up (connector kind http): which list to read and which record is ours.

    Templates may use {action_id}, {key}, {run_id} and {arguments.<field>}; each value is percent-encoded.
    `match` maps a path in a record to such a template or a constant: a record is ours when `ours` hold, and
    it is whole when `match` holds too; ours but not whole is a conflict (a look-alike with other fields).
    `complete` says of the whole answer that its list goes no further: where it does not hold, to find nothing proves
    nothing. Without it, the usual signs of a next page (has_more, next_cursor, a Link header) say so.
    """

    path: Path
    query: dict[str, str] = Field(default_factory=dict, max_length=20)
    items: Path | None = None
    complete: Condition | None = None
    ours: dict[str, Any] = Field(min_length=1, max_length=10)
    match: dict[str, Any] = Field(default_factory=dict, max_length=20)
    external_id: Path
    processing: Condition | None = None
    undone: Condition | None = None
    result: Path | None = None


class Reconcile(Part):
    """How to ask the remote what happened. A missing bound means unbounded: a look-up is then never final.

    `match` is for the kinds that answer with one record of ours (webhook, python): paths in it and templates of what
    they must hold; an http connector says it in `look`.
    """

    connector: Name
    look: Look | None = None
    match: dict[str, Any] = Field(default_factory=dict, max_length=20)
    counts: bool = True
    max_in_flight_seconds: Seconds | None = None
    max_visibility_lag_seconds: Seconds | None = None
    max_looks: Annotated[int, Field(ge=1, le=50)] = 6
    first_look_seconds: Seconds = 5


class Send(Part):
    """How the worker makes a call itself (undo, poll, `dispatch: host`): one request to a declared connector.

    Over http it has a path, with templates as in `Look`; without a body template the arguments are the body, and a
    GET has none. A webhook and a python connector get the whole call.
    """

    connector: Name
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    path: Path | None = None
    query: dict[str, str] = Field(default_factory=dict, max_length=20)
    body: dict[str, Any] | None = None


class Poll(Part):
    """How to ask whether an accepted job has ended: a declared read, its `arguments` from the accepted reply."""

    tool: Name
    arguments: dict[str, str] = Field(min_length=1, max_length=20)
    state: Path
    succeeded: list[str | int | bool] = Field(min_length=1, max_length=20)
    failed: list[str | int | bool] = Field(default_factory=list, max_length=20)
    external_id: Path | None = None
    every_seconds: Annotated[float, Field(ge=1, le=86400)] = 30


class Callback(Part):
    """What a signed message of the provider says about a call of this tool.

    A message is ours by our own id or key at `reference`, or by the provider's id at `identity`, as it stood in the
    accepted reply. `order` lists the states as they follow each other: an earlier one that comes later is ignored.
    """

    source: Name
    reference: Path = "action_id"
    identity: Path | None = None
    state: Path = "state"
    succeeded: list[str | int | bool] = Field(min_length=1, max_length=20)
    failed: list[str | int | bool] = Field(default_factory=list, max_length=20)
    order: list[str] = Field(default_factory=list, max_length=20)


class Batch(Part):
    """A call that carries many items: each is an action of its own, told apart by `key` (F049).

    `items` is the path of the list in the arguments, `results` of the list in the reply, whose entries name their
    item at `result_key` and went well where `ok` holds.
    """

    items: Path
    key: Path
    results: Path
    result_key: Path
    ok: Condition
    external_id: Path | None = None


class RateLimit(Part):
    """At most `calls` of this tool in `per_seconds`, over all runs of the tenant."""

    calls: Annotated[int, Field(strict=True, ge=1, le=100000)]
    per_seconds: Annotated[int, Field(strict=True, ge=1, le=86400)]


class Compensate(Part):
    """The registered undo. `arguments` maps the undo's fields to paths in the *recorded* result.

    `cost_minor` is what taking back always costs; `returned` is the path in the undo's own result that says how much
    came back, and then speaks in its place. `max_attempts` is the undo's own ceiling, not the run's.
    """

    tool: Name
    arguments: dict[str, str] = Field(min_length=1, max_length=20)
    window_seconds: Seconds | None = None
    cost_minor: Minor = 0
    returned: Path | None = None
    max_attempts: Annotated[int, Field(strict=True, ge=1, le=20)] = 5


class Review(Part):
    summary: Text = ""
    context: list[Path] = Field(default_factory=list, max_length=20)
    reject_codes: list[Name] = Field(default_factory=list, max_length=20)


class Precondition(Part):
    tool: Name
    path: Path
    equals: Any = None


class Fallback(Part):
    """Another read that may stand in for this one: its result must hold every `requires`, and `staleness` is told to
    the customer."""

    tool: Name
    suitability: Text = ""
    requires: list[Condition] = Field(default_factory=list, max_length=20)
    staleness: Annotated[str, StringConstraints(min_length=1, max_length=300)]


class Tool(Part):
    """One tool's contract. What is not promised here is not assumed anywhere.

    `once_per` names arguments that stand for one piece of business (an order, an invoice): a write is made once for
    each, over all runs of the tenant, whatever its other arguments are.
    """

    name: Name
    effect: Literal["read", "write"]
    version: Annotated[int, Field(ge=1, le=100000)] = 1
    title: Text = ""
    proof: Literal["reply", "look", "look_final"] = "reply"
    input_schema: dict[str, Any] = Field(default_factory=lambda: {"type": "object"})
    output_schema: dict[str, Any] | None = None
    identity_fields: list[Path] = Field(default_factory=list, max_length=10)
    sensitive_fields: list[Path] = Field(default_factory=list, max_length=50)
    idempotency: Idempotency = Idempotency()
    reconcile: Reconcile | None = None
    compensate: Compensate | None = None
    irreversible: bool = False
    error_when: list[Condition] = Field(default_factory=list, max_length=20)
    success_requires: list[Condition] = Field(default_factory=list, max_length=20)
    success_statuses: list[Status] | None = None
    conflict_codes: dict[str, Literal["already_done", "version_conflict", "business_rule", "key_conflict"]] = Field(
        default_factory=dict, max_length=50
    )
    not_executed_statuses: list[Status] = Field(default_factory=list, max_length=20)
    rate_limit_statuses: list[Status] = [429]
    async_statuses: list[Status] = Field(default_factory=list, max_length=10)
    poll: Poll | None = None
    callback: Callback | None = None
    completes_by: Literal["reply", "callback"] = "reply"
    transport: Literal["http", "mcp", "grpc"] = "http"
    credential: Literal["static", "refreshable"] = "static"
    absent_is_success: bool = False
    precondition_read: Name | None = None
    send: Send | None = None
    batch: Batch | None = None
    rate_limit: RateLimit | None = None
    max_value_minor: Minor | None = None
    once_per: list[Path] = Field(default_factory=list, max_length=10)
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 30
    value_field: Path | None = None
    currency: Currency | None = None
    currency_field: Path | None = None
    requires_approval: bool = False
    fallback: Fallback | None = None
    preconditions: list[Precondition] = Field(default_factory=list, max_length=10)
    dispatch: Literal["agent", "host"] = "agent"
    review: Review | None = None
    access_owner: Text | None = None
    connection: Name | None = None
    after: list[Name] | None = None

    @model_validator(mode="wrap")
    @classmethod
    def promises_fit_together(cls, data: Any, build: ModelWrapValidatorHandler[Self]) -> Self:
        return _with_faults(cls, data, build, promises.broken)


class Circuit(Part):
    """When calls through a connector are given a rest, and how they begin again (DECISIONS 1.5).

    It opens where, of at least `min_calls` calls of the last `window_seconds`, a share of `fault_ratio` met a fault
    of the connector itself. After `cooldown_seconds`, doubled with every further opening up to
    `max_cooldown_seconds`, `slots` trials at a time are made; `successes` of them close it. What had to wait is let
    go at `retries_per_second`, or `retry_share` of the traffic where that is more.
    """

    window_seconds: Annotated[int, Field(strict=True, ge=1, le=3600)] = 30
    min_calls: Annotated[int, Field(strict=True, ge=2, le=100)] = 10
    fault_ratio: Annotated[float, Field(ge=0.01, le=1)] = 0.5
    cooldown_seconds: Annotated[float, Field(ge=1, le=3600)] = 15
    max_cooldown_seconds: Annotated[float, Field(ge=1, le=86400)] = 300
    slots: Annotated[int, Field(strict=True, ge=1, le=10)] = 1
    successes: Annotated[int, Field(strict=True, ge=1, le=10)] = 2
    retry_share: Annotated[float, Field(ge=0.01, le=1)] = 0.2
    retries_per_second: Annotated[int, Field(strict=True, ge=1, le=1000)] = 10

    @model_validator(mode="after")
    def a_pause_has_room_to_grow(self) -> Circuit:
        if self.max_cooldown_seconds < self.cooldown_seconds:
            raise ValueError("max_cooldown_seconds is less than cooldown_seconds")
        return self


class Listing(Part):
    """How to list what a system did in an interval, so that effects which nobody admitted are found.

    Over http: a GET at `path` with `query` templates {since}, {until} (ISO 8601) and {cursor}; `items` is its list,
    and a record has its id, time and our reference (action id or key) at the three paths. `cursor` is the path of
    what asks for the next page. A webhook and a python connector are asked for `list_effects`.
    """

    path: Path | None = None
    query: dict[str, str] = Field(default_factory=dict, max_length=20)
    items: Path | None = None
    complete: Condition | None = None
    external_id: Path = "id"
    at: Path = "at"
    reference: Path = "reference"
    cursor: Path | None = None
    every_seconds: Annotated[int, Field(strict=True, ge=60, le=7 * 86400)] = 3600
    overlap_seconds: Annotated[int, Field(strict=True, ge=0, le=86400)] = 300
    max_pages: Annotated[int, Field(strict=True, ge=1, le=200)] = 20


class Connector(Part):
    """Where look-ups go. Requests leave only to `allow_hosts`; redirects are never followed (SEC-19).

    http: declared requests below `base_url`. webhook: signed messages to the host product's endpoint at `base_url`.
    python: an object that an installed package offers under `entry_point`, or else under the connector's name, in the
    group `steadyhand.connectors`. manual: nobody can be asked; a person attests.
    """

    kind: Literal["http", "webhook", "python", "manual"] = "http"
    base_url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s?#]+$", max_length=300)] | None = None
    allow_hosts: list[str] = Field(default_factory=list, max_length=20)
    timeout_seconds: Annotated[float, Field(gt=0, le=60)] = 10
    secret_header: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9\-]{1,80}$")] | None = None
    secret_name: Name | None = None
    entry_point: Name | None = None
    health: Path | None = None
    circuit: Circuit = Circuit()
    lists: Listing | None = None

    @model_validator(mode="after")
    def its_kind_can_be_reached(self) -> Connector:
        if self.kind in ("http", "webhook") and self.base_url is None:
            raise ValueError(f"{self.kind} needs base_url, the address of what is asked")
        if self.kind in ("python", "manual") and self.base_url is not None:
            raise ValueError(f"a {self.kind} connector has no base_url")
        if self.health is not None and self.base_url is None:
            raise ValueError("health is a path below base_url, which this connector has not")
        if self.kind != "python" and self.entry_point is not None:
            raise ValueError("entry_point is for a python connector")
        if self.lists is not None and self.kind == "manual":
            raise ValueError("a manual connector is never asked, so it lists nothing")
        if self.lists is not None and self.kind == "http" and not self.lists.path:
            raise ValueError("lists needs path, over http")
        return self


class Budgets(Part):
    """Ceilings, each enforced before the next unit of work. Costs are integer minor units.

    `turn_…` is what one turn is taken to use where its usage is missing (`unmeasured: estimate`); with `stop`, or
    where nothing says how much it may have been, a missing number stops the run (F104, ruling 7). What a turn had
    reserved stands in for a missing number in any case.
    """

    max_turns: Annotated[int, Field(strict=True, ge=1, le=10000)] = 30
    max_tool_calls: Annotated[int, Field(strict=True, ge=1, le=10000)] = 60
    max_attempts_per_step: Annotated[int, Field(strict=True, ge=1, le=100)] = 3
    max_elapsed_seconds: Annotated[int, Field(strict=True, ge=1, le=366 * 86400)] = 3600
    max_input_tokens: Minor | None = None
    max_output_tokens: Minor | None = None
    max_estimated_cost_minor_units: Minor | None = None
    max_same_answers: Annotated[int, Field(strict=True, ge=2, le=1000)] = 4
    unmeasured: Literal["estimate", "stop"] = "estimate"
    turn_input_tokens: Minor | None = None
    turn_output_tokens: Minor | None = None
    turn_cost_minor_units: Minor | None = None


class WorkingHours(Part):
    """When a team works: on these days, between these wall-clock times of its zone, not on holidays.

    `closes` 24:00 is midnight. An hour a day is the least.
    """

    time_zone: Annotated[str, StringConstraints(min_length=1, max_length=60)] = "UTC"
    days: list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]] = Field(
        default=["mon", "tue", "wed", "thu", "fri"], min_length=1, max_length=7
    )
    opens: Clock = "09:00"
    closes: Clock = "17:00"
    holidays: list[date] = Field(default_factory=list, max_length=366)

    @model_validator(mode="after")
    def there_are_hours(self) -> WorkingHours:
        if _minutes(self.opens) + 60 > _minutes(self.closes):
            raise ValueError("closes has to be an hour after opens at least, on the same day (24:00 is its end)")
        try:
            ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as wrong:
            raise ValueError("time_zone has to be a name such as Europe/Berlin") from wrong
        return self


def _minutes(clock: str) -> int:
    return int(clock[:2]) * 60 + int(clock[3:])


class Manifest(Part):
    """A workflow: immutable once registered; a change is a new version."""

    title: Text = ""
    description: Text = ""
    tools: list[Tool] = Field(min_length=1, max_length=200)
    connectors: dict[Name, Connector] = Field(default_factory=dict, max_length=50)
    budgets: Budgets = Budgets()
    deadline_seconds: Seconds | None = None
    required_effects: list[Name] = Field(default_factory=list, max_length=100)
    compensation_order: list[Name] = Field(default_factory=list, max_length=100)
    owner_team: Annotated[str, StringConstraints(min_length=1, max_length=80)] = "support"
    sla_seconds: Annotated[int, Field(strict=True, ge=60, le=30 * 86400)] = 3600
    sla_hours: WorkingHours | None = None
    sla_pauses: list[Pause] | None = None
    value_threshold_minor: Minor | None = None
    approval_seconds: Annotated[int, Field(strict=True, ge=60, le=30 * 86400)] | None = None
    approval_reminders: Reminders | None = None

    @model_validator(mode="wrap")
    @classmethod
    def names_resolve(cls, data: Any, build: ModelWrapValidatorHandler[Self]) -> Self:
        return _with_faults(cls, data, build, promises.loose)

    def tool(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)


def _with_faults(
    cls: type[Part],
    data: Any,
    build: Callable[[Any], M],
    faults: Callable[[dict[str, Any]], list[Broken]],
) -> M:
    """Build the model, and report the faults between its fields beside those within them, all in one answer."""
    found = [_line(place, text) for place, text in faults(data)] if isinstance(data, dict) else []
    try:
        built = build(data)
    except ValidationError as wrong:
        raise ValidationError.from_exception_data(cls.__name__, [*map(_again, wrong.errors()), *found]) from wrong
    if found:
        raise ValidationError.from_exception_data(cls.__name__, found)
    return built


def _line(place: Place, text: str) -> InitErrorDetails:
    return InitErrorDetails(type=PydanticCustomError("manifest", "{text}", {"text": text}), loc=place, input=None)


def _again(error: Any) -> InitErrorDetails:
    kind = PydanticCustomError(error["type"], "{text}", {"text": error["msg"]})
    return InitErrorDetails(type=kind, loc=error["loc"], input=None)
