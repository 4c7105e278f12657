"""The verbs, one address each: GET shows the sheet, POST asks recovery to do it. Nothing is decided here."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from console import access, flashes, frame, looks
from console.builders import asking, confirm
from console.builders.sent import Typed
from console.forms import CommentForm, MarkForm, VerbForm
from console.pages.common import Flash, Link
from console.views import tasks
from recovery.models import Decision
from recovery.rules.policy import LABELS
from recovery.tasks import ring
from recovery.work import decisions
from recovery.work import tags as tagging
from recovery.work.decisions import NoSuchTask, Order, Overtaken, Refused, Unusable

MOST_TYPED = 20_000
"""Characters of a refused text that the form keeps; the limits of the fields are far below."""
Do = Callable[[Order], Decision]
Answered = Callable[[HttpRequest, uuid.UUID, str, Decision], HttpResponse]
sheet_or_send = require_http_methods(["GET", "HEAD", "POST"])


@sheet_or_send
@access.acts
def reconcile(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Check what happened: orders a look-up; a worker makes it."""
    return _confirmed(request, task_id, "reconcile", partial(decisions.reconcile, ring=ring))


@sheet_or_send
@access.acts
def approve(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Agree to exactly this call, or be the second person behind a statement."""
    return _confirmed(request, task_id, "approve", decisions.approve)


@sheet_or_send
@access.acts
def reject(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Refuse what waits for an approval."""
    return _confirmed(request, task_id, "reject", decisions.reject)


@sheet_or_send
@access.acts
def replay(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """One more try of a call that had used all of its own."""
    return _confirmed(request, task_id, "replay", decisions.replay)


@sheet_or_send
@access.acts
def discard(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Give a dead letter up for good."""
    return _confirmed(request, task_id, "discard", decisions.discard)


@sheet_or_send
@access.acts
def top_up(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Raise the budget that stopped the run, once."""
    return _confirmed(request, task_id, "top_up", decisions.top_up)


@sheet_or_send
@access.acts
def attest(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Vouch for what happened, with a reference."""
    return _confirmed(request, task_id, "attest", decisions.attest)


@sheet_or_send
@access.acts
def compensate(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Undo what the run did."""
    return _confirmed(request, task_id, "compensate", decisions.compensate)


@sheet_or_send
@access.acts
def waive(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Accept what stays of an effect that was to be undone."""
    return _confirmed(request, task_id, "waive", decisions.waive)


@sheet_or_send
@access.acts
def retry(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Let exactly the same call be sent again."""
    return _confirmed(request, task_id, "retry", decisions.retry)


@sheet_or_send
@access.acts
def resume(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Let the run go on from the last proven state."""
    return _confirmed(request, task_id, "resume", decisions.resume)


@sheet_or_send
@access.acts
def cancel(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """End the run; what is unknown keeps its task."""
    return _confirmed(request, task_id, "cancel", decisions.cancel)


@sheet_or_send
@access.acts
def request_input(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Make a link for the requester; the answer shows it, this once."""
    return _confirmed(request, task_id, "request_input", decisions.request_input, done=_link)


@sheet_or_send
@access.acts
def provide_input(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Say what the requester told a colleague."""
    return _confirmed(request, task_id, "provide_input", decisions.provide_input)


@sheet_or_send
@access.acts
def assign(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Offer the task to a colleague, or give it back to the team."""
    return _confirmed(request, task_id, "assign", decisions.assign)


@sheet_or_send
@access.acts
def decline(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Do not take over what a colleague offers."""
    return _confirmed(request, task_id, "decline", decisions.decline)


@sheet_or_send
@access.acts
def snooze(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Put the task off until a time."""
    return _confirmed(request, task_id, "snooze", decisions.snooze)


@sheet_or_send
@access.acts
def reopen(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Ask a resolved question again."""
    return _confirmed(request, task_id, "reopen", decisions.reopen)


@require_POST
@access.acts
def claim(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Take the task, or hold it for longer."""
    return _at_once(request, task_id, "claim", decisions.claim, MarkForm(request.POST))


@require_POST
@access.acts
def accept(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Take over what a colleague offers."""
    return _at_once(request, task_id, "accept", decisions.accept, MarkForm(request.POST))


@require_POST
@access.acts
def withdraw(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Take the offer of a task back."""
    return _at_once(request, task_id, "withdraw", decisions.withdraw, MarkForm(request.POST))


@require_POST
@access.acts
def release(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Give the task back to the queue."""
    return _at_once(request, task_id, "release", decisions.release, MarkForm(request.POST))


@require_POST
@access.acts
def comment(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Leave a note for colleagues."""
    return _at_once(request, task_id, "comment", decisions.comment, CommentForm(request.POST))


@require_POST
@access.acts
def tags(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """Put the tag in `add` on the task, or take the one in `remove` off."""
    person, request_id = access.person_of(request), access.request_id(request)
    put, word = ("remove" not in request.POST), request.POST.get("remove") or request.POST.get("add", "")
    try:
        (tagging.add if put else tagging.remove)(task_id, person, word[:MOST_TYPED], request_id=request_id)
    except NoSuchTask:
        raise Http404 from None
    except Refused as refused:
        if refused.rule == "role":
            return _refused(request, task_id, str(refused))
        said = Flash(looks.NOTICE["refused"], str(refused), "Nothing was changed.", alert=True)
        return _task_again(request, task_id, said, status=422)
    return _back(task_id)


# --- a verb with a sheet --------------------------------------------------------------------------------------


def _confirmed(
    request: HttpRequest, task_id: uuid.UUID, verb: str, do: Do, *, done: Answered | None = None
) -> HttpResponse:
    if request.method != "POST":
        return _sheet(request, task_id, verb, Typed(), None, status=200)
    form = VerbForm(verb, request.POST)
    if form.broken():
        return _broken(request)
    if not form.is_valid():
        return _sheet(request, task_id, verb, _typed(form), None, status=422)
    try:
        decision = do(_order(request, task_id, form))
    except NoSuchTask:
        raise Http404 from None
    except Refused as refused:
        return _refused(request, task_id, str(refused))
    except Unusable as wrong:
        form.add_error(wrong.field, str(wrong))
        return _sheet(request, task_id, verb, _typed(form), None, status=422)
    except Overtaken as late:
        return _sheet(request, task_id, verb, _typed(form), _overtaken(late), status=409)
    return (done or _done)(request, task_id, verb, decision)


def _sheet(
    request: HttpRequest, task_id: uuid.UUID, verb: str, typed: Typed, flash: Flash | None, *, status: int
) -> HttpResponse:
    """The sheet with fresh marks; a verb that is blocked shows its sentence in the button's place."""
    with access.visiting(request) as visit:
        seen = tasks.seen_or_404(visit, task_id)
        answer = seen.panel.verb(verb)
        if answer.rule == "role":
            return _refused(request, task_id, answer.sentence)
        page = confirm.page(seen, answer, typed=typed, flash=flash)
        return frame.show(request, visit, "task/confirm.html", page, status=status)


def _typed(form: VerbForm) -> Typed:
    return Typed(
        values={name: form.data.get(name, "")[:MOST_TYPED] for name in form.fields},
        errors={name: str(errors[0]) for name, errors in form.errors.items() if errors},
    )


# --- a verb that is sent at once ------------------------------------------------------------------------------


def _at_once(request: HttpRequest, task_id: uuid.UUID, verb: str, do: Do, form: MarkForm) -> HttpResponse:
    if form.broken():
        return _broken(request)
    if not form.is_valid():
        words = str(next(iter(form.errors.values()))[0])
        said = Flash(looks.NOTICE["refused"], words, alert=True)
        return _task_again(request, task_id, said, status=422, draft=form.data.get("text", "")[:MOST_TYPED])
    try:
        decision = do(_order(request, task_id, form))
    except NoSuchTask:
        raise Http404 from None
    except Refused as refused:
        return _refused(request, task_id, str(refused))
    except Overtaken as late:
        return _task_again(request, task_id, _overtaken(late), status=409)
    return _done(request, task_id, verb, decision)


def _task_again(
    request: HttpRequest, task_id: uuid.UUID, flash: Flash, *, status: int, draft: str = ""
) -> HttpResponse:
    """The task with a notice above it; `draft` is the comment that was typed and not taken."""
    with access.visiting(request) as visit:
        return tasks.show(request, visit, tasks.seen_or_404(visit, task_id), [flash], status=status, draft=draft)


# --- what every verb answers ----------------------------------------------------------------------------------


def _order(request: HttpRequest, task_id: uuid.UUID, form: MarkForm) -> Order:
    return form.order(task_id, access.person_of(request), access.request_id(request))


def _done(request: HttpRequest, task_id: uuid.UUID, verb: str, decision: Decision) -> HttpResponse:
    """Back to the task, which shows what is known. A check says where it stands there, so nothing is said twice."""
    if decision.state == "done" and decision.verb == verb:
        flashes.leave(request, "info", f"Recorded: {LABELS[verb].lower()}.", decision.result)
    return _back(task_id)


def _back(task_id: uuid.UUID) -> HttpResponse:
    response = redirect("task", task_id)
    response.status_code = 303
    return response


def _link(request: HttpRequest, task_id: uuid.UUID, verb: str, decision: Decision) -> HttpResponse:
    """The link to the requester, once, and whether mail took it to them; asked for again, only the task."""
    link = asking.link_of(decision)
    if link is None:
        return _done(request, task_id, verb, decision)
    address = request.build_absolute_uri(reverse("answer", args=[link]))
    with access.visiting(request) as visit:
        task = tasks.seen_or_404(visit, task_id).task
        requester, by = task.run.requester, visit.named(task.tenant_id)
    mailed = asking.mail(requester, by, address)
    with access.visiting(request) as visit:
        page = asking.page(tasks.seen_or_404(visit, task_id), address, mailed)
        return frame.show(request, visit, "task/link.html", page)


def _refused(request: HttpRequest, task_id: uuid.UUID, sentence: str) -> HttpResponse:
    back = Link("Back to the task", reverse("task", args=[task_id]))
    problem = {"title": "You may not do this now", "text": f"{sentence} Nothing was sent.", "action": back}
    return render(request, "403.html", {"problem": problem}, status=403)


def _broken(request: HttpRequest) -> HttpResponse:
    problem = {
        "title": "The form is broken",
        "text": "It lacks the marks of the page that it stood on. Nothing was recorded and nothing was sent.",
    }
    return render(request, "400.html", {"problem": problem}, status=400)


def _overtaken(late: Overtaken) -> Flash:
    return Flash(
        looks.NOTICE["race"], "Nothing was sent: somebody or something was faster.", str(late), alert=True, focus=True
    )
