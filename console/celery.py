"""The Celery application: a doorbell. The row is the work; a message carries its id and may be lost."""

import gc
import logging
import os
import sys
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from celery import Celery, bootsteps
from celery.app.amqp import AMQP
from celery.platforms import SecurityWarning
from celery.signals import beat_init, setup_logging, task_prerun, worker_process_init, worker_ready
from kombu.connection import Connection
from kombu.transport import redis as transport

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

SWEEP_SECONDS = 5.0
log = logging.getLogger(__name__)

# It warns root about pickle; nothing but JSON is accepted here.
warnings.filterwarnings("ignore", category=SecurityWarning)


@setup_logging.connect
def keep_our_logging(**_: Any) -> None:
    """Being connected is enough: Celery then leaves the log as the settings made it."""


@worker_ready.connect
@beat_init.connect
def say_ready(**_: Any) -> None:
    """`up` waits for this file: neither the worker nor the clock has a port to knock on."""
    if os.environ.get("STEADYHAND_READY_FILE"):
        Path(os.environ["STEADYHAND_READY_FILE"]).touch()


@worker_process_init.connect
def spare_the_collector(**_: Any) -> None:
    """What was loaded stays for good, and a pass over a thousand calls leaves little garbage to walk for."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@task_prerun.connect
def look_after_connections(**_: Any) -> None:
    """A connection that is too old or broke under an earlier message is closed; one that is kept is asked first.

    Celery itself would close it after each message, and every look would begin by signing in.
    """
    from django.db import close_old_connections

    close_old_connections()


class Knocking(Connection):
    """Knocks every other second while the broker is away: by itself its pauses grow to half a minute, and whoever
    came back in between would be kept waiting."""

    def ensure_connection(self, *given: Any, **named: Any) -> Any:
        rhythm = {"interval_start": 2, "interval_step": 0, **named}
        return super().ensure_connection(*given, **rhythm)  # type: ignore[no-untyped-call]


class Post(AMQP):
    """Celery's own, with connections that keep knocking."""

    Connection = Knocking


app = Celery("steadyhand", amqp=Post)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    task_serializer="json",
    result_serializer="json",
    event_serializer="json",
    accept_content=["json"],
    task_ignore_result=True,
    task_acks_late=True,
    # What killed its worker is not handed to the next one at once: the sweep rings again.
    task_reject_on_worker_lost=False,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    task_create_missing_queues=True,
    task_default_queue="steadyhand",
    timezone="UTC",
    # Celery's own count is no check of a connection: its age and its health decide (settings: CONN_MAX_AGE).
    CELERY_DB_REUSE_MAX=sys.maxsize,
    # Publishing must fail within about a second while the broker is away: the sweep rings again.
    task_publish_retry=False,
    broker_connection_timeout=1,
    broker_connection_retry=True,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={
        "max_retries": 0,
        "interval_start": 0,
        "interval_step": 0.05,
        "interval_max": 0.1,
        "socket_connect_timeout": 1,
        # A broker that accepts and then says nothing is as absent as one that is not there.
        "socket_timeout": 2,
    },
    beat_schedule={
        "sweep": {
            "task": "recovery.tasks.sweep",
            "schedule": SWEEP_SECONDS,
            # A sweep that waited longer than its own period has been overtaken by the next one.
            "options": {"expires": SWEEP_SECONDS},
        }
    },
)
app.autodiscover_tasks()


class Doorman(bootsteps.StartStopStep):
    """Turns away what is no message of ours before anything of it is read as one (F057).

    By itself Celery logs the body of what it cannot use, and its Redis transport ends the worker over a message that
    is no JSON.
    """

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        make = parent.create_task_handler
        parent.create_task_handler = lambda *given: turning_away(make(*given))
        vars(transport)["loads"] = readable(vars(transport)["loads"])


def turning_away(handle: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same handler for messages of ours; any other is taken from the queue and kept in quarantine."""

    def doorman(message: Any) -> Any:
        from recovery import quarantine

        name = quarantine.of_headers(message.headers)
        wrong = quarantine.wrong_with(name, message.content_type, message.body)
        if wrong is None:
            return handle(message)
        log.warning("a message on the queue is not ours (%s); it was not carried out", wrong)
        message.ack_log_error(log, ())
        return _keep(wrong, message.body, name, message.content_type)

    return doorman


def readable(loads: Callable[..., Any]) -> Callable[..., Any]:
    """What the transport reads a message with: one that it cannot read becomes one that is turned away."""

    def read(item: Any, *given: Any, **named: Any) -> Any:
        try:
            told = loads(item, *given, **named)
        except Exception:
            told = None
        return told if isinstance(told, dict) and "properties" in told else _unreadable(item)

    return read


def _unreadable(item: Any) -> dict[str, Any]:
    where = {"exchange": "", "routing_key": app.conf.task_default_queue}
    own = {"delivery_tag": str(uuid.uuid4()), "delivery_info": where, "delivery_mode": 2, "priority": 0}
    return {"body": str(item), "headers": {}, "content-type": "unreadable", "properties": own}


def _keep(wrong: str, body: Any, name: Any, content_type: Any) -> None:
    """The record is for people; a database that is away must not keep the worker from its messages."""
    from django.db import DatabaseError, connection

    from recovery import quarantine

    try:
        quarantine.keep(wrong, body, name=name, content_type=content_type)
    except DatabaseError:
        log.exception("a message that was turned away could not be written down")
    finally:
        connection.close()  # the worker's children are born of this process, and must inherit none


app.steps["consumer"].add(Doorman)
