"""The facts: who asked for what, what was tried, what came back, what is proven.

Every row but Person belongs to one tenant; row-level security (runs/migrations/0002) holds that wall, composite
foreign keys keep links inside it, and triggers hold the state machines of runs/states.py.
"""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from runs.ids import new_id
from runs.querysets import NextNumber, TenantQuerySet, TransactionId, database_now

# What a person can be granted on a tenant; which role holds which stands in recovery/permissions.py (SECURITY 2).
ABILITIES = (
    "view", "claim", "comment", "reconcile", "retry", "resume", "cancel", "audit", "administer",
    "approve", "attest", "compensate", "replay", "stop", "stop_run", "top_up", "circuit", "waive", "bulk",
)  # fmt: skip


WITHOUT_EFFECT = ("rejected", "refused_permanent", "void", "compensated")
"""Ends of a call after which nothing of it stands in the world."""
NEVER_HAPPENED = ("rejected", "refused_permanent", "void")
"""Ends of a call that is proven to have changed nothing."""
STANDING = (Q(compensated_by=None) | ~Q(residual="")) & ~Q(action__role="undo")
"""Effects that stand in the world, whole or in part; an undo is no effect of its own."""
RESIDUALS = ("", "fee", "part", "untold", "whole")
"""What stays of an effect that was to be taken back: nothing; the declared cost of the undo; what the undo's answer
did not give back; an answer that does not say how much; or all of it, for nobody takes it back."""


def _one_of(field: str, values: tuple[str, ...] | dict[str, object], name: str) -> models.CheckConstraint:
    return models.CheckConstraint(condition=Q(**{f"{field}__in": sorted(values)}), name=name)


class PersonManager(BaseUserManager["Person"]):
    """Makes people by address; there is no superuser, for nobody stands above the grants (SEC-07)."""

    def create_user(self, email: str, name: str, password: str | None = None) -> Person:
        person = self.model(email=self.normalize_email(email).lower(), name=name)
        person.set_password(password)
        person.save(using=self._db)
        return person


class Person(AbstractBaseUser, PermissionsMixin):
    """Somebody who signs in. Rights come from grants on tenants (recovery/permissions.py), never from flags here.

    toured_at   when they ended the tour of the queue, which is shown until then.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    email = models.EmailField(unique=True)
    name = models.CharField(max_length=120)
    time_zone = models.CharField(max_length=60, default="UTC")
    is_active = models.BooleanField(default=True)
    date_joined = models.DateTimeField(db_default=database_now())
    toured_at = models.DateTimeField(null=True, blank=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = ["name"]
    objects = PersonManager()

    def __str__(self) -> str:
        return self.name


class Tenant(models.Model):
    """The wall that nothing crosses. `sealed_key` is its own secret, sealed under the installation's key."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    policy = models.JSONField(default=dict, blank=True)
    sealed_key = models.BinaryField()
    tasks_opened = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(db_default=database_now())

    objects = models.Manager()

    class Meta:
        default_permissions = ()
        permissions = tuple((name, name.replace("_", " ")) for name in ABILITIES)

    def __str__(self) -> str:
        return self.name


class TenantRow(models.Model):
    """Base of every table behind the wall."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )

    objects = TenantQuerySet.as_manager()

    class Meta:
        abstract = True


class Workflow(TenantRow):
    """A named manifest in one version. Immutable: a change is a new version (trigger).

    `registered_by` names the client or the command; empty for versions of before it was kept.
    """

    name = models.CharField(max_length=80)
    version = models.PositiveIntegerField()
    manifest = models.JSONField()
    manifest_hash = models.CharField(max_length=64)
    registered_by = models.CharField(max_length=200, default="", db_default="", blank=True)
    created_at = models.DateTimeField(db_default=database_now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name", "version"], name="workflow_version_once")]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class AgentClient(TenantRow):
    """A machine's credentials for one tenant. The secret is shown once and stored as a peppered hash (SEC-17)."""

    name = models.CharField(max_length=80)
    secret_hash = models.BinaryField(max_length=32)
    workflows = ArrayField(models.CharField(max_length=80), default=list, blank=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=database_now())

    def __str__(self) -> str:
        return self.name


