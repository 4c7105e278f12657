"""Mail where no mail host is named: printed on the terminal that runs the product, and kept nowhere."""

import sys
from collections.abc import Sequence

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend
from django.http import HttpRequest

from console import logs
from console.embedded import lines

# Line breaks stay, and nothing else of what could move a terminal's cursor.
_PLAIN = {code: shown for code, shown in logs.CONTROL.items() if code != ord("\n")}


class TerminalMail(BaseEmailBackend):
    """Prints each message; the link in it works once, so no file keeps it."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        for message in email_messages:
            to = ", ".join(message.to)
            text = f"\nMail to {to}: {message.subject}\n\n{message.body}\n\n".translate(_PLAIN)
            sys.stdout.write(lines.private(text))
        sys.stdout.flush()
        return len(email_messages)


def for_pages(_request: HttpRequest) -> dict[str, bool]:
    """What a page may say about mail."""
    return {"sends_mail": settings.SENDS_MAIL}
