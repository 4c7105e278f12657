"""Where providers send what they have to tell: no token, but a signature over the raw body (SEC-21)."""

from __future__ import annotations

from typing import Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router
from steadyhand.contract import Strict

from console.api import parsing
from console.api.parsing import BODY, Fault, Refused
from console.api.problems import problem
from recovery import callbacks
from recovery.rules.signatures import Signed

router = Router(auth=None)


class Taken(Strict):
    """What became of a message. A provider has nothing to send again after any of these."""

    status: Literal["used", "waiting", "duplicate", "ignored"]


class CallbackRequest(HttpRequest):
    """A request that came through the edge, which gave it an id."""

    request_id: str


@router.post("/callbacks/{tenant}/{source}", response={200: Taken, 202: Taken}, summary="Take a provider's callback")
def receive(request: CallbackRequest, tenant: str, source: str) -> HttpResponse:
    """Signed as Standard Webhooks say. 202 while the call that it names is not known; a repeat changes nothing."""
    body = parsing.content(request)
    signed = Signed(*(request.headers.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature")))
    try:
        status = callbacks.receive(tenant, source, signed, body, request_id=request.request_id)
    except callbacks.NotVerified:
        return problem(401, detail="The message cannot be verified.")
    except callbacks.Unreadable as wrong:
        raise Refused(400, Fault(BODY, "send a JSON object")) from wrong
    told = Taken(status=status)
    return HttpResponse(
        told.model_dump_json(), status=202 if status == "waiting" else 200, content_type="application/json"
    )
