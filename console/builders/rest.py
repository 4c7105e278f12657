"""What a call waits for while what it would ask is given a rest: the sentence on its task and its run (F115)."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from console import looks
from console.builders import words
from console.builders.circuits import named
from console.builders.record import Record
from console.pages.common import Flash
from recovery.rules import circuit as rules
from runs.models import Action, Circuit


def of(record: Record, action: Action | None, now: datetime) -> Flash | None:
    """Why no look-up is made of this call now; None where its circuit is closed or nothing is planned."""
    tool = record.tool(action) if action is not None else None
    if action is None or tool is None or action.settled_at is not None or action.due_at is None:
        return None
    asked = record.definition.tools.get(tool.poll.tool) if tool.poll else None
    ways = {rules.of_look(tool), rules.of_call(asked) if asked else None}
    circuit = Circuit.objects.filter(~Q(state="closed"), tenant_id=action.tenant_id, name__in=ways - {None}).first()
    if circuit is None:
        return None
    until = f"A trial is made from {words.moment(circuit.until, now)} on." if circuit.until else "Trials decide."
    held = "A person holds it open." if circuit.state == "held_open" else until
    text = f"{named(circuit)} is given a rest: {circuit.reason} {held} The clock of this task runs on."
    return Flash(looks.NOTICE["info"], "The look-up waits for the circuit.", text)
