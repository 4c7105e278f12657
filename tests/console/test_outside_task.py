"""The task about an effect that no call admits: it says that the effect is there, and tells no customer anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from recovery.models import HumanTask
from runs import wall
from tests.console.conftest import House
from tests.console.desk import said
from tests.console.test_task import plain, text
from tests.factories import register
from tests.failures import books
from tests.failures.test_outside import Ledger, listed, manifest
from tests.recovery.installed import installed

pytestmark = pytest.mark.django_db


def test_what_no_call_admits_did_change_something(
    house: House, sign_in: Callable[[str], Client], tmp_path: Path
) -> None:
    ledger = Ledger()
    with installed(tmp_path, books.NAME, ledger):
        register(house.agent, manifest())
        ledger.made("cr_9", ago=-300, amount_minor=12000, currency="EUR")
        listed(house.nordlicht)
    with wall.within(house.nordlicht.pk):
        task = HumanTask.objects.get(reason_code="unadmitted_effect")
    alice = sign_in("alice")
    page = said(alice.get(f"/tasks/{task.pk}/"))
    assert "Yes, outside The other system lists it; no call on record made it." in page
    assert "Nothing to tell yet" in page
    assert "under review" not in page, "nobody asked for it, so nobody was told anything"
    facts = page[page.index("Strongest first") :]
    assert "cr_9, currency EUR, amount_minor 12000; first listed" in facts, "the effect is shown and not only told of"
    assert f"{books.NAME} listing" in facts
    assert "Close the question" in page
    assert "Cancel the run" not in page
    assert "Yes, proven" in plain(text(alice, "/")), "the list says as little as the page that nothing changed"
