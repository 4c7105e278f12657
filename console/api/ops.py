"""For whoever keeps the product running: is it alive, is it ready, and how long does an empty request take."""

from __future__ import annotations

from functools import cache

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router
from steadyhand.contract import Strict

from console.api.problems import DATABASE_AWAY

router = Router(auth=None)


class Pong(Strict):
    ok: bool = True


@router.get("/ping", response=Pong, summary="Measure the way here")
def ping(request: HttpRequest) -> HttpResponse:
    """Asks no database."""
    return HttpResponse(b'{"ok": true}', content_type="application/json")


def healthz(request: HttpRequest) -> HttpResponse:
    """Alive: this process answers. It asks nobody else, so a database that is away restarts nothing."""
    return HttpResponse("ok\n", content_type="text/plain")


def readyz(request: HttpRequest) -> JsonResponse:
    """Ready: the database answers and has every migration of this version. 503 says which of the two is missing."""
    reason = _not_ready()
    return JsonResponse({"ready": not reason, "reason": reason}, status=503 if reason else 200)


def _not_ready() -> str:
    try:
        applied = MigrationRecorder(connection).applied_migrations()
    except DATABASE_AWAY:
        return "the database cannot be reached"
    missing = _migrations() - set(applied)
    return f"{len(missing)} migrations are not applied: run manage.py migrate --database=owner" if missing else ""


@cache
def _migrations() -> frozenset[tuple[str, str]]:
    """Every migration that this version carries; files do not change under a running process."""
    return frozenset(MigrationLoader(None).disk_migrations)
