"""Registers `runs` as a Django app."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    label = "runs"