class Run(TenantRow):
    """One execution of a workflow. Ceilings stand beside their counters, so that one UPDATE reserves (I8).

    Numbers here and in Action and Attempt are plain: PostgreSQL checks every CHECK of a row on every call, and these
    only ever grow. What could go wrong has its own constraint below.
    """

    workflow = models.ForeignKey(
        Workflow, on_delete=models.PROTECT, related_name="runs", db_constraint=False, db_index=False
    )
    client = models.ForeignKey(
        AgentClient, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    parent = models.ForeignKey(
        "self",
        null=True,
        on_delete=models.PROTECT,
        related_name="children",
        db_constraint=False,
        db_index=False,
    )
    client_ref = models.CharField(max_length=200)
    intent = models.TextField()
    scope = models.JSONField(default=dict)
    requester = models.CharField(max_length=200, blank=True)
    customer_ref = models.CharField(max_length=200, blank=True)
    trace_id = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=200, blank=True)
    prompt_version = models.CharField(max_length=200, blank=True)

    state = models.CharField(max_length=20, default="planning")
    goal = models.CharField(max_length=10, default="forward")
    outcome = models.CharField(max_length=20, null=True, blank=True)
    reason_code = models.CharField(max_length=40, null=True, blank=True)
    failed_step = models.CharField(max_length=120, null=True, blank=True)
    customer_message = models.TextField(blank=True)
    operator_detail = models.TextField(blank=True)
    claim = models.TextField(blank=True)
    version = models.IntegerField(default=0)

    turns = models.IntegerField(default=0)
    tool_calls = models.IntegerField(default=0)
    in_flight = models.PositiveIntegerField(default=0)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost_minor = models.BigIntegerField(default=0)
    usage_estimated = models.BooleanField(default=False)
    max_turns = models.IntegerField()
    max_tool_calls = models.IntegerField()
    max_attempts = models.IntegerField()
    max_input_tokens = models.BigIntegerField(null=True, blank=True)
    max_output_tokens = models.BigIntegerField(null=True, blank=True)
    max_cost_minor = models.BigIntegerField(null=True, blank=True)
    reserved_input_tokens = models.BigIntegerField(default=0, db_default=0)
    reserved_output_tokens = models.BigIntegerField(default=0, db_default=0)
    reserved_cost_minor = models.BigIntegerField(default=0, db_default=0)
    open_turn = models.JSONField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    topped_up = models.CharField(max_length=40, default="", db_default="", blank=True)
    approved_plan = models.CharField(max_length=64, default="", db_default="", blank=True)
    recoveries = models.IntegerField(default=0, db_default=0)
    origin = models.CharField(max_length=10, default="boundary", db_default="boundary")

    opened_at = models.DateTimeField(db_default=database_now())
    elapses_at = models.DateTimeField()
    deadline_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "client", "client_ref"], name="run_opened_once_per_ref"),
            models.CheckConstraint(condition=Q(turns__lte=models.F("max_turns")), name="run_turns_within_budget"),
            models.CheckConstraint(
                condition=Q(tool_calls__lte=models.F("max_tool_calls")), name="run_calls_within_budget"
            ),
            models.CheckConstraint(
                condition=~Q(outcome="ok") | Q(state="completed"), name="run_ok_only_when_completed"
            ),
            models.CheckConstraint(
                condition=Q(state__in=("completed", "failed", "cancelled"), ended_at__isnull=False)
                | (~Q(state__in=("completed", "failed", "cancelled")) & Q(ended_at__isnull=True)),
                name="run_ends_with_a_time",
            ),
            _one_of("goal", ("forward", "rollback", "cancel"), "run_goal_known"),
        ]
        indexes = [
            models.Index(fields=["tenant", "id"], name="run_live", condition=Q(ended_at__isnull=True)),
            models.Index(
                fields=["tenant", "workflow"], name="run_open_by_version", condition=Q(ended_at__isnull=True)
            ),
            models.Index(fields=["elapses_at", "id"], name="run_elapses", condition=Q(ended_at__isnull=True)),
            models.Index(
                fields=["deadline_at", "id"],
                name="run_deadline",
                condition=Q(ended_at__isnull=True, deadline_at__isnull=False),
            ),
            models.Index(fields=["tenant", "customer_ref"], name="run_by_customer", condition=~Q(customer_ref="")),
        ]


