"""What the error codes that providers use mean, by their usual names; and where in a body they stand. Pure.

Only names whose meaning is that nothing was done are families of refusals. A name that speaks of an accident, and
any that nobody knows, leaves a write's outcome open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from steadyhand.paths import MISSING, dig

from recovery.rules import foreign

Family = Literal["absent", "credential", "permission", "limit", "arguments", "key", "open"]

_CODE_PATHS = (
    "code", "error", "error.code", "error.type", "error_code", "errorCode", "type", "errors.0.code",
    "errors.0.extensions.code", "error.status", "reason", "status", "state",
)  # fmt: skip
_FIELD_PATHS = ("error.field", "field", "error.param", "param", "errors.0.field", "errors.0.param")
MAX_PARTS = 5
_SHOWN = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{1,39}")
_CODE = re.compile(r"[\w.:/\-]{1,100}")
_FAMILIES: tuple[tuple[Family, re.Pattern[str]], ...] = (
    ("key", re.compile(r"idempoten\w*_(body_|payload_|request_|key_|parameter_)*"
                       r"(mismatch|conflict|reuse\w*|already_used|error)|idempotent_parameter_mismatch")),
    ("open", re.compile(r"(^|_)(internal|timeout|timed_out|unavailable|unknown|aborted|cancell?ed|deadline|data_loss"
                        r"|server_error|bad_gateway|partial\w*|pending|processing|in_progress|queued|running|accepted)(_|$)")),
    ("limit", re.compile(r"rate_?limit\w*|throttl\w*|too_many_requests|slow_down|resource_exhausted")),
    ("credential", re.compile(r"(^|_)(unauth(enticated|orized)|not_authed|invalid_(auth|token|credentials?|client)"
                              r"|(token|credentials?|session)_(expired|revoked|invalid)|expired_token)(_|$)")),
    ("permission", re.compile(r"(^|_)(forbidden|access_denied|permission_denied|missing_scope"
                              r"|insufficient_(scope|permissions?))(_|$)")),
    ("absent", re.compile(r"(^|_)(not_found|no_such_\w+|does_not_exist)(_|$)")),
    ("arguments", re.compile(r"(^|_)(invalid_(arguments?|params?|parameters?|input|request)|validation\w*"
                             r"|missing_(field|parameter|argument)|bad_request)(_|$)")),
)  # fmt: skip
_REASONS: dict[Family, str] = {
    "permission": "permission_denied",
    "arguments": "invalid_arguments",
}


def family(code: str) -> Family | None:
    """The family of an error code, in whatever case it is written; None for a code nobody knows, and for prose."""
    if not _CODE.fullmatch(code):
        return None
    plain = _plain(code)
    return next((name for name, pattern in _FAMILIES if pattern.search(plain)), None)


def family_of(body: Any) -> tuple[str, Family | None]:
    """The first known code in a body with its family; else its first code, with None."""
    named = list(codes(body))
    for code in named:
        known = family(code)
        if known is not None:
            return code, known
    return (named[0], None) if named else ("", None)


def reason_of(known: Family | None) -> str:
    """The reason of a refusal that is none of the families with a rule of their own."""
    return _REASONS.get(known, "business_rule_violation") if known else "business_rule_violation"


def codes(body: Any) -> Iterator[str]:
    """The error codes that a body carries, in the usual places."""
    for path in _CODE_PATHS:
        value = dig(body, path)
        if value is not MISSING and isinstance(value, (str, int)) and not isinstance(value, bool):
            yield str(value)


def shown(*found: Any) -> str:
    """The first text that looks like a code, for the model and for people: a short word, never prose."""
    return next((text for text in found if isinstance(text, str) and _looks_like_a_code(text)), "")


def _looks_like_a_code(text: str) -> bool:
    return _SHOWN.fullmatch(text) is not None and _plain(text).count("_") < MAX_PARTS


def field_in(body: Any) -> str:
    """The field at fault that a body names, fit to be stored."""
    named = (value for path in _FIELD_PATHS if isinstance(value := dig(body, path), str))
    return foreign.name(next(named, ""))


def told(code: str) -> str:
    """A sentence that names the provider's own code, where it has one."""
    return f" Its code is {foreign.name(code)}." if code else ""


def _plain(code: str) -> str:
    """`RefundWindowExpired`, `refund-window-expired` and `REFUND_WINDOW_EXPIRED` alike."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", code)
    return re.sub(r"[^a-z0-9]+", "_", words.lower())
