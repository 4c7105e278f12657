"""Every stored decision, decided again from its own snapshot: the recommendation must come out the same."""

from __future__ import annotations

import uuid

from recovery import recompute
from recovery.models import Decision
from runs import wall


def differing(tenant_id: uuid.UUID) -> dict[str, str]:
    """What comes out otherwise than it was recorded: decision → the difference."""
    with wall.within(tenant_id):
        asked = [one for one in Decision.objects.all() if one.action_id is not None]
        found = {f"{one.verb} {one.pk}": recompute.differs(one) for one in asked}
    return {name: difference for name, difference in found.items() if difference is not None}
