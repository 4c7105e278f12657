"""Examples of the Run pages."""

from console import looks, waterfall
from console.pages.common import Link, Tab
from console.pages.run import Budget, EventRow, Fact, PathStep, RunListPage, RunPage, RunRow
from tests.console.pages.plan import plan_card
from tests.console.pages.shared import CUSTOMER, RUN_ID, TOTALS, at, effects, live
from tests.console.pages.verbs import ask


def run_waterfall() -> waterfall.Waterfall:
    s = waterfall.Stretch
    lanes = [
        waterfall.Lane(
            "Model turns", [s(at("10:28:40"), at("10:28:50"), "move"), s(at("10:30:18"), at("10:30:24"), "move")]
        ),
        waterfall.Lane(
            "load_invoice",
            [s(at("10:30:25"), at("10:30:26"), "warn", "429"), s(at("10:30:57"), at("10:30:58"), "ok", "ok")],
        ),
        waterfall.Lane("wait 30 s", [s(at("10:30:26"), at("10:30:56"), "idle", "Retry-After 30 s")]),
        waterfall.Lane(
            "apply_credit",
            [
                s(at("10:31:10"), at("10:31:40"), "move", "30 s", True),
                s(at("10:31:40"), None, "unk", "outcome unknown, not final until 10:42:10", True),
            ],
        ),
        waterfall.Lane("draft_reply", [s(at("10:31:54"), None, "empty", "blocked by apply_credit", True)]),
        waterfall.Lane("Operator", [], [waterfall.Moment(at("10:35:00"), "task T-4127 opened")]),
    ]
    return waterfall.draw(
        lanes,
        start=at("10:28:40"),
        end=at("10:35:20"),
        label="The run from 10:28:40 to 10:35:20: one credit was dispatched and its outcome is unknown.",
        fired_at=at("10:35:00"),
        fired="max elapsed 380 s",
    )


def run_page() -> RunPage:
    run = looks.RUN
    return RunPage(
        run_id=RUN_ID,
        title="Refund the double charge on invoice INV-20931",
        state=run["escalated"],
        crumbs=[Link("Runs", "/runs/"), Link(RUN_ID, "", title=RUN_ID)],
        facts=[
            Fact("Outcome", "needs_human", strong=True),
            Fact("Reason", "external_outcome_unknown", mono=True),
            Fact("Effects", "0 proven", alarm="1 unknown, 120.00 EUR", alarm_css="unk"),
            Fact("Workflow", "billing-case v12"),
            Fact("Elapsed", "6 min 20 s, from 10:28:40"),
        ],
        customer=CUSTOMER,
        plan=plan_card(),
        waterfall=run_waterfall(),
        budgets=[
            Budget("Elapsed", 380, 380, "380 / 380 s", at("10:35:00")),
            Budget("Turns", 4, 12, "4 / 12"),
            Budget("Input tokens", 18204, 40000, "18,204 / 40,000"),
        ],
        path=[
            PathStep("planning", run["planning"], at("10:28:40"), 98),
            PathStep("waiting_for_tool", run["waiting_for_tool"], at("10:31:10"), 30),
            PathStep("escalated", run["escalated"], at("10:35:00"), 352, current=True),
        ],
        moves=[Link("Check what happened", "/tasks/T-4127/reconcile/")],
        moves_words="What you may do about it, from T-4127:",
        effects=effects(),
        totals=TOTALS,
        events=[
            EventRow(
                "e14",
                14,
                at("10:35:00.004"),
                looks.ACTOR["timer"],
                "Rule 9h: deadline passed while `apply_credit` was unknown.",
                before="verifying",
                after="escalated",
            ),
            EventRow(
                "e13",
                13,
                at("10:33:04.310"),
                looks.ACTOR["connector"],
                "LedgerPay look-up counted 0",
                actor_name="ledgerpay",
            ),
        ],
        event_tabs=[Tab("All", "?", "14", True), Tab("Evidence", "?e", "3")],
        raw_url="/runs/x/raw/",
        bundle_url="/runs/x/bundle/",
        plan_url="/runs/x/plan/",
        more_events_url="/runs/x/?under=e13#events",
        links=[Link("Task T-4127", "/tasks/T-4127/", "hand")],
        verbs=[ask("cancel", "Cancel", "Ends the run.", css="danger")],
        live=live("/runs/x/live/"),
    )


def run_list_page() -> RunListPage:
    states = [
        ("escalated", "needs_human", "external_outcome_unknown", "", "1 unknown"),
        ("recovering", "", "", "none", ""),
        ("completed", "ok", "completed", "2 proven", ""),
        ("failed", "fatal", "permission_denied", "none", ""),
    ]
    rows = [
        RunRow(
            RUN_ID,
            "Refund the double charge on invoice INV-20931",
            "/runs/x/",
            "Nordlicht Energie",
            "billing-case v12",
            looks.RUN[state],
            effects,
            at("10:28:40"),
            at("10:35:00"),
            outcome,
            reason,
            unknown,
            state == "recovering",
        )
        for state, outcome, reason, effects, unknown in states
    ]
    return RunListPage(
        "Runs",
        "4 runs",
        [Tab("All", "/runs/", "4", True), Tab("Live", "/runs/?live", "2")],
        rows,
        live("/runs/live/"),
        next_url="/runs/?before=x",
    )
