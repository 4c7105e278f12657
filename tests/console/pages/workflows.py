"""Examples of the workflow pages: everything set, and as little as there can be."""

from console import looks
from console.pages.common import Empty, Link, Tab
from console.pages.workflows import (
    DiffPage,
    DiffRow,
    ToolRow,
    VersionRow,
    WorkflowPage,
    WorkflowRow,
    WorkflowsPage,
)
from tests.console.pages.shared import at

URL = "/settings/workflows/billing-case/"
TABS = [Tab("Workflows", "/settings/workflows/", current=True)]


def workflows_page() -> WorkflowsPage:
    full = WorkflowRow(
        "billing-case", URL, "Nordlicht Energie", 3, "Billing case", "4 tools, 3 writes", at("10:00:00"),
        "billing-agent", "1000+", "2", "2 cautions",
    )  # fmt: skip
    bare = WorkflowRow("a-case", URL, "Harbor Travel", 1, "", "1 tool, 0 writes", at("09:00:00"), "not recorded")
    return WorkflowsPage("Settings", "2 workflows", TABS, [full, bare], ["0195e2b9-0000"], f"{URL}?after=x")


def empty_workflows_page() -> WorkflowsPage:
    return WorkflowsPage("Settings", "0 workflows", TABS, [], empty=Empty("No workflow is registered yet.", "Soon."))


def workflow_page() -> WorkflowPage:
    tool = ToolRow(
        "apply_credit", "Credit an account", "write, version 3", ["a valid reply proves it", "by `payments`"],
        "by `void_credit`", ["waits for an approval", "once per `invoice`"],
    )  # fmt: skip
    versions = [
        VersionRow(2, f"{URL}?version=2", at("10:00:00"), "billing-agent", "3", True, f"{URL}diff/?from=1&to=2"),
        VersionRow(1, f"{URL}?version=1", at("09:00:00"), "not recorded", "none"),
    ]
    return WorkflowPage(
        "billing-case", "Billing case, version 2", [Link("Settings", "/settings/"), Link("billing-case", "")],
        [("Budgets", "12 turns"), ("Must be proven", "`apply_credit`")],
        [("tools.1.idempotency", "The key licenses no second send.")], [tool], 3, versions, f"{URL}?before=1",
        '{"title": "Billing case"}', "Cut.",
    )  # fmt: skip


def bare_workflow_page() -> WorkflowPage:
    return WorkflowPage("a-case", "without a title", [], [], [], [], 0, [], "", "{}")


def diff_page() -> DiffPage:
    rows = [
        DiffRow("tool `apply_credit`: `compensate`", looks.CHANGE["removed"], '{"tool": "void_credit"}', "",
                "It can no longer be undone from here.", looks.CHANGE["weaker"]),
        DiffRow("workflow: `sla_seconds`", looks.CHANGE["changed"], "3600", "600"),
    ]  # fmt: skip
    crumbs = [Link("Settings", "/settings/"), Link("What differs", "")]
    return DiffPage(
        "billing-case, version 1 to 2", "2 differences", crumbs, [2, 1], f"{URL}diff/", "nordlicht", 1, 2, rows, 1, 7
    )


def empty_diff_page() -> DiffPage:
    nothing = Empty("Nothing differs.", "It is the same version twice.")
    return DiffPage("a-case", "0 differences", [], [1], f"{URL}diff/", "nordlicht", 1, 1, [], empty=nothing)
