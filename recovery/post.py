"""Mail, where a host to send it through is named: after the commit, once, never in the way of what was decided."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.urls import reverse

log = logging.getLogger(__name__)


def after_commit(to: Sequence[str], subject: str, body: str) -> None:
    """Send once the row that it tells of is committed; what cannot be sent is logged, and the row stands."""
    if settings.SENDS_MAIL and to:
        transaction.on_commit(lambda: send(to, subject, body))


def console_address() -> str:
    """Where people reach the console: its public name, else what the last start noted, else the usual port."""
    if settings.HOSTS:
        return f"https://{settings.HOSTS[0]}"
    noted: Path = settings.PLACES.address_note
    return noted.read_text().strip() if noted.exists() else "http://127.0.0.1:8000"


def link_to_task(task_id: uuid.UUID) -> str:
    """The address of a task's page: it lets nobody in who has not signed in."""
    return console_address() + reverse("task", args=[task_id])


def send(to: Sequence[str], subject: str, body: str) -> bool:
    """Whether the mail host took it. Receivers do not see each other; addresses and text stay out of the log."""
    try:
        return bool(EmailMessage(subject, body, bcc=list(to)).send())
    except OSError:  # what smtplib raises is one
        log.warning("mail to %d people could not be sent", len(to), exc_info=True)
        return False
