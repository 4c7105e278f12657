"""The ability to do a verb for more tasks at once than a few."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0014_words"),
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
                    ("bulk", "bulk"),
                ),
            },
        ),
    ]
