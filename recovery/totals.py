"""Totals of the open tasks: how many are alike in what a queue asks about, kept by PostgreSQL as tasks come and go.

Triggers write what every statement on tasks changed as rows of differences, and the sweep folds them into few. Nobody
waits for anybody, and at each moment the sum over the rows is exactly what a count of the tasks would say.
"""

from __future__ import annotations

import hashlib
import uuid

from django.db import connection, models
from django.db.models import Q

from runs.models import TenantRow


class CauseTotal(TenantRow):
    """A difference in the number of open tasks that are alike, or, once folded, their number.

    heap       names the cause: tenant, workflow, reason and tool.
    answer     whether anything changed in the world, a key of looks.ANYTHING_CHANGED.
    asleep     snoozed. `free`: in nobody's hands and given to nobody. `asked`: a second person is asked. `late`: past
               its time.
    n          tasks; `money` in minor units of `currency`. Of these tasks: `silent` write without an amount, `held`
               are in somebody's hands, `reading` only read, `looking` could be looked up, `running` have a clock
               that runs.
    """

    heap = models.CharField(max_length=12)
    workflow_name = models.CharField(max_length=80)
    reason_code = models.CharField(max_length=40)
    tool = models.CharField(max_length=120, blank=True)
    kind = models.CharField(max_length=30)
    owner_team = models.CharField(max_length=80)
    currency = models.CharField(max_length=3, blank=True)
    consequence = models.PositiveSmallIntegerField()
    answer = models.CharField(max_length=13)
    asleep = models.BooleanField()
    free = models.BooleanField()
    asked = models.BooleanField()
    late = models.BooleanField()
    n = models.BigIntegerField()
    money = models.DecimalField(max_digits=30, decimal_places=0)
    silent = models.BigIntegerField()
    held = models.BigIntegerField()
    reading = models.BigIntegerField()
    looking = models.BigIntegerField()
    running = models.BigIntegerField()
    folded = models.BooleanField(default=False, db_default=False)

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "heap"], name="total_by_cause"),
            models.Index(fields=["tenant"], name="total_unfolded", condition=Q(folded=False)),
        ]


def heap_of(tenant_id: uuid.UUID, workflow: str, reason: str, tool: str) -> str:
    """The name of a cause, twelve letters that are safe in an address; the same as `app_heap()`."""
    return hashlib.sha256("\x1f".join((str(tenant_id), workflow, reason, tool)).encode()).hexdigest()[:12]


def fold() -> int:
    """Put the differences of the open tenant together; returns how many rows that removed."""
    return _asked("SELECT app_fold_totals()")


def recount() -> int:
    """Count the open tenant's tasks anew and put right what differs; returns how many totals were wrong.

    Keeps every task of the tenant still while it counts: for an operator who has a reason to, never for a page.
    """
    return _asked("SELECT app_recount_totals()")


def _asked(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        found: int = cursor.fetchone()[0]
    return found
