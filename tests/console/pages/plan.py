"""An example of a plan: a line in every state, with a cost, a rest and a reason."""

from dataclasses import replace

from console import looks
from console.pages.common import Empty, Link, Money
from console.pages.plan import PlanCard, PlanPage, PlanRow, PlanWord
from tests.console.pages.shared import RUN_ID, at, live


def plan_card() -> PlanCard:
    whole, can, undo = Money(500_000, "EUR"), looks.REVERSAL, looks.UNDO
    return PlanCard(
        rows=[
            PlanRow(
                1, "pay", "refund", looks.PLAN["partly"], can["undone_in_part"], undo["succeeded"],
                amount=whole, cost=Money(250, "EUR"), left=Money(250, "EUR"),
                left_words="the declared cost of the undo; nobody has accepted it yet",
            ),
            PlanRow(
                2, "book", "release", looks.PLAN["running"], can["reversible"], undo["permitted"],
                amount=whole, until=at("12:00:00"),
            ),
            PlanRow(3, "mail", "", looks.PLAN["impossible"], can["no_way"], words="No undo is declared for it."),
            PlanRow(4, "reserve", "release", looks.PLAN["remaining"], can["reversible"]),
        ],
        hash="5f" * 32,
        summary="1 partly compensated, 1 undoing, 1 cannot be undone, 1 remaining",
        remaining=["book", "mail", "reserve"],
        sums=[Money(1_000_000, "EUR")],
        costs=[Money(250, "EUR")],
        left=[Money(250, "EUR")],
        approval="A second person has approved exactly this plan.",
    )  # fmt: skip


def plan_page() -> PlanPage:
    return PlanPage(
        run_id=RUN_ID,
        title="Plan of what is undone: Refund the double charge",
        told="This run is taken back.",
        state=looks.RUN["executing"],
        crumbs=[Link("Runs", "/runs/"), Link("Plan", "")],
        live=live("/runs/x/plan/live/"),
        run=Link("Run", "/runs/x/", "activity"),
        plan=plan_card(),
        words=[
            PlanWord(at("10:40:00"), "ada", "Approve", "Agreed by phone.", "5f" * 32, "the plan as it is now"),
            PlanWord(at("10:31:00"), "omar", "Cancel the run", "No longer wanted.", ""),
        ],
        moves=[Link("Accept what stays", "/tasks/T-4127/waive/")],
        moves_words="What you may do about it, from T-4127:",
    )


def empty_plan_page() -> PlanPage:
    return replace(
        plan_page(), plan=None, words=[], moves=[], moves_words="This state is final.",
        empty=Empty("Nothing is to be undone.", "A plan lists each write of a run."),
    )  # fmt: skip
