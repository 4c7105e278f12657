"""Registers `runs` as a Django app."""

from django.apps import AppConfig
from django.conf import settings

from runs import redact


class RunsConfig(AppConfig):
    name = "runs"
    label = "runs"

    def ready(self) -> None:
        redact.tell_apart_by(settings.TOKEN_PEPPER.encode())
