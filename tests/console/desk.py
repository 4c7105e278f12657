"""What a test of a verb does in a browser: open its sheet, fill it in, and read what the answer says."""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpResponse
from django.test import Client

from recovery.models import Decision
from runs import wall
from runs.models import Event
from tests.factories import Case

PATHS = {"top_up": "top-up"}


def address(case: Case, verb: str = "") -> str:
    return f"/tasks/{case.task().pk}/{PATHS.get(verb, verb) + '/' if verb else ''}"


def sheet(client: Client, case: Case, verb: str, **typed: str) -> dict[str, str]:
    """The form of a verb's sheet as a browser would post it, with the first reason code chosen."""
    response = client.get(address(case, verb))
    assert response.status_code == 200, response.content[:300]
    html = response.content.decode()
    codes = re.findall(r'<option value="(\w+)"', html[html.index('name="reason_code"') :])
    typed_in = dict(re.findall(r'<input id="f-\w+" name="(\w+)" value="([^"]*)"', html))
    marks = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', html[html.index('id="sheet"') :]))
    return {**marks, **typed_in, "reason_code": codes[0], "reason": "", **typed}


def press(client: Client, case: Case, verb: str, **typed: str) -> HttpResponse:
    """Open the sheet and send it."""
    return client.post(address(case, verb), sheet(client, case, verb, **typed))


def decided(case: Case, **lookup: Any) -> list[Decision]:
    with wall.within(case.tenant.pk):
        return list(Decision.objects.filter(run_id=case.run_id, **lookup).select_related("by"))


def refusals(case: Case) -> list[Event]:
    with wall.within(case.tenant.pk):
        return list(Event.objects.filter(run_id=case.run_id, kind="refused", actor_kind="person"))


def said(response: HttpResponse) -> str:
    """What a reader sees, without tags."""
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))
    return text.replace("&#x27;", "'").replace("&quot;", '"')
