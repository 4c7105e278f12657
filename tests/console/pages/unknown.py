"""An example of the Unknown writes page: an open window that can be checked, and one that is settled by hand."""

from datetime import timedelta

from console import looks, waterfall
from console.pages.common import Empty, Flash, Money, Verb
from console.pages.queue import News
from console.pages.unknown import UnknownPage, WindowRow, WriteRow
from console.waterfall import Lane, Stretch
from tests.console.pages.shared import NOW, at, live


def unknown_page() -> UnknownPage:
    write = WriteRow(
        "Refund the double charge", "/tasks/T-4081/", "T-4081", "apply_credit", at("10:02:14"), looks.UNKNOWN,
        amount=Money(31_000, "EUR"), looked="No record is ours, 10:09:00 UTC", final_at=at("10:18:14"), owner="Omar",
    )  # fmt: skip
    check = Verb(
        "reconcile", "Check what happened, 14", "scan-search", "/bulk/new/?verb=reconcile", "Asks the provider.",
        recommended=True, method="link",
    )  # fmt: skip
    large = WindowRow(
        "a1b2c3d4e5f6", "payments", "apply_credit", "Nordlicht Energie", at("10:02:14"), at("10:11:00"), 14,
        [Money(161_000, "EUR")], 1, at("10:02:14"), looks.FINAL["now"].saying("Now, for all"),
        looks.CIRCUIT["half_open"].saying("Circuit half open"), "/unknown/", health_words="two trials went well",
        owners="You, Omar", verb=check, open=True, rows=[write], more_url="/unknown/?after=x",
    )  # fmt: skip
    alone = WindowRow(
        "b1b2c3d4e5f6", "No look-up", "send_notice", "Harbor Travel", at("09:12:00"), at("09:12:00"), 1, [], 0,
        at("09:12:00"), looks.FINAL["never"], looks.NO_LOOK_UP, "/unknown/?open=b1b2c3d4e5f6",
        verb=Verb("attest", "Settle by hand", "file-check", "/?view=unknown", "Each by its own task.", method="link"),
        hint="nobody can be asked",
    )  # fmt: skip
    lanes = [Lane("payments", [Stretch(at("10:02:14"), at("10:11:00"), "unk", "14 unknown writes", dashed=True)])]
    return UnknownPage(
        "Unknown writes", "15 writes, the oldest since 09:12:00 UTC", [Money(161_000, "EUR")], 1,
        live("/unknown/news/"), [large, alone],
        chart=waterfall.draw(lanes, start=NOW - timedelta(hours=2), end=NOW, label="Unknown writes of 1 connector"),
        news=News("1 new write, show", "/unknown/"), cut="The first 2 of 3 windows are shown.",
        flashes=[Flash(looks.NOTICE["info"], "A part of this address was not used.")],
    )  # fmt: skip


def empty_unknown_page() -> UnknownPage:
    empty = Empty("No write is unknown.", "Checked 10:40:52 UTC.")
    return UnknownPage("Unknown writes", "no write is unknown", [], 0, live("/unknown/news/"), [], empty=empty)
