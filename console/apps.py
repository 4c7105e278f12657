"""Registers the edge as a Django app."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "console"
    label = "console"
