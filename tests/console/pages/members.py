"""An example of the members page."""

from console import looks
from console.pages.common import Tab
from console.pages.members import AbilityRow, MemberRow, MembersPage
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
    return MembersPage("Settings", "2 people", tabs, rows, ["admin", "viewer"], abilities, "/x/?after=1")
