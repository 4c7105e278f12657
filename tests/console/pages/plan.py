"""An example of a plan: a line in every state, with a cost, a rest and a reason."""

from console import looks
from console.pages.common import Money
from console.pages.plan import PlanCard, PlanRow
from tests.console.pages.shared import at


def plan_card() -> PlanCard:
    whole = Money(500_000, "EUR")
    return PlanCard(
        rows=[
            PlanRow(1, "pay", "refund", looks.PLAN["partly"], "", whole, Money(250, "EUR"), Money(250, "EUR"),
                    "the declared cost of the undo; nobody has accepted it yet"),
            PlanRow(2, "book", "release", looks.PLAN["running"], amount=whole, until=at("12:00:00")),
            PlanRow(3, "mail", "", looks.PLAN["impossible"], "No undo is declared for it."),
            PlanRow(4, "reserve", "release", looks.PLAN["remaining"]),
        ],
        hash="5f" * 32,
        summary="1 partly compensated, 1 undoing, 1 cannot be undone, 1 remaining",
        remaining=["book", "mail", "reserve"],
        sums=[Money(1_000_000, "EUR")],
        costs=[Money(250, "EUR")],
        left=[Money(250, "EUR")],
        approval="A second person has approved exactly this plan.",
    )  # fmt: skip
