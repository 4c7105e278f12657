"""Registers the edge as a Django app."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "console"
    label = "console"

    def ready(self) -> None:
        """Every process that may ring for a worker knows the broker: the web server and commands too."""
        import console.celery  # noqa: F401
