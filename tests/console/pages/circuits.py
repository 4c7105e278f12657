"""Examples of the Circuits page: each state, the form with every error, and nothing in trouble."""

from console import looks
from console.pages.circuits import CircuitRow, CircuitsPage, HoldForm
from console.pages.common import Empty
from console.pages.confirm import Choice, Select
from tests.console.pages.shared import at


def _row(circuit_id: str, state: str, **more: object) -> CircuitRow:
    return CircuitRow(
        circuit_id, looks.CIRCUIT[state], "Connector `payments`, account `north`", "Nordlicht Energie",
        "apply_credit was answered 503.", "12 faults among 20 calls, opened 3 times", "1000 calls wait",
        at("10:20:00"), **more,
    )  # fmt: skip


def circuits_page() -> CircuitsPage:
    return CircuitsPage(
        title="Circuits",
        summary="3 circuits not closed",
        troubled=[
            _row("c1", "held_open", by="Omar Haddad", release_url="/circuits/c1/release/", error="Say why."),
            _row("c2", "open", until=at("10:42:00")),
            _row("c3", "half_open"),
        ],
        well=[_row("c4", "closed")],
        form=HoldForm(
            "/circuits/hold/",
            [Select("tenant", "Tenant", [Choice("north", "North", True)], "Choose a tenant.")],
            names=["connector:payments"],
            name="connector:paymnts",
            errors={"name": "No workflow calls anything of that name.", "reason": "Say why."},
        ),
    )


def empty_circuits_page() -> CircuitsPage:
    nothing = Empty("No circuit is open.", "A connector appears here once a call met a fault of its own.")
    return CircuitsPage("Circuits", "0 circuits not closed", [], [], nothing, form_words="Your role does not.")
