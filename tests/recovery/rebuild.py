"""The states of runs and calls as their history alone tells them (I18): what is stored must be the same."""

from __future__ import annotations

import uuid

from runs import wall
from runs.models import Action, Event, Run
from runs.states import ACTION, RUN

FIRST = "planning"


def differing(tenant_id: uuid.UUID) -> dict[str, tuple[str, str]]:
    """What history and rows disagree about: name → (state by history, state in the row)."""
    with wall.within(tenant_id):
        told = _told(list(Event.objects.filter(run__isnull=False).order_by("run_id", *Event.IN_ORDER)))
        rows: dict[uuid.UUID, str] = dict(Run.objects.values_list("pk", "state"))
        rows |= dict(Action.objects.values_list("pk", "state"))
    return {str(row): (told[row], state) for row, state in rows.items() if row in told and told[row] != state}


def _told(events: list[Event]) -> dict[uuid.UUID, str]:
    states: dict[uuid.UUID, str] = {}
    for event in events:
        if "task" in event.data:
            continue  # what a task became; some of its states have the name of one of a call's
        if event.action_id is None:
            if event.to_state in RUN:
                states[event.run_id] = event.to_state
        elif event.kind in ("permitted", "succeeded") and event.to_state in RUN and event.to_state != "compensating":
            # The two hot statements write one event for both: its kind says what the call became.
            states[event.run_id], states[event.action_id] = event.to_state, event.kind
        elif event.to_state in ACTION:
            states[event.action_id] = event.to_state
    return states
