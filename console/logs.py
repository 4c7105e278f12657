"""One shape for every log line, whoever wrote it: structlog's own and the libraries' alike."""

import logging
import logging.config
import re
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

CONTROL = {code: f"\\x{code:02x}" for code in [*range(32), 127]} | {10: "\\n", 13: "\\r", 9: "\\t"}

# One line per request or per tick says nothing that the rows do not say better.
CHATTY = ["httpx", "celery.beat", "celery.worker.strategy", "celery.app.trace"]

# Whoever has one of these addresses may act with it, so no log keeps one whole (SEC-36).
LINKS = re.compile(r"(/(?:answer|first-admin|accounts/password/reset/key)/)[^/\s\"']+")


def hide_links(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Cut the secret part out of the links that let somebody in or answer for somebody."""
    return {key: LINKS.sub(r"\1…", value) if isinstance(value, str) else value for key, value in event.items()}


def escape_controls(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """A value may not start a new line of its own: forged log entries begin that way (SEC-36)."""
    return {key: value.translate(CONTROL) if isinstance(value, str) else value for key, value in event.items()}


def configure(*, readable: bool, level: str) -> None:
    """Send everything to stderr: plain columns if `readable`, else one JSON object a line."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    logging.config.dictConfig(_plan(shared, readable=readable, level=level))
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _plan(shared: list[Processor], *, readable: bool, level: str) -> dict[str, Any]:
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": shared,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    *_renderers(readable=readable),
                ],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {name: {"level": "WARNING"} for name in CHATTY} | {"django.request": {"level": "ERROR"}},
    }


def _renderers(*, readable: bool) -> list[Processor]:
    if readable:
        return [hide_links, escape_controls, structlog.dev.ConsoleRenderer(colors=False)]
    return [structlog.processors.format_exc_info, hide_links, escape_controls, structlog.processors.JSONRenderer()]
