"""Answers that come in an envelope: JSON-RPC and the results of MCP tools, and the statuses of gRPC (F085). Pure.

An envelope is a success of the transport; whether the tool did anything stands inside. MCP's `isError` is raised by
the tool while it runs, so for a write it says nothing about the effect: only a code that says so does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steadyhand.manifest import Tool
from steadyhand.paths import MISSING

from recovery.rules import error_names, foreign, identities
from recovery.rules.classified import (
    Before,
    Classified,
    credential_refused,
    limited,
    not_there,
    refused,
    unknown,
)

_PROTOCOL_REFUSALS = {
    -32600: "invalid_arguments",
    -32601: "unsupported_operation",
    -32602: "invalid_arguments",
}  # the server never started the tool; -32603 and the -32000s come from anywhere
_GRPC_REFUSALS = {
    "INVALID_ARGUMENT": "invalid_arguments",
    "OUT_OF_RANGE": "invalid_arguments",
    "UNIMPLEMENTED": "unsupported_operation",
    "PERMISSION_DENIED": "permission_denied",
    "FAILED_PRECONDITION": "business_rule_violation",
    "ALREADY_EXISTS": "business_rule_violation",
}


@dataclass(frozen=True)
class Opened:
    """What was in the envelope: the tool's result, or the error it carried (`error` is None for a success)."""

    result: Any = None
    error: Any = None
    protocol: bool = False


def opened(body: Any, tool: Tool) -> Opened:
    """Take a body out of its envelope: an error is seen in any transport, a result unwrapped where MCP is declared.

    So a tool whose contract describes the whole envelope keeps it, and never has its error taken for a result.
    """
    if isinstance(body, dict) and body.get("jsonrpc") == "2.0" and ("error" in body or "result" in body):
        if isinstance(body.get("error"), dict):
            return Opened(error=body["error"], protocol=True)
        inside = opened(body.get("result"), tool)
        return inside if inside.error is not None or tool.transport == "mcp" else Opened(body)
    if not _is_tool_result(body):
        return Opened(body)
    if body.get("isError") is True:
        return Opened(error=_structured(body))
    return Opened(_structured(body) if tool.transport == "mcp" else body)


def failure(found: Opened, tool: Tool, before: Before) -> Classified:
    """What an error in an envelope means."""
    code = found.error.get("code") if isinstance(found.error, dict) else None
    if found.protocol and isinstance(code, int) and code in _PROTOCOL_REFUSALS:
        return refused(_PROTOCOL_REFUSALS[code], f"The tool server refused the request ({code}).")
    named, known = error_names.family_of(found.error)
    declared = by_contract(found.error, tool, "The tool answered with an error.")
    if declared is not None:
        return declared
    detail = f"The tool answered with an error.{error_names.told(named)}"
    final = isinstance(found.error, dict) and found.error.get("retryable") is False
    if found.protocol or not named or (known is None and not final):
        return unknown(tool, detail)
    return by_family(known, found.error, tool, before, detail)


def by_family(
    known: error_names.Family | None, body: Any, tool: Tool, before: Before, detail: str, seconds: float | None = None
) -> Classified:
    """A refusal that the provider's own code explains."""
    match known:
        case "open":
            return unknown(tool, detail)
        case "limit":
            return limited(detail, seconds)
        case "credential":
            return credential_refused(tool, before, detail)
        case "absent":
            return not_there(tool, before, detail, body)
        case "key" if tool.idempotency.kind == "key":
            return Classified("unknown", "idempotency_key_conflict", detail=detail, key_conflict=True)
        case _:
            return refused(error_names.reason_of(known), detail, at=error_names.field_in(body))


def by_status_name(code: str, tool: Tool, before: Before) -> Classified:
    """A gRPC status other than OK. What is not surely said before the call was carried out leaves a write open."""
    named = foreign.name(code)
    detail = f"The provider answered {named}."
    declared = by_contract({"code": code}, tool, detail)
    if declared is not None:
        return declared
    match code:
        case "RESOURCE_EXHAUSTED":
            return limited(detail, None)
        case "UNAUTHENTICATED":
            return credential_refused(tool, before, detail)
        case "NOT_FOUND":
            return not_there(tool, before, detail)
        case _ if code in _GRPC_REFUSALS:
            return refused(_GRPC_REFUSALS[code], detail)
        case _:
            return unknown(tool, detail)


def by_contract(body: Any, tool: Tool, detail: str) -> Classified | None:
    """The classes of refusal that the contract names by the provider's own error code (F036, F047)."""
    code = next((one for one in error_names.codes(body) if one in tool.conflict_codes), None)
    if code is None:
        return None
    told = f"{detail}{error_names.told(code)}"
    match tool.conflict_codes[code]:
        case "already_done":
            external_id = identities.external_id(body, tool)
            return Classified("ok_valid", "already_in_desired_state", body, external_id, detail=told)
        case "key_conflict":
            return Classified("unknown", "idempotency_key_conflict", detail=told, key_conflict=True)
        case "version_conflict":
            return refused("precondition_failed", told, at=error_names.field_in(body))
        case _:
            return refused("business_rule_violation", told, at=error_names.field_in(body))


def _is_tool_result(body: Any) -> bool:
    """A result as MCP tools give it: a list of content blocks, and perhaps a flag and structured content."""
    if not isinstance(body, dict) or not isinstance(body.get("content"), list):
        return False
    blocks = all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in body["content"])
    return blocks and ("isError" in body or "structuredContent" in body or bool(body["content"]))


def _structured(body: dict[str, Any]) -> Any:
    """Structured content if there is any, else the JSON in the text blocks, else their text."""
    if body.get("structuredContent") is not None:
        return body["structuredContent"]
    texts = [block["text"] for block in body["content"] if isinstance(block.get("text"), str)]
    text = "\n".join(texts)
    parsed = foreign.parse(text)
    return text if parsed is MISSING else parsed
