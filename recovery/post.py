"""Mail, where a host to send it through is named: after the commit, once, never in the way of what was decided."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction

log = logging.getLogger(__name__)


def after_commit(to: Sequence[str], subject: str, body: str) -> None:
    """Send once the row that it tells of is committed; what cannot be sent is logged, and the row stands."""
    if settings.SENDS_MAIL and to:
        transaction.on_commit(lambda: send(to, subject, body))


def send(to: Sequence[str], subject: str, body: str) -> bool:
    """Whether the mail host took it. Receivers do not see each other; addresses and text stay out of the log."""
    try:
        return bool(EmailMessage(subject, body, bcc=list(to)).send())
    except OSError:  # what smtplib raises is one
        log.warning("mail to %d people could not be sent", len(to), exc_info=True)
        return False
