"""Every refusal as application/problem+json (RFC 9457): a sentence, and each fault with its field and remedy."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable
from http import HTTPStatus

import psycopg
import structlog
from django.core.exceptions import SuspiciousOperation
from django.db import InterfaceError, OperationalError, connection
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError
from ninja.errors import ValidationError as ParametersWrong
from steadyhand.identity import BadInput

from console.api.parsing import Fault, Refused
from console.api.remedies import remedy
from recovery.intake import Conflict, NotAuthenticated, NotFound

log = structlog.get_logger(__name__)

DATABASE_AWAY = (OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError)
RETRY_AFTER_SECONDS = 2
MAX_LISTED = 100

_DETAILS = {
    400: "The request cannot be read.",
    401: "Send a valid token as Authorization: Bearer <token>.",
    404: "There is no such thing here.",
    405: "This address does not take that method.",
    411: "The request cannot be read.",
    413: "The body is too long.",
    415: "The body is not JSON.",
    422: "The request is not acceptable as it is.",
    503: "The record cannot be reached. Nothing is known to have been written: ask again.",
}


def problem(status: int, *, detail: str = "", faults: Iterable[Fault] = (), **extra: str) -> HttpResponse:
    """A refusal. `extra` members stand beside the standard ones."""
    listed = list(faults)
    said = detail or _DETAILS[status]
    if len(listed) > MAX_LISTED:
        said = f"{said} The first {MAX_LISTED} of {len(listed)} faults are listed."
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": said,
        "errors": [fault._asdict() for fault in listed[:MAX_LISTED]],
        **extra,
    }
    return HttpResponse(json.dumps(body), status=status, content_type="application/problem+json")


def answer_for(request: HttpRequest, error: Exception) -> HttpResponse:
    """The problem that an exception comes to. What nobody foresaw is logged under an id, and only the id is told."""
    match error:
        case Refused():
            return problem(error.status, faults=error.faults)
        case BadInput():
            return problem(422, faults=[Fault(_dotted(error.field), error.remedy)])
        case NotAuthenticated() | AuthenticationError():
            response = problem(401)
            response.headers["WWW-Authenticate"] = 'Bearer realm="steadyhand"'
            return response
        case NotFound():
            return problem(404, detail=str(error))
        case Http404():
            return problem(404)
        case Conflict():
            return problem(409, detail=str(error))
        case ParametersWrong():
            return _parameters(error)
        case SuspiciousOperation():
            return problem(400)
    return _away(error) if isinstance(error, DATABASE_AWAY) or _refuses_writes(error) else _unforeseen(request, error)


def _refuses_writes(error: Exception) -> bool:
    """A database that was set to take no writes is as good as away: no intent, so no call (F067)."""
    return isinstance(error.__cause__ or error, psycopg.errors.ReadOnlySqlTransaction)


def install(api: NinjaAPI) -> None:
    """Answer every exception below `api` with a problem."""
    for kind in (Exception, Http404, AuthenticationError, ParametersWrong):
        api.add_exception_handler(kind, answer_for)  # type: ignore[arg-type]  # ninja never hands over a class


def not_allowed(refused: HttpResponse) -> HttpResponse:
    """A 405 that keeps its Allow header."""
    response = problem(405)
    response.headers["Allow"] = refused.headers.get("Allow", "")
    return response


def _parameters(error: ParametersWrong) -> HttpResponse:
    """A path id that is none names nothing, as a foreign one does; other parameters are explained."""
    places = [(item["loc"], item) for item in error.errors]
    if any(place[0] == "path" and place[-1].endswith("_id") for place, _ in places):
        return problem(404)
    return problem(422, faults=[Fault(".".join(map(str, place[1:])), remedy(item)) for place, item in places])


def _away(error: Exception) -> HttpResponse:
    log.warning("database away", kind=type(error).__name__)
    # The hot statements go round Django's cursor, which would have noted this: look before the next use.
    connection.errors_occurred = True
    response = problem(503)
    response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


def _unforeseen(request: HttpRequest, error: Exception) -> HttpResponse:
    ident = getattr(request, "request_id", "") or uuid.uuid4().hex
    log.error("unforeseen error", request_id=ident, exc_info=error)
    return problem(500, detail="This is our fault. Tell the operator this request id.", request_id=ident)


def _dotted(field: str) -> str:
    return re.sub(r"\[(\d+)\]", r".\1", field)
