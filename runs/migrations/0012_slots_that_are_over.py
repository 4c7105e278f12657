"""Slots of trials that are over are removed when their circuit opens again; they are no facts, only leases."""

from django.db import migrations

from runs import ddl


class Migration(migrations.Migration):
    dependencies = [("runs", "0011_event_order")]
    operations = [
        migrations.RunSQL(
            f"GRANT DELETE ON runs_circuitslot TO {ddl.APP_ROLE};",
            f"REVOKE DELETE ON runs_circuitslot FROM {ddl.APP_ROLE};",
        )
    ]
