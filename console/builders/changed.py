"""Did anything change? The answer for one call, which PostgreSQL gives, so that lists and pages read the same rule.

A task carries the answer about its call or, where it is about the run itself, about all that the run did.
"""

from __future__ import annotations

from django.db.models import CharField, F, Func

OUTSIDE = "unadmitted_effect"
"""A task about what another system did and no call admits: that it is there is what the task says."""
RANK = ("conflict", "unknown", "partly", "partly_undone", "yes", "undone", "no")
"""Keys of looks.ANYTHING_CHANGED, the one that outweighs the others first."""


def of_action() -> Func:
    """What an action changed."""
    return Func(F("tenant_id"), F("pk"), function="app_changed_by", output_field=CharField())


def worst(answers: list[str]) -> str:
    """One answer for several tasks: the one that outweighs the others."""
    return min(answers, key=RANK.index, default="no")
