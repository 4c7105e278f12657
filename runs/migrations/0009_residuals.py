"""What stays of an effect after its undo, an undo that is ordered anew, and who may give one up."""

from django.db import migrations, models

from runs import ddl

RIGHTS = f"GRANT UPDATE (residual, residual_minor, signed_off_at) ON runs_effect TO {ddl.APP_ROLE};"


def statements() -> str:
    return "\n".join([ddl.fill_moves("action"), ddl.name_movers(), RIGHTS])


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0008_circuits"),
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
                    ("waive", "waive"),
                ),
            },
        ),
        migrations.RemoveConstraint(
            model_name="action",
            name="one_undo_per_effect",
        ),
        migrations.AddField(
            model_name="run",
            name="approved_plan",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="effect",
            name="residual",
            field=models.CharField(blank=True, db_default="", default="", max_length=10),
        ),
        migrations.AddField(
            model_name="effect",
            name="residual_minor",
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="effect",
            name="signed_off_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name="action",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("role", "undo"),
                    models.Q(("state__in", ("rejected", "refused_permanent", "void", "conflict")), _negated=True),
                ),
                fields=("tenant", "parent"),
                name="one_undo_per_effect",
            ),
        ),
        migrations.AddConstraint(
            model_name="effect",
            constraint=models.CheckConstraint(
                condition=models.Q(("residual__in", ["", "fee", "part", "untold", "whole"])),
                name="effect_residual_known",
            ),
        ),
        migrations.RunSQL(statements(), migrations.RunSQL.noop),
    ]