class Action(TenantRow):
    """One logical tool call. `action_id` is its identity; attempts are its tries.

    `role`: call, or with a `parent` the undo of that action's effect, or one item of that batch.
    """

    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="actions", db_constraint=False, db_index=False
    )
    parent = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="parts",
        db_constraint=False,
        db_index=False,
    )
    role = models.CharField(max_length=4, default="call", db_default="call")
    action_id = models.CharField(max_length=64)
    step = models.CharField(max_length=120)
    tool = models.CharField(max_length=120)
    tool_version = models.IntegerField()
    effect = models.CharField(max_length=5)
    turn = models.IntegerField()
    arguments_hash = models.CharField(max_length=64)
    arguments = models.JSONField()
    sealed_arguments = models.BinaryField()
    value_minor = models.BigIntegerField(null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    idempotency_key = models.CharField(max_length=80, blank=True)
    key_generation = models.IntegerField(default=1)

    state = models.CharField(max_length=20)
    version = models.IntegerField(default=0)
    reason_code = models.CharField(max_length=40, null=True, blank=True)
    error_field = models.CharField(max_length=300, blank=True)
    verdict = models.CharField(max_length=20, default="none")
    attempts = models.IntegerField(default=0)
    fence = models.BigIntegerField(default=0)
    looks = models.IntegerField(default=0)
    due_at = models.DateTimeField(null=True, blank=True)
    first_dispatched_at = models.DateTimeField(null=True, blank=True)
    uncertain_since = models.DateTimeField(null=True, blank=True)
    gate_open = models.BooleanField(default=False)
    approved_at = models.DateTimeField(null=True, blank=True)
    business_key = models.CharField(max_length=64, default="", db_default="", blank=True)
    external_id = models.CharField(max_length=200, blank=True)
    sealed_result = models.BinaryField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=database_now())
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "action_id"], name="action_once_per_identity"),
            models.UniqueConstraint(
                fields=["tenant", "run", "tool", "arguments_hash"],
                condition=Q(effect="write", settled_at__isnull=True),
                name="one_unsettled_write_per_meaning",
            ),
            models.UniqueConstraint(
                fields=["tenant", "parent"],
                condition=Q(role="undo") & ~Q(state__in=(*NEVER_HAPPENED, "conflict")),
                name="one_undo_per_effect",
            ),
            models.UniqueConstraint(
                fields=["tenant", "tool", "business_key"],
                condition=~Q(business_key="") & ~Q(state__in=WITHOUT_EFFECT),
                name="one_call_per_business_key",
            ),
            _one_of("effect", ("read", "write"), "action_effect_known"),
        ]
        indexes = [
            models.Index(fields=["tenant", "run", "id"], name="action_by_run"),
            models.Index(fields=["tenant", "parent"], name="action_parts", condition=Q(parent__isnull=False)),
            models.Index(
                fields=["tenant", "external_id"],
                name="action_by_remote_id",
                condition=~Q(external_id="") & Q(settled_at__isnull=True),
            ),
            models.Index(fields=["due_at", "id"], name="action_due", condition=Q(due_at__isnull=False)),
        ]


