"""The Celery application: a doorbell. The row is the work; a message carries its id and may be lost."""

import os
import warnings
from pathlib import Path
from typing import Any

from celery import Celery
from celery.platforms import SecurityWarning
from celery.signals import beat_init, setup_logging, worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

SWEEP_SECONDS = 5.0

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


app = Celery("steadyhand")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    task_serializer="json",
    result_serializer="json",
    event_serializer="json",
    accept_content=["json"],
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    task_create_missing_queues=True,
    task_default_queue="steadyhand",
    timezone="UTC",
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
