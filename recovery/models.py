"""What people decide about, and what they decided."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q

from recovery.bulk_models import BulkItem as BulkItem
from recovery.bulk_models import BulkOperation as BulkOperation
from runs.ids import new_id
from runs.models import Action, AgentClient, Run, TenantRow, Workflow
from runs.querysets import database_now
from runs.states import TASK_OPEN

MOST_TAGS = 8


def _listed(name: str, *fields: str, **which: Any) -> models.Index:
    """An index of the open tasks that a list of the queue shows, in the order in which it does."""
    return models.Index(fields=list(fields), name=name, condition=Q(state__in=TASK_OPEN, **which))


IN_TURN = ("heap", "-consequence", "due_at", "id")
AWAKE: dict[str, Any] = {"snoozed_until__isnull": True}
LISTED = (
    _listed("task_heap", *IN_TURN, **AWAKE),
    _listed("task_heap_asleep", *IN_TURN, snoozed_until__isnull=False),
    _listed("task_heap_late", *IN_TURN, breached_at__isnull=False, **AWAKE),
    models.Index(
        fields=list(IN_TURN),
        name="task_heap_free",
        condition=Q(state__in=("open", "reopened"), owner__isnull=True, **AWAKE),
    ),
    models.Index(fields=list(IN_TURN), name="task_heap_asked", condition=Q(state="awaiting_approval", **AWAKE)),
    models.Index(
        fields=list(IN_TURN),
        name="task_heap_held",
        condition=Q(state__in=TASK_OPEN) & (Q(claimed_by__isnull=False) | Q(owner__isnull=False)),
    ),
    _listed("task_heap_due", "heap", "due_at", **AWAKE),
    _listed("task_heap_opened", "heap", "opened_at", **AWAKE),
    models.Index(fields=["claimed_by"], name="task_claimer", condition=Q(state="claimed")),
    _listed("task_given", "owner", owner__isnull=False),
    _listed("task_asleep_due", "heap", "due_at", snoozed_until__isnull=False),
    _listed("task_asleep_opened", "heap", "opened_at", snoozed_until__isnull=False),
    _listed("task_running", "tenant", "soon_at", breached_at__isnull=True, paused_at__isnull=True),
    _listed("task_newest", "tenant", "id"),
)


class HumanTask(TenantRow):
    """A question that only a person may answer; one open per run and cause, and never without an owner (I2).

    owner           the person who has it, of `owner_team`; none where it is the team's.
    near_at         when the customer's deadline comes near and raises `consequence`; empty once it did.
    soon_at         from when on it counts as due soon. `breached_at`: when the sweep found it past `due_at`.
    pause           why its clock stands still since `paused_at` (rules.pauses), with `left_seconds` of working time.
    snoozed_until   hidden until then, or until something new is learned after `snoozed_at`.
    tags            short words by which colleagues find it; they bear on nothing. The table holds MOST_TAGS.
    remind_at       when an approval is asked for again; `reminders` counts.
    heap            names its cause (totals.heap_of). `effect`: of its call, read or write; empty without one.
    answer          whether anything changed (looks.ANYTHING_CHANGED). `looks_up`: whether a look-up could still tell.
                    PostgreSQL writes these four (migration 0024), for lists of any length read them.
    """

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="tasks", db_constraint=False, db_index=False)
    action = models.ForeignKey(
        Action, null=True, on_delete=models.PROTECT, related_name="tasks", db_constraint=False, db_index=False
    )
    number = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=30)
    cause = models.CharField(max_length=120)
    reason_code = models.CharField(max_length=40)
    workflow_name = models.CharField(max_length=80)
    tool = models.CharField(max_length=120, blank=True)
    state = models.CharField(max_length=20, default="open")
    version = models.PositiveIntegerField(default=0)
    owner_team = models.CharField(max_length=80)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    claimed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
    )
    claimed_until = models.DateTimeField(null=True, blank=True)
    consequence = models.PositiveSmallIntegerField(default=0)
    priority_reason = models.CharField(max_length=200, default="", db_default="", blank=True)
    near_at = models.DateTimeField(null=True, blank=True)
    value_minor = models.BigIntegerField(null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    opened_at = models.DateTimeField(db_default=database_now())
    due_at = models.DateTimeField()
    soon_at = models.DateTimeField(null=True, blank=True)
    breached_at = models.DateTimeField(null=True, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    pause = models.CharField(max_length=10, default="", db_default="", blank=True)
    left_seconds = models.FloatField(null=True, blank=True)
    snoozed_at = models.DateTimeField(null=True, blank=True)
    snoozed_until = models.DateTimeField(null=True, blank=True)
    remind_at = models.DateTimeField(null=True, blank=True)
    reminded_at = models.DateTimeField(null=True, blank=True)
    reminders = models.PositiveSmallIntegerField(default=0, db_default=0)
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolution = models.TextField(blank=True)
    paged_at = models.DateTimeField(null=True, blank=True)
    tags = ArrayField(models.CharField(max_length=24), default=list, db_default=[], blank=True)
    heap = models.CharField(max_length=12, default="", db_default="", editable=False)
    effect = models.CharField(max_length=5, default="", db_default="", editable=False)
    answer = models.CharField(max_length=13, default="no", db_default="no", editable=False)
    looks_up = models.BooleanField(default=False, db_default=False, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "run", "cause"],
                condition=Q(state__in=TASK_OPEN),
                name="one_open_task_per_cause",
            ),
            models.UniqueConstraint(fields=["tenant", "number"], name="task_number_once"),
            models.CheckConstraint(condition=~Q(owner_team=""), name="task_has_an_owner"),
            models.CheckConstraint(
                condition=Q(state="claimed", claimed_by__isnull=False) | ~Q(state="claimed"),
                name="claim_has_a_claimer",
            ),
            models.CheckConstraint(
                condition=Q(paused_at__isnull=True, pause="", left_seconds__isnull=True)
                | (Q(paused_at__isnull=False, left_seconds__isnull=False) & ~Q(pause="")),
                name="pause_knows_what_is_left",
            ),
            models.CheckConstraint(
                condition=Q(snoozed_until__isnull=True) | Q(snoozed_at__isnull=False), name="snooze_has_a_beginning"
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "-consequence", "due_at", "id"],
                name="task_queue",
                condition=Q(state__in=TASK_OPEN),
            ),
            models.Index(fields=["tenant", "run", "id"], name="task_by_run"),
            models.Index(fields=["claimed_until"], name="task_claims", condition=Q(state="claimed")),
            models.Index(
                fields=["due_at"],
                name="task_unbreached",
                condition=Q(state__in=TASK_OPEN, breached_at__isnull=True, paused_at__isnull=True),
            ),
            models.Index(
                fields=["snoozed_until"],
                name="task_snoozed",
                condition=Q(state__in=TASK_OPEN, snoozed_until__isnull=False),
            ),
            models.Index(
                fields=["remind_at"],
                name="task_reminders",
                condition=Q(state__in=TASK_OPEN, remind_at__isnull=False),
            ),
            models.Index(
                fields=["near_at"], name="task_near", condition=Q(state__in=TASK_OPEN, near_at__isnull=False)
            ),
            models.Index(
                fields=["tenant", "workflow_name", "reason_code", "tool"],
                name="task_by_cause",
                condition=Q(state__in=TASK_OPEN),
            ),
            models.Index(fields=["tenant", "reason_code"], name="task_by_reason", condition=Q(state__in=TASK_OPEN)),
            models.Index(fields=["tenant", "tool"], name="task_by_tool", condition=Q(state__in=TASK_OPEN)),
            models.Index(fields=["tenant", "owner_team"], name="task_by_team", condition=Q(state__in=TASK_OPEN)),
            models.Index(
                fields=["tenant", "currency", "value_minor"],
                name="task_by_amount",
                condition=Q(state__in=TASK_OPEN),
            ),
            GinIndex(fields=["tags"], name="task_by_tag", condition=Q(state__in=TASK_OPEN)),
            *LISTED,
        ]


class Handover(TenantRow):
    """A task offered to a colleague: it stays with whoever has it until `to` accepts, and at most until `expires_at`.

    `facts` is what the record said of it at that moment, as pairs of label and text (work/summary.py).
    """

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    task = models.ForeignKey(
        HumanTask, on_delete=models.PROTECT, related_name="offers", db_constraint=False, db_index=False
    )
    state = models.CharField(max_length=20, default="offered")
    version = models.PositiveIntegerField(default=0)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    to = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    reason = models.TextField()
    facts = models.JSONField()
    offered_at = models.DateTimeField(db_default=database_now())
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "task"], condition=Q(state="offered"), name="one_open_offer_per_task"
            ),
            models.CheckConstraint(condition=~Q(by=models.F("to")), name="offer_is_to_another"),
        ]
        indexes = [
            models.Index(fields=["tenant", "to", "task"], name="offers_open", condition=Q(state="offered")),
            models.Index(fields=["expires_at"], name="offers_due", condition=Q(state="offered")),
        ]


class InputRequest(TenantRow):
    """A link by which a requester answers one question: one field of one call as it stood. Spent by its answer.

    The link itself is signed and kept nowhere; `shown_at` says that it was handed out. `answer` is the redacted
    value, `sealed_answer` the real one for the agent. `tries` counts answers that did not fit.
    """

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    action = models.ForeignKey(
        Action, on_delete=models.PROTECT, related_name="questions", db_constraint=False, db_index=False
    )
    task = models.ForeignKey(
        HumanTask, on_delete=models.PROTECT, related_name="questions", db_constraint=False, db_index=False
    )
    field = models.CharField(max_length=300)
    action_version = models.IntegerField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    asked_at = models.DateTimeField(db_default=database_now())
    expires_at = models.DateTimeField()
    shown_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0, db_default=0)
    answered_at = models.DateTimeField(null=True, blank=True)
    answer = models.JSONField(null=True, blank=True)
    sealed_answer = models.BinaryField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(answered_at__isnull=True, sealed_answer__isnull=True)
                | Q(answered_at__isnull=False, sealed_answer__isnull=False),
                name="answer_has_a_time",
            ),
            models.UniqueConstraint(
                fields=["tenant", "action"],
                condition=Q(answered_at__isnull=False),
                name="one_answer_per_call",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "run", "id"], name="question_by_run")]


class Decision(TenantRow):
    """A recorded choice and the work that it ordered. The row is the work; a message only says: look at it."""

    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="decisions", db_constraint=False, db_index=False
    )
    action = models.ForeignKey(
        Action, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    task = models.ForeignKey(
        HumanTask,
        null=True,
        on_delete=models.PROTECT,
        related_name="decisions",
        db_constraint=False,
        db_index=False,
    )
    verb = models.CharField(max_length=20)
    key = models.CharField(max_length=64)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    actor_kind = models.CharField(max_length=10)
    reason = models.TextField()
    rule = models.CharField(max_length=10)
    table_version = models.PositiveIntegerField()
    evidence_hash = models.CharField(max_length=64)
    snapshot = models.JSONField()
    state = models.CharField(max_length=20, default="requested")
    version = models.PositiveIntegerField(default=0)
    fence = models.PositiveBigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    result = models.TextField(blank=True)
    requested_at = models.DateTimeField(db_default=database_now())
    nudged_at = models.DateTimeField(db_default=database_now())
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "key"], name="decision_once_per_key"),
            models.UniqueConstraint(
                fields=["tenant", "action"],
                condition=Q(state__in=("requested", "running")),
                name="one_running_decision_per_action",
            ),
        ]
        indexes = [
            models.Index(
                fields=["nudged_at", "id"],
                name="decision_waiting",
                condition=Q(state__in=("requested", "running")),
            ),
            models.Index(fields=["tenant", "run", "id"], name="decision_by_run"),
        ]


class DeadLetter(TenantRow):
    """A call that used all its tries: complete, owned, and replayed or discarded only by people (DECISIONS 1).

    `attempts` and `completed_effects` are plain JSON as they stood when it was recorded; a replay that fails again
    raises `generation` on the same row.
    """

    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="dead_letters", db_constraint=False, db_index=False
    )
    action = models.ForeignKey(
        Action, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    state = models.CharField(max_length=20, default="recorded")
    version = models.PositiveIntegerField(default=0)
    generation = models.PositiveIntegerField(default=1)
    request = models.JSONField()
    identity = models.CharField(max_length=64)
    completed_effects = models.JSONField()
    failure_class = models.CharField(max_length=40)
    attempts = models.JSONField()
    next_action = models.CharField(max_length=200)
    owner_team = models.CharField(max_length=80)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    recorded_at = models.DateTimeField(db_default=database_now())
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "action"], name="one_dead_letter_per_action"),
            models.CheckConstraint(
                condition=~Q(owner_team="") | Q(owner__isnull=False), name="dead_letter_has_an_owner"
            ),
            models.CheckConstraint(
                condition=~Q(identity="") & ~Q(failure_class="") & ~Q(next_action="") & Q(generation__gte=1),
                name="dead_letter_is_complete",
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "id"],
                name="dead_letter_open",
                condition=~Q(state__in=("recovered", "discarded")),
            ),
            models.Index(fields=["tenant", "run"], name="dead_letter_by_run"),
            models.Index(
                fields=["tenant", "id"], name="dead_letter_ended", condition=Q(state__in=("recovered", "discarded"))
            ),
        ]


class Demotion(TenantRow):
    """A connector whose declared bound was not kept, by the call that showed it; it stands until it is lifted (F028).

    It holds for runs of workflow versions registered up to `since`; `workflow` is the version that made the promise.
    """

    connector = models.CharField(max_length=80)
    workflow = models.ForeignKey(
        Workflow, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    action = models.ForeignKey(
        Action, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    reason = models.TextField()
    since = models.DateTimeField()
    lifted_at = models.DateTimeField(null=True, blank=True)
    lifted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    lift_reason = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "connector", "workflow"],
                condition=Q(lifted_at__isnull=True),
                name="one_standing_demotion",
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="demotion_has_a_reason"),
        ]


class OutsideSweep(TenantRow):
    """How far a connector's effects have been listed, and when next: everything before `listed_until` was compared.

    `failures` in a row; a failed listing leaves `listed_until` where it was. `run` holds the open question that it
    cannot be listed.
    """

    connector = models.CharField(max_length=80)
    workflow = models.ForeignKey(
        Workflow, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    listed_until = models.DateTimeField()
    due_at = models.DateTimeField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    fence = models.PositiveBigIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    failure = models.TextField(blank=True)
    run = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "connector"], name="one_sweep_per_connector")]
        indexes = [models.Index(fields=["due_at"], name="sweep_due", condition=Q(due_at__isnull=False))]


class ConnectorCheck(TenantRow):
    """A harmless question to a connector that a person asked for, and what came of it; one at a time.

    `outcome` is empty until it is over (recovery/connectors/reach.py), `fact` its sentence. `fence` counts the takes.
    """

    connector = models.CharField(max_length=80)
    workflow = models.ForeignKey(
        Workflow, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    key = models.CharField(max_length=64)
    asked_at = models.DateTimeField(db_default=database_now())
    nudged_at = models.DateTimeField(db_default=database_now())
    lease_until = models.DateTimeField(null=True, blank=True)
    fence = models.PositiveBigIntegerField(default=0, db_default=0)
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=20, default="", db_default="", blank=True)
    fact = models.TextField(default="", db_default="", blank=True)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    latency_ms = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "key"], name="check_once_per_key"),
            models.UniqueConstraint(
                fields=["tenant", "connector"], condition=Q(ended_at__isnull=True), name="one_check_under_way"
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, outcome="") | (Q(ended_at__isnull=False) & ~Q(outcome="")),
                name="check_ends_with_an_outcome",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "connector", "-id"], name="check_latest"),
            models.Index(fields=["nudged_at"], name="check_waiting", condition=Q(ended_at__isnull=True)),
        ]


class RoleChange(TenantRow):
    """A change of somebody's roles as an admin asked for it; where it gives an ability a second admin has to agree.

    `result` is empty while it waits, until `expires_at`; else done, declined or expired. `second` is who answered.
    """

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    second = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    key = models.CharField(max_length=64)
    before = ArrayField(models.CharField(max_length=20))
    after = ArrayField(models.CharField(max_length=20), blank=True)
    reason = models.TextField()
    asked_at = models.DateTimeField(db_default=database_now())
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    result = models.CharField(max_length=10, default="", db_default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "key"], name="role_change_once_per_key"),
            models.UniqueConstraint(
                fields=["tenant", "person"], condition=Q(ended_at__isnull=True), name="one_role_change_waits"
            ),
            models.CheckConstraint(
                condition=Q(second__isnull=True)
                | (~Q(second=models.F("by")) & ~Q(second=models.F("person")))
                | ~Q(result="done"),
                name="role_change_by_two",
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, result="")
                | Q(ended_at__isnull=False, result__in=("done", "declined", "expired")),
                name="role_change_ends_with_a_result",
            ),
        ]


class Gap(TenantRow):
    """An effect that a connector lists and no call admits; `run` holds the question of what it is."""

    connector = models.CharField(max_length=80)
    external_id = models.CharField(max_length=200)
    reference = models.CharField(max_length=200, blank=True)
    happened_at = models.DateTimeField()
    raw = models.JSONField()
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="gaps", db_constraint=False, db_index=False)
    found_at = models.DateTimeField(db_default=database_now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "connector", "external_id"], name="gap_found_once")]
        indexes = [models.Index(fields=["tenant", "run", "id"], name="gap_of_run")]


class CallbackSecret(TenantRow):
    """A signing secret of one source of callbacks, sealed; two may be valid at once while one is rotated (F078)."""

    source = models.CharField(max_length=80)
    sealed_secret = models.BinaryField()
    valid_from = models.DateTimeField(db_default=database_now())
    valid_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=database_now())

    class Meta:
        indexes = [models.Index(fields=["tenant", "source"], name="callback_secrets")]


class InboxMessage(TenantRow):
    """A verified callback, kept once per source and message id; `waiting` until its call is known (F073, F074)."""

    source = models.CharField(max_length=80)
    message_id = models.CharField(max_length=200)
    sent_at = models.DateTimeField()
    received_at = models.DateTimeField(db_default=database_now())
    state = models.CharField(max_length=10, default="waiting")
    reference = models.CharField(max_length=200, blank=True)
    external_id = models.CharField(max_length=200, blank=True)
    said = models.CharField(max_length=80, blank=True)
    raw = models.JSONField()
    sealed_body = models.BinaryField()
    action = models.ForeignKey(
        Action, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "source", "message_id"], name="callback_taken_once"),
            models.CheckConstraint(condition=Q(state__in=("waiting", "used", "ignored")), name="inbox_state_known"),
        ]
        indexes = [
            models.Index(fields=["tenant", "source", "external_id"], name="inbox_by_remote_id"),
        ]


class IngestRecord(TenantRow):
    """A record of what happened elsewhere that was taken in, so that it is taken in once."""

    client = models.ForeignKey(
        AgentClient, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    record_id = models.CharField(max_length=200)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    at = models.DateTimeField(db_default=database_now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "client", "record_id"], name="ingested_once")]


class Comment(TenantRow):
    """A note from one colleague to the next. It is no evidence."""

    task = models.ForeignKey(
        HumanTask, on_delete=models.PROTECT, related_name="comments", db_constraint=False, db_index=False
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    text = models.TextField()
    at = models.DateTimeField(db_default=database_now())

    class Meta:
        indexes = [models.Index(fields=["tenant", "task", "id"], name="comment_by_task")]


class QuarantinedMessage(models.Model):
    """A message on the queue that is not ours. It names no tenant: whoever runs the installation owns it (F057)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    reason = models.CharField(max_length=200)
    task = models.CharField(max_length=120, blank=True)
    content_type = models.CharField(max_length=120, blank=True)
    size = models.PositiveBigIntegerField()
    digest = models.CharField(max_length=64)
    times = models.PositiveBigIntegerField(default=1)
    owner_team = models.CharField(max_length=80)
    first_at = models.DateTimeField(db_default=database_now())
    last_at = models.DateTimeField(db_default=database_now())
    settled_at = models.DateTimeField(null=True, blank=True)

    objects = models.Manager()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["digest"], condition=Q(settled_at__isnull=True), name="one_open_quarantine_per_message"
            ),
            models.CheckConstraint(condition=~Q(owner_team=""), name="quarantine_has_an_owner"),
        ]

    def __str__(self) -> str:
        return self.reason
