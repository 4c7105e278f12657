"""The short way for agents: /api/v1 is answered here, before sessions, cookies and pages come in (SEC-10)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.urls import resolve

from console.api import problems

PREFIX = "/api/v1/"
REFERENCE = "/api/v1/docs"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


class Edge:
    """Middleware. Whatever happens below, an agent gets JSON, a request id and no page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        path = request.path_info
        if not path.startswith(PREFIX) or path == REFERENCE:
            return self.get_response(request)
        request.request_id = ident = request_id(request)  # type: ignore[attr-defined]
        response = _answer(request)
        response.headers["X-Request-Id"] = ident
        response.headers["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'"
        return response


def request_id(request: HttpRequest) -> str:
    """The sender's id for this request, if it is short and plain; else a new one."""
    given: str = request.META.get("HTTP_X_REQUEST_ID", "")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def _answer(request: HttpRequest) -> HttpResponse:
    try:
        request.get_host()
        found = resolve(request.path_info)
        response: HttpResponse = found.func(request, *found.args, **found.kwargs)
    except Exception as error:
        return problems.answer_for(request, error)
    return problems.not_allowed(response) if response.status_code == 405 else response
