"""An open page says who is at its task."""

from __future__ import annotations

import uuid

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from console import access, presence
from recovery import panel
from recovery.rules.policy import LABELS
from runs import wall


@require_POST
@access.acts
def here(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """204 once it is known; 400 for what is no way to be at a task. It is no act: nothing of the task changes."""
    person = access.person_of(request)
    tenant_id = panel.tenant_of(task_id, person)
    if tenant_id is None:
        raise Http404
    doing, verb = request.POST.get("doing", ""), request.POST.get("verb", "")
    if doing not in (presence.LOOKING, presence.DECIDING) or (verb and verb not in LABELS):
        words = "`doing` is looking or deciding, and `verb` a verb of the task. Nothing was noted."
        return HttpResponse(words, status=400, content_type="text/plain; charset=utf-8")
    with wall.within(tenant_id, by="person"):
        presence.tell(tenant_id, task_id, person, doing, verb if doing == presence.DECIDING else "")
    return HttpResponse(status=204)
