"""Steadyhand for agents: an execution boundary around each tool call."""

from steadyhand.boundary import Boundary
from steadyhand.calls import Call, Tool, http_call
from steadyhand.contract import Manifest, Scope, StructuredError, Usage
from steadyhand.errors import (
    BusinessRule,
    InvalidInput,
    NeedsInput,
    NotSent,
    OutcomeUnknown,
    Problem,
    RateLimited,
    Refused,
    SteadyhandError,
    Stopped,
    Suspended,
    Unavailable,
    Unrecorded,
)
from steadyhand.run import Run

__all__ = [
    "Boundary",
    "BusinessRule",
    "Call",
    "InvalidInput",
    "Manifest",
    "NeedsInput",
    "NotSent",
    "OutcomeUnknown",
    "Problem",
    "RateLimited",
    "Refused",
    "Run",
    "Scope",
    "SteadyhandError",
    "Stopped",
    "StructuredError",
    "Suspended",
    "Tool",
    "Unavailable",
    "Unrecorded",
    "Usage",
    "http_call",
]
