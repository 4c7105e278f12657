"""Bulk operations: choose, freeze, start, suspend, resume, stop, and what came of each task."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console import access, filters, flashes, frame, live, looks
from console.access import Visit
from console.builders import bulk as build
from console.builders import selecting
from console.builders.bulk import Place, Totals
from console.builders.sent import Typed
from console.forms import BulkStartForm, FreezeForm, MarkForm
from console.pages.bulk import OperationPage
from console.pages.common import Flash, Link
from console.selections import KNOWS, Selection, Unreadable
from recovery.bulk_models import CLASSES
from recovery.models import BulkOperation
from recovery.rules import bulk as rules
from recovery.tasks import ring
from recovery.work import bulk as work
from recovery.work.bulk import NoSuchOperation, Refused, Wish

MOST_TYPED = 20_000
LIST_KNOWS = ("view", "tenant", "before")
ITEMS_KNOW = ("state", "kind", "after")


@require_safe
@access.page
def operations(request: HttpRequest, visit: Visit) -> HttpResponse:
    """What is under way, running ones first, or what has ended."""
    said = [*filters.unread(request.GET, LIST_KNOWS), *flashes.of(request)]
    return frame.show(request, visit, "bulk/list.html", build.listed(visit, request.GET, said), current="Bulk")


@require_http_methods(["GET", "HEAD", "POST"])
@access.acts
def new(request: HttpRequest) -> HttpResponse:
    """The selection that the address names: in words and counted, and on POST frozen."""
    verb = request.GET.get("verb", "reconcile")
    if verb not in rules.VERBS and verb not in rules.ONE_BY_ONE:
        raise Http404
    try:
        selection = Selection.read(request.GET)
    except Unreadable as wrong:
        return _problem(request, "This address cannot be read", str(wrong), status=400)
    return _freeze(request, verb, selection) if request.method == "POST" else _new(request, verb, selection)


def _new(
    request: HttpRequest, verb: str, selection: Selection, error: str = "", *, status: int = 200
) -> HttpResponse:
    with access.visiting(request) as visit:
        said = [*filters.unread(request.GET, KNOWS), *flashes.of(request)]
        page = selecting.page(visit, verb, selection, error=error, flashes=said)
        return access.drawn(frame.show(request, visit, "bulk/new.html", page, current="Bulk", status=status))


def _freeze(request: HttpRequest, verb: str, selection: Selection) -> HttpResponse:
    form = FreezeForm(request.POST)
    if not form.is_valid():
        return _problem(request, "The form is broken", "It lacks its marks. Nothing was frozen.", status=400)
    chosen = form.cleaned_data["versions"]
    with access.visiting(request) as visit:
        earlier = build.rows_of(visit).filter(key=form.cleaned_data["key"], by=visit.person, verb=verb).first()
        if earlier is not None:
            return _to(earlier.pk)  # a second click gets the first one's list, whatever has changed since (U07)
        what = selecting.found(visit, selection)
        tenant_id = selecting.tenant_of(what)
        if tenant_id is None or selecting.why_not(visit, verb, selection, what):
            return _new(request, verb, selection, status=422)
        fault = selecting.version_fault(what, chosen)
        if fault:
            return _new(request, verb, selection, fault, status=422)
        wish = Wish(
            verb=verb, task_ids=selecting.ids(visit, selection, chosen), words=selection.words(visit),
            address=selection.address(), key=form.cleaned_data["key"],
            versions=selecting.version_words(what, chosen),
        )  # fmt: skip
    try:
        operation = work.freeze(
            access.person_of(request), tenant_id, wish, ring=ring, request_id=access.request_id(request)
        )
    except Refused as refused:
        return _problem(request, "Nothing was frozen", str(refused), status=422)
    return _to(operation.pk)


@require_safe
@access.page
def operation(request: HttpRequest, visit: Visit, operation_id: uuid.UUID) -> HttpResponse:
    """One operation with its totals, its dry run and its items."""
    found = _or_404(visit, operation_id)
    said = [*filters.unread(request.GET, ITEMS_KNOW), *flashes.of(request)]
    page = _page(visit, found, _place(request), Typed(), said)
    return frame.show(request, visit, "bulk/detail.html", page, current="Bulk")


@require_safe
@access.page
def region(request: HttpRequest, visit: Visit, operation_id: uuid.UUID) -> HttpResponse:
    """The live part of it."""
    found, place = _or_404(visit, operation_id), _place(request)
    count = build.totals(found)
    tag = _etag(visit, found, place, count)
    return live.answer(
        request, visit, tag,
        lambda: frame.part(request, visit, "bulk/_body.html", _page(visit, found, place, Typed(), [], count)),
    )  # fmt: skip


@require_POST
@access.acts
def start(request: HttpRequest, operation_id: uuid.UUID) -> HttpResponse:
    """Let it run: with a reason, a canary and a rate."""
    found = _seen(request, operation_id)
    form = BulkStartForm(found.verb, request.POST)
    if form.broken():
        return _problem(request, "The form is broken", "It lacks its marks. Nothing was started.", status=400)
    if not form.is_valid():
        return _again(request, operation_id, form)
    try:
        work.start(
            access.person_of(request), found.tenant_id, operation_id, form.pace(),
            version=form.cleaned_data["version"], key=form.cleaned_data["key"], ring=ring,
            request_id=access.request_id(request),
        )  # fmt: skip
    except Refused as refused:
        if refused.field not in form.fields:
            return _refused(request, operation_id, refused)
        form.add_error(refused.field, str(refused))
        return _again(request, operation_id, form)
    return _to(operation_id)


@require_POST
@access.acts
def suspend(request: HttpRequest, operation_id: uuid.UUID) -> HttpResponse:
    """Begin nothing more for now."""
    return _moved(request, operation_id, work.suspend)


@require_POST
@access.acts
def resume(request: HttpRequest, operation_id: uuid.UUID) -> HttpResponse:
    """Go on with what is pending."""
    return _moved(request, operation_id, work.resume, ring=ring)


@require_POST
@access.acts
def stop(request: HttpRequest, operation_id: uuid.UUID) -> HttpResponse:
    """End it; nothing is undone."""
    return _moved(request, operation_id, work.stop)


def _moved(
    request: HttpRequest, operation_id: uuid.UUID, move: Callable[..., BulkOperation], **more: object
) -> HttpResponse:
    form, found = MarkForm(request.POST), _seen(request, operation_id)
    if form.broken():
        return _problem(request, "The form is broken", "It lacks its marks. Nothing was changed.", status=400)
    told = {"version": form.cleaned_data["version"], "key": form.cleaned_data["key"]}
    try:
        move(
            access.person_of(request), found.tenant_id, operation_id, **told, **more,
            request_id=access.request_id(request),
        )  # fmt: skip
    except Refused as refused:
        return _refused(request, operation_id, refused)
    except NoSuchOperation:
        raise Http404 from None
    return _to(operation_id)


def _refused(request: HttpRequest, operation_id: uuid.UUID, refused: Refused) -> HttpResponse:
    """Somebody was faster, and the page says who; or the right is missing."""
    if refused.field == "right":
        return _problem(request, "You may not do this", f"{refused} Nothing was changed.", status=403)
    said = Flash(looks.NOTICE["race"], "Nothing was changed.", str(refused), alert=True, focus=True)
    return _show(request, operation_id, Typed(), [said], status=409)


def _again(request: HttpRequest, operation_id: uuid.UUID, form: BulkStartForm) -> HttpResponse:
    typed = Typed(
        values={name: form.data.get(name, "")[:MOST_TYPED] for name in form.fields},
        errors={name: str(errors[0]) for name, errors in form.errors.items() if errors},
    )
    return _show(request, operation_id, typed, [], status=422)


def _show(
    request: HttpRequest, operation_id: uuid.UUID, typed: Typed, said: list[Flash], *, status: int
) -> HttpResponse:
    with access.visiting(request) as visit:
        page = _page(visit, _or_404(visit, operation_id), Place(), typed, said)
        return access.drawn(frame.show(request, visit, "bulk/detail.html", page, current="Bulk", status=status))


def _seen(request: HttpRequest, operation_id: uuid.UUID) -> BulkOperation:
    with access.visiting(request) as visit:
        return _or_404(visit, operation_id)


def _or_404(visit: Visit, operation_id: uuid.UUID) -> BulkOperation:
    found = build.rows_of(visit).filter(pk=operation_id).first()
    if found is None:
        raise Http404
    return found


def _place(request: HttpRequest) -> Place:
    """Which items the address asks for; Http404 for a state or a class that does not exist."""
    state, kind, after = (request.GET.get(name, "") for name in ITEMS_KNOW)
    if state not in ("", *build.STATES) or kind not in ("", *CLASSES) or not (after or "0").isdecimal():
        raise Http404
    return Place(state, kind, min(int(after or "0"), rules.MOST_ITEMS))


def _page(
    visit: Visit, found: BulkOperation, place: Place, typed: Typed, said: list[Flash], count: Totals | None = None
) -> OperationPage:
    count = count or build.totals(found)
    url = reverse("bulk_live", args=[found.pk]) + place.address(after=place.after)
    region = live.live(url, _etag(visit, found, place, count), visit, busy=found.state == "running")
    return build.page(visit, found, place, count, live=region, typed=typed, flashes=said)


def _etag(visit: Visit, found: BulkOperation, place: Place, count: Totals) -> str:
    minutes = live.minutes_since(found.changed_at, visit.now) if found.ended_at is None else 0
    return live.etag_of(visit, "bulk", minutes, *build.version(found, place, count))


def _to(operation_id: uuid.UUID) -> HttpResponse:
    response = redirect("bulk_operation", operation_id)
    response.status_code = 303
    return response


def _problem(request: HttpRequest, title: str, text: str, *, status: int) -> HttpResponse:
    back = Link("Back to the queue", reverse("queue"))
    template = "403.html" if status == 403 else "400.html"
    return render(request, template, {"problem": {"title": title, "text": text, "action": back}}, status=status)
