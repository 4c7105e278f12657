"""The edge's own rows: what belongs to the installation, who is at which task, and named views of the queue."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from recovery.models import HumanTask
from runs.models import TenantRow
from runs.querysets import database_now


class Invitation(models.Model):
    """A one-time link, known only by its digest; used once, by one guarded UPDATE."""

    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(db_default=database_now())
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"invitation of {self.created_at:%Y-%m-%d %H:%M}"


class Presence(TenantRow):
    """Somebody before a task: `doing` is "looking", or "deciding" while the sheet of `verb` is open, since `since`.

    It is told anew every few seconds; a row whose `seen_at` is older than presence.GONE_AFTER is nobody.
    """

    task = models.ForeignKey(
        HumanTask, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    doing = models.CharField(max_length=10)
    verb = models.CharField(max_length=20, blank=True)
    since = models.DateTimeField(db_default=database_now())
    seen_at = models.DateTimeField(db_default=database_now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "task", "person"], name="one_presence_per_task"),
            models.CheckConstraint(condition=Q(doing__in=("looking", "deciding")), name="presence_known"),
        ]
        indexes = [models.Index(fields=["tenant", "seen_at"], name="presence_recent")]

    def __str__(self) -> str:
        return f"{self.person_id} {self.doing}"


class SavedView(TenantRow):
    """A name for one address of the queue: a person's own, or of everybody in the tenant where `person` is empty."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000, blank=True)
    created_at = models.DateTimeField(db_default=database_now())
    changed_at = models.DateTimeField(db_default=database_now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "tenant", "person", Lower("name"), condition=Q(person__isnull=False), name="own_view_named_once"
            ),
            models.UniqueConstraint(
                "tenant", Lower("name"), condition=Q(person__isnull=True), name="team_view_named_once"
            ),
            models.CheckConstraint(condition=~Q(name=""), name="view_has_a_name"),
        ]
        indexes = [models.Index(fields=["tenant", "person"], name="views_of_tenant")]

    def __str__(self) -> str:
        return self.name
