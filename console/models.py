"""The edge's own rows: they belong to the installation, not to a tenant."""

from django.db import models

from runs.querysets import database_now


class Invitation(models.Model):
    """A one-time link, known only by its digest; used once, by one guarded UPDATE."""

    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(db_default=database_now())
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"invitation of {self.created_at:%Y-%m-%d %H:%M}"
