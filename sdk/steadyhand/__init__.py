"""Steadyhand for agents: an execution boundary around each tool call."""

from steadyhand.aio import AsyncBoundary, AsyncRun
from steadyhand.boundary import Boundary
from steadyhand.calls import Call, Tool
from steadyhand.contract import Manifest, Scope, StructuredError, Usage
from steadyhand.errors import (
    BusinessRule,
    Cancelled,
    CredentialsRejected,
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
from steadyhand.http_calls import async_http_call, http_call
from steadyhand.run import Run

__all__ = [
    "AsyncBoundary",
    "AsyncRun",
    "Boundary",
    "BusinessRule",
    "Call",
    "Cancelled",
    "CredentialsRejected",
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
    "async_http_call",
    "http_call",
]
