"""The reference page of the agent API, made from its OpenAPI document; no script, so the strict policy holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase


@dataclass(frozen=True, slots=True)
class Field:
    """One line of a message: `kind` in words, `message` the name of the message it links to, or empty."""

    name: str
    kind: str
    required: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    name: str
    about: str
    fields: list[Field]


@dataclass(frozen=True, slots=True)
class Operation:
    """One line of the list; `takes` and `gives` name messages, or are empty."""

    method: str
    path: str
    title: str
    about: str
    open: bool
    parameters: list[Field]
    takes: str
    gives: str


class Reference(DocsBase):
    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        schema = api.get_openapi_schema()
        context = {
            "title": api.title,
            "version": api.version,
            "openapi_url": self.get_openapi_url(api, {}),
            "operations": operations(schema),
            "messages": messages(schema),
        }
        return render(request, "api/reference.html", context)


def operations(schema: dict[str, Any]) -> list[Operation]:
    """Every operation in the order of the document."""
    return [
        _operation(method.upper(), path, details)
        for path, methods in schema["paths"].items()
        for method, details in methods.items()
    ]


def messages(schema: dict[str, Any]) -> list[Message]:
    """Every message by name. A message without fields is a plain value and is described where it is used."""
    return [
        Message(name, _first_line(body.get("description", "")), _fields(body))
        for name, body in sorted(schema["components"]["schemas"].items())
        if "properties" in body
    ]


def _operation(method: str, path: str, details: dict[str, Any]) -> Operation:
    answers = details.get("responses", {})
    best = answers[min(answers)] if answers else {}
    return Operation(
        method=method,
        path=path,
        title=details["summary"],
        about=details.get("description", ""),
        open=not details.get("security"),
        parameters=[_parameter(each) for each in details["parameters"] if each["in"] == "query"],
        takes=_named(details.get("requestBody", {})),
        gives=_named(best),
    )


def _parameter(details: dict[str, Any]) -> Field:
    return Field(details["name"], _kind(details["schema"]), details["required"])


def _named(carrier: dict[str, Any]) -> str:
    schema = carrier.get("content", {}).get("application/json", {}).get("schema", {})
    return _message(schema)


def _fields(body: dict[str, Any]) -> list[Field]:
    required = body.get("required", [])
    return [Field(name, _kind(part), name in required, _message(part)) for name, part in body["properties"].items()]


def _message(schema: dict[str, Any]) -> str:
    """The message that a schema refers to, also as one of several or as the items of a list."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    inner = [
        *schema.get("anyOf", []),
        *schema.get("allOf", []),
        schema.get("items"),
        schema.get("additionalProperties"),
    ]
    return next((name for part in inner if isinstance(part, dict) and (name := _message(part))), "")


def _kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema or "allOf" in schema:
        return _message(schema)
    if "enum" in schema or "const" in schema:
        return " | ".join(map(str, schema.get("enum", [schema.get("const")])))
    if "anyOf" in schema:
        return " or ".join(_kind(part) for part in schema["anyOf"] if part.get("type") != "null")
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "any JSON")


def _first_line(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())
