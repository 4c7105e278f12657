"""An example of the members page."""

from console import looks
from console.pages.common import Link, Tab
from console.pages.confirm import Choice
from console.pages.members import AbilityRow, ChangeRow, MemberRow, MembersPage, RolesPage, WaitingChange
from tests.console.pages.shared import at


def members_page() -> MembersPage:
    active, gone = looks.MEMBER["active"], looks.MEMBER["deactivated"]
    rows = [
        MemberRow("Ada", "ada@people.example", "Nordlicht Energie", "admin, oncall", active, looks.MEMBER["factor"],
                  at("10:00:00"), you=True),
        MemberRow("Bob", "bob@people.example", "Nordlicht Energie", "viewer", gone, looks.MEMBER["password_only"]),
    ]  # fmt: skip
    abilities = [AbilityRow("comment", [looks.MEMBER["may"], looks.MEMBER["may_not"]])]
    tabs = [Tab("Members", "/settings/members/", current=True)]
    asked = ("Bob", "Nordlicht Energie", "viewer", "admin", "Ada", "A new job.", at("10:00:00"), at("11:00:00"))
    waiting = [WaitingChange(*asked, "/x/"), WaitingChange(*asked, fixed="Another admin answers this.")]
    roles = ["admin", "viewer"]
    return MembersPage("Settings", "2 people", tabs, rows, roles, abilities, waiting, "/x/?after=1")


def roles_page() -> RolesPage:
    yes, no = looks.MEMBER["may"], looks.MEMBER["may_not"]
    return RolesPage(
        "Roles of Bob", "in Nordlicht Energie", [Link("Roles", "")], "nordlicht", "/x/",
        "/x/?tenant=nordlicht", "viewer", [Choice("viewer", "viewer", True), Choice("admin", "admin")], True, "admin",
        ["admin"], [ChangeRow("comment", no, yes, True), ChangeRow("read", yes, yes, False)], "A second.",
        "Ask a second admin", "there is no such role.", "k", "viewer", "typed", "Blocked: something.",
    )  # fmt: skip


def bare_roles_page() -> RolesPage:
    return RolesPage("Roles of Bob", "in Harbor", [], "harbor", "/x/", "/x/", "viewer", [Choice("viewer", "viewer")])
