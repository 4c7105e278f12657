"""One verb for many tasks as an object: the list as it was frozen, and what came of each task on it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs.models import TenantRow, Workflow
from runs.querysets import database_now

CLASSES = ("will_run", "check_first", "blocked", "not_permitted", "already_done")


class BulkOperation(TenantRow):
    """Who froze which list for which verb, how it is to run, and how far it is.

    `words` and `address` are the selection as a sentence and as a query string; `versions` which workflow versions
    the person chose of it, in words. It counts nothing: its totals are those of its items, one state each (U04).

    more        what the verb asks for besides a reason: "until" (ISO), "to" (a person's id)
    canary      how many items go first, alone; `rate` at most how many are begun in a minute
    stop_after  how many failures since `changed_at` suspend it
    key         the one-time key of the form that made it; `moved_key` of the one that moved it last
    changed_at  since when it is in its state, by whom (nobody: by rule) and why
    due_at      when a worker looks at it next; empty where nothing is to be done. `fence` and `lease_until`: who does
    """

    verb = models.CharField(max_length=20)
    state = models.CharField(max_length=20, default="created")
    version = models.PositiveIntegerField(default=0)
    words = models.TextField()
    address = models.TextField()
    versions = models.CharField(max_length=200, blank=True)
    key = models.CharField(max_length=32)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    frozen_at = models.DateTimeField(db_default=database_now())
    reason = models.TextField(blank=True)
    more = models.JSONField(default=dict)
    canary = models.PositiveIntegerField(default=0)
    rate = models.PositiveIntegerField(default=0)
    stop_after = models.PositiveIntegerField(default=1)
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    started_at = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(db_default=database_now())
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    why = models.TextField(blank=True)
    moved_key = models.CharField(max_length=32, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    fence = models.PositiveBigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    due_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "key"], name="bulk_once_per_key"),
            models.CheckConstraint(
                condition=Q(state__in=("created", "cancelled"))
                | Q(started_by__isnull=False, started_at__isnull=False, rate__gte=1),
                name="bulk_was_started_by_somebody",
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, state__in=("created", "running", "suspended"))
                | Q(ended_at__isnull=False, state__in=("done", "partly_done", "cancelled")),
                name="bulk_ends_with_a_time",
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], name="bulk_due", condition=Q(due_at__isnull=False)),
            models.Index(fields=["tenant", "id"], name="bulk_open", condition=Q(ended_at__isnull=True)),
        ]


class BulkItem(TenantRow):
    """One task of a frozen list, with the facts as they stood, and one state.

    `place` is its turn. `task_version` and `workflow` are of the moment of freezing; `evidence_hash` of
    the dry run, which says of it `kind` (CLASSES; empty until it was looked at), by which `rule`, and its `sentence`.
    `begun_at`: when it had its turn; `decision`: what it ordered; `code` and `words`: what came of it.
    """

    operation = models.ForeignKey(
        BulkOperation, on_delete=models.PROTECT, related_name="items", db_constraint=False, db_index=False
    )
    place = models.PositiveIntegerField()
    task = models.ForeignKey(
        "recovery.HumanTask", on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    workflow = models.ForeignKey(
        Workflow, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    task_version = models.PositiveIntegerField()
    evidence_hash = models.CharField(max_length=160, blank=True)
    kind = models.CharField(max_length=20, blank=True)
    rule = models.CharField(max_length=20, blank=True)
    sentence = models.TextField(blank=True)
    canary = models.BooleanField(default=False)
    state = models.CharField(max_length=10, default="pending")
    version = models.PositiveIntegerField(default=0)
    begun_at = models.DateTimeField(null=True, blank=True)
    decision = models.ForeignKey(
        "recovery.Decision",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    code = models.CharField(max_length=40, blank=True)
    words = models.TextField(blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "operation", "place"], name="bulk_item_place_once"),
            models.UniqueConstraint(fields=["tenant", "operation", "task"], name="bulk_item_once_per_task"),
            models.CheckConstraint(
                condition=Q(state="pending", ended_at__isnull=True)
                | (Q(state__in=("done", "skipped", "failed"), ended_at__isnull=False) & ~Q(code="")),
                name="bulk_item_ends_with_a_code",
            ),
            models.CheckConstraint(condition=Q(kind__in=("", *CLASSES)), name="bulk_item_class_known"),
        ]
        indexes = [
            models.Index(fields=["tenant", "operation", "state", "place"], name="bulk_item_by_state"),
            models.Index(fields=["tenant", "operation", "kind", "place"], name="bulk_item_by_class"),
        ]
