"""Registers `recovery` as a Django app."""

from django.apps import AppConfig


class RecoveryConfig(AppConfig):
    name = "recovery"
    label = "recovery"