class Attempt(TenantRow):
    """One try of an action. Granted means dispatched: without a report by `lease_until` the outcome is unknown."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    action = models.ForeignKey(
        Action, on_delete=models.PROTECT, related_name="tries", db_constraint=False, db_index=False
    )
    number = models.IntegerField()
    fence = models.BigIntegerField()
    layer = models.CharField(max_length=80)
    idempotency_key = models.CharField(max_length=80, blank=True)
    dispatched_at = models.DateTimeField(db_default=database_now())
    lease_until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    latency_ms = models.BigIntegerField(null=True, blank=True)
    observed = models.CharField(max_length=20, null=True, blank=True)
    reason_code = models.CharField(max_length=40, null=True, blank=True)
    retry_after_seconds = models.FloatField(null=True, blank=True)
    observation = models.JSONField(null=True, blank=True)
    circuit = models.CharField(max_length=200, default="", db_default="", blank=True)
    trial = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "action", "number"], name="attempt_numbered_once")]
        indexes = [
            models.Index(fields=["lease_until", "id"], name="attempt_leased", condition=Q(ended_at__isnull=True))
        ]


class Evidence(TenantRow):
    """One thing learned about an action after the fact: a look, a late report, a callback, a person's word."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    action = models.ForeignKey(
        Action, on_delete=models.PROTECT, related_name="evidence", db_constraint=False, db_index=False
    )
    kind = models.CharField(max_length=20)
    verdict = models.CharField(max_length=20)
    count = models.PositiveIntegerField(null=True, blank=True)
    source = models.CharField(max_length=80)
    strength = models.PositiveSmallIntegerField()
    fact = models.TextField()
    raw = models.JSONField(null=True, blank=True)
    sealed_record = models.BinaryField(null=True, blank=True)
    external_id = models.CharField(max_length=200, blank=True)
    after_attempt = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    recorded_at = models.DateTimeField(db_default=database_now())

    class Meta:
        indexes = [models.Index(fields=["tenant", "action", "id"], name="evidence_by_action")]


class Effect(TenantRow):
    """A proven change in the world.

    `compensated_by` is the undo that took it back, or its own call where that was done outside. `residual` is what
    stays of it after its undo, `residual_minor` how much where that is known; a person signs for it (F142).
    """

    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="effects", db_constraint=False, db_index=False
    )
    action = models.OneToOneField(
        Action, on_delete=models.PROTECT, related_name="proven", db_constraint=False, db_index=False
    )
    step = models.CharField(max_length=120)
    external_id = models.CharField(max_length=200, blank=True)
    amount_minor = models.BigIntegerField(null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    proven_by = models.CharField(max_length=20)
    proven_at = models.DateTimeField(db_default=database_now())
    compensated_by = models.ForeignKey(
        Action,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    residual = models.CharField(max_length=10, default="", db_default="", blank=True)
    residual_minor = models.BigIntegerField(null=True, blank=True)
    signed_off_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "run", "id"], name="effect_by_run"),
            models.Index(fields=["tenant", "external_id"], name="effect_by_remote_id", condition=~Q(external_id="")),
        ]
        constraints = [
            _one_of("proven_by", ("response", "probe", "callback", "late_report", "person"), "effect_has_proof"),
            _one_of("residual", RESIDUALS, "effect_residual_known"),
        ]


