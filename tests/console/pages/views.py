"""Examples of the Saved views page: one's own, the team's, one that can be opened no more, and a form with errors."""

from console import looks
from console.pages.common import Empty
from console.pages.confirm import Choice, Select
from console.pages.views import SaveForm, ViewRow, ViewsPage


def _row(view_id: str, name: str, icon: str, whose: str, **more: object) -> ViewRow:
    link = f"https://desk.example/?view={view_id}"
    told = {"words": "Unknown writes, Tool: apply_credit", "broken": "", "url": f"/?view={view_id}", "link": link}
    return ViewRow(view_id, name, icon, whose, look=looks.UNREADABLE, **{**told, **more})


def views_page() -> ViewsPage:
    change = {"rename_url": "/views/v1/rename/", "delete_url": "/views/v1/delete/"}
    return ViewsPage(
        title="Saved views",
        summary="3 of yours and your teams'",
        rows=[
            _row("v1", "Billing, mornings", "bookmark", "Only you", error="There is a view of this name.", **change),
            _row("v2", "On-call EU", "users", "Team"),
            _row(
                "v3", "Last winter", "bookmark", "Only you", words="", broken="It cannot be opened.", url="", link=""
            ),
        ],
        form=SaveForm(
            "/views/",
            "view=unknown",
            "Unknown writes",
            Select("where", "For", [Choice("me:nordlicht", "Only me", True)], "Say whom it is for."),
            "Billing",
            "There is a view of this name.",
        ),
    )


def empty_views_page() -> ViewsPage:
    return ViewsPage("Saved views", "none", [], empty=Empty("No view is saved.", "Narrow the queue."))
