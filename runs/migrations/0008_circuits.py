"""Circuits: one row for each connector that was in trouble, slots for its trials, and the wall around both."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import runs.ids
import runs.querysets
from runs import ddl

TABLES = ("runs_circuit", "runs_circuitslot")
RIGHTS = f"""
REVOKE DELETE, TRUNCATE ON runs_circuit, runs_circuitslot FROM {ddl.APP_ROLE};
REVOKE UPDATE ON runs_circuitslot FROM {ddl.APP_ROLE};
GRANT UPDATE (attempt_id, lease_until, ended_at, went_well) ON runs_circuitslot TO {ddl.APP_ROLE};
"""


def statements() -> str:
    return "\n".join(
        [
            *(ddl.wall(name) for name in TABLES),
            *(ddl.belongs(name) for name in TABLES),
            ddl.link("runs_circuitslot", "circuit_id", "runs_circuit"),
            ddl.link("runs_circuitslot", "attempt_id", "runs_attempt"),
            ddl.fill_moves("circuit"),
            ddl.held_moves("runs_circuit", "circuit"),
            ddl.name_movers(),
            RIGHTS,
        ]
    )


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0007_business_key"),
        ("recovery", "0008_early_rollback"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="tenant",
            options={
                "default_permissions": (),
                "permissions": (
                    ("view", "view"),
                    ("claim", "claim"),
                    ("comment", "comment"),
                    ("reconcile", "reconcile"),
                    ("retry", "retry"),
                    ("resume", "resume"),
                    ("cancel", "cancel"),
                    ("audit", "audit"),
                    ("administer", "administer"),
                    ("approve", "approve"),
                    ("attest", "attest"),
                    ("compensate", "compensate"),
                    ("replay", "replay"),
                    ("stop", "stop"),
                    ("stop_run", "stop run"),
                    ("top_up", "top up"),
                    ("circuit", "circuit"),
                ),
            },
        ),
        migrations.AddField(
            model_name="attempt",
            name="circuit",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.AddField(
            model_name="attempt",
            name="trial",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.CreateModel(
            name="Circuit",
            fields=[
                ("id", models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=200)),
                ("state", models.CharField(db_default="closed", default="closed", max_length=20)),
                ("version", models.IntegerField(db_default=0, default=0)),
                (
                    "faults",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.DateTimeField(), blank=True, default=list, size=None
                    ),
                ),
                ("volume", models.IntegerField(db_default=0, default=0)),
                ("trips", models.IntegerField(db_default=0, default=0)),
                ("cooldown_seconds", models.FloatField(db_default=0, default=0)),
                ("since", models.DateTimeField(db_default=runs.querysets.AppNow())),
                ("until", models.DateTimeField(blank=True, null=True)),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
                ("reason", models.TextField(blank=True, db_default="", default="")),
                ("released_second", models.BigIntegerField(db_default=0, default=0)),
                ("released", models.IntegerField(db_default=0, default=0)),
                ("allowance", models.IntegerField(db_default=0, default=0)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.tenant",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="CircuitSlot",
            fields=[
                ("id", models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("trip", models.IntegerField()),
                ("purpose", models.CharField(max_length=10)),
                ("taken_at", models.DateTimeField(db_default=runs.querysets.AppNow())),
                ("lease_until", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("went_well", models.BooleanField(blank=True, null=True)),
                (
                    "attempt",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.attempt",
                    ),
                ),
                (
                    "circuit",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="slots",
                        to="runs.circuit",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.tenant",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="circuit",
            index=models.Index(
                condition=models.Q(("state", "closed"), _negated=True),
                fields=["tenant", "name"],
                name="circuit_not_closed",
            ),
        ),
        migrations.AddConstraint(
            model_name="circuit",
            constraint=models.UniqueConstraint(fields=("tenant", "name"), name="one_circuit_per_name"),
        ),
        migrations.AddConstraint(
            model_name="circuit",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["closed", "half_open", "held_open", "open"])),
                name="circuit_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="circuit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "open"), _negated=True), ("until__isnull", False), _connector="OR"
                ),
                name="circuit_open_until_a_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="circuit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "held_open"), _negated=True),
                    models.Q(("by__isnull", False), models.Q(("reason", ""), _negated=True)),
                    _connector="OR",
                ),
                name="circuit_held_by_somebody",
            ),
        ),
        migrations.AddIndex(
            model_name="circuitslot",
            index=models.Index(fields=["tenant", "circuit", "trip"], name="slot_by_circuit"),
        ),
        migrations.AddIndex(
            model_name="circuitslot",
            index=models.Index(
                condition=models.Q(("attempt__isnull", False)), fields=["tenant", "attempt"], name="slot_by_attempt"
            ),
        ),
        migrations.AddConstraint(
            model_name="circuitslot",
            constraint=models.CheckConstraint(
                condition=models.Q(("purpose__in", ["call", "look", "trial"])), name="slot_purpose_known"
            ),
        ),
        migrations.RunSQL(statements(), migrations.RunSQL.noop),
    ]