class Event(TenantRow):
    """What happened, in order, for ever: the trace and the audit row in one (I11).

    `number` is that order for all that moves a run or its calls, for that is done under the lock of the run's row.
    Ids follow the clocks of the processes that made them, and a transaction may have its `txid` before it waits for
    the row. Rows of before numbers have 0 and follow their ids.
    """

    IN_ORDER = ("number", "pk")
    NEWEST_FIRST = ("-number", "-pk")

    run = models.ForeignKey(
        Run, null=True, on_delete=models.PROTECT, related_name="events", db_constraint=False, db_index=False
    )
    action = models.ForeignKey(
        Action, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    kind = models.CharField(max_length=40)
    actor = models.CharField(max_length=200)
    actor_kind = models.CharField(max_length=10)
    from_state = models.CharField(max_length=20, blank=True)
    to_state = models.CharField(max_length=20, blank=True)
    reason = models.TextField(blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    data = models.JSONField(default=dict)
    at = models.DateTimeField(db_default=database_now())
    txid = models.BigIntegerField(db_default=TransactionId())
    number = models.BigIntegerField(db_default=NextNumber(), editable=False)

    class Meta:
        constraints = [_one_of("actor_kind", ("person", "agent", "rule", "timer", "connector"), "event_actor_known")]
        indexes = [
            models.Index(fields=["tenant", "run", "number", "id"], name="event_in_order"),
            models.Index(fields=["tenant", "txid", "id"], name="event_feed"),
        ]


class Stop(TenantRow):
    """A switch that keeps calls from leaving, set by a person with a reason and, if it has one, an end.

    `scope` is everything, workflow, tool, connector or run; `name` says which. `mode`: halt lets nothing leave, drain
    lets runs that were open before it finish, quarantine hands every run that asks to a person.
    """

    scope = models.CharField(max_length=10)
    name = models.CharField(max_length=120, blank=True)
    mode = models.CharField(max_length=10)
    reason = models.TextField()
    by = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+", db_index=False)
    set_at = models.DateTimeField(db_default=database_now())
    until = models.DateTimeField(null=True, blank=True)
    lifted_at = models.DateTimeField(null=True, blank=True)
    lifted_by = models.ForeignKey(Person, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    lift_reason = models.TextField(blank=True)

    class Meta:
        constraints = [
            _one_of("scope", ("everything", "workflow", "tool", "connector", "run"), "stop_scope_known"),
            _one_of("mode", ("halt", "drain", "quarantine"), "stop_mode_known"),
            models.CheckConstraint(condition=~Q(reason=""), name="stop_has_a_reason"),
        ]
        indexes = [models.Index(fields=["tenant", "id"], name="stop_standing", condition=Q(lifted_at__isnull=True))]


class RateWindow(TenantRow):
    """How often a tool was permitted in one window of its rate limit; one guarded UPDATE reserves a call."""

    tool = models.CharField(max_length=120)
    window = models.BigIntegerField()
    calls = models.IntegerField(default=0, db_default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "tool", "window"], name="one_count_per_window")]


class Circuit(TenantRow):
    """Whether calls may go to one connector under one account (or to one tool that has none): DECISIONS 1.5.

    The row is made by the first fault, so a connector without trouble has none. `faults` are the times of the latest
    dependency faults, as far as they count; `volume` is how many calls there were when it opened. `since` is when it
    came into its state, `until` when a trial may be made. `released` counts what was let go again in one second, of
    `allowance`.
    """

    name = models.CharField(max_length=200)
    state = models.CharField(max_length=20, default="closed", db_default="closed")
    version = models.IntegerField(default=0, db_default=0)
    faults = ArrayField(models.DateTimeField(), default=list, blank=True)
    volume = models.IntegerField(default=0, db_default=0)
    trips = models.IntegerField(default=0, db_default=0)
    cooldown_seconds = models.FloatField(default=0, db_default=0)
    since = models.DateTimeField(db_default=database_now())
    until = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    reason = models.TextField(blank=True, default="", db_default="")
    by = models.ForeignKey(Person, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    released_second = models.BigIntegerField(default=0, db_default=0)
    released = models.IntegerField(default=0, db_default=0)
    allowance = models.IntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="one_circuit_per_name"),
            _one_of("state", ("closed", "open", "half_open", "held_open"), "circuit_state_known"),
            models.CheckConstraint(
                condition=~Q(state="open") | Q(until__isnull=False), name="circuit_open_until_a_time"
            ),
            models.CheckConstraint(
                condition=~Q(state="held_open") | (Q(by__isnull=False) & ~Q(reason="")),
                name="circuit_held_by_somebody",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "name"], name="circuit_not_closed", condition=~Q(state="closed"))]


class CircuitSlot(TenantRow):
    """One trial through a half-open circuit, with a lease of its own: a holder that dies blocks nobody (F111)."""

    circuit = models.ForeignKey(
        Circuit, on_delete=models.PROTECT, related_name="slots", db_constraint=False, db_index=False
    )
    attempt = models.ForeignKey(
        Attempt,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    trip = models.IntegerField()
    purpose = models.CharField(max_length=10)
    taken_at = models.DateTimeField(db_default=database_now())
    lease_until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    went_well = models.BooleanField(null=True, blank=True)

    class Meta:
        constraints = [_one_of("purpose", ("call", "look", "trial"), "slot_purpose_known")]
        indexes = [
            models.Index(fields=["tenant", "circuit", "trip"], name="slot_by_circuit"),
            models.Index(fields=["tenant", "attempt"], name="slot_by_attempt", condition=Q(attempt__isnull=False)),
        ]
