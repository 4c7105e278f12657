"""The page behind a requester's link: one question, answered once, by whoever has the link. It opens no session."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from console import access, limits
from console.builders import asking
from console.forms import AnswerForm
from recovery.rules.questions import Unfit
from recovery.work import inputs

MOST_A_MINUTE = 30
CLOSED = {
    "title": "This link is no longer good",
    "text": "It works once and for a limited time. Ask whoever sent it to you for a new one. Nothing was sent.",
}
TOO_OFTEN = {"title": "Too many tries", "text": "Wait a minute and open the link again. Nothing was sent."}


@sensitive_post_parameters("answer")
@require_http_methods(["GET", "HEAD", "POST"])
def answer(request: HttpRequest, link: str) -> HttpResponse:
    """Shows the question; a POST answers it. Every link that is not good gets the same 404."""
    if not limits.within(request, "answer", most=MOST_A_MINUTE):
        return _problem(request, TOO_OFTEN, 429)
    try:
        asked = inputs.read(link)
        if request.method != "POST":
            return _form(request, asked, status=200)
        return _answered(request, link, asked)
    except inputs.Closed:
        return _problem(request, CLOSED, 404)


def _answered(request: HttpRequest, link: str, asked: inputs.Asked) -> HttpResponse:
    form = AnswerForm(request.POST)
    typed = request.POST.get("answer", "")[:20_000]
    if not form.is_valid():
        return _form(request, asked, typed=typed, error=str(form.errors["answer"][0]), status=422)
    try:
        inputs.answer(link, form.cleaned_data["answer"], request_id=access.request_id(request))
    except Unfit as wrong:
        return _form(request, asked, typed=typed, error=str(wrong), status=422)
    return render(request, "answer/thanks.html", {"by": asked.by})


def _form(
    request: HttpRequest, asked: inputs.Asked, *, typed: str = "", error: str = "", status: int
) -> HttpResponse:
    page = asking.question(asked, typed=typed, error=error)
    return render(request, "answer/form.html", {"page": page}, status=status)


def _problem(request: HttpRequest, problem: dict[str, str], status: int) -> HttpResponse:
    return render(request, "answer/closed.html", {"problem": problem}, status=status)
