"""The conformance kit: what Steadyhand counts on in a connector, each promise a check (DECISIONS 5).

    pytest --pyargs steadyhand.testing.connector --connector my_package.ledger:connect \\
        --connector-url https://test.example
    pytest --pyargs steadyhand.testing.connector --connector flow.json --connector-tool credit \\
        --connector-arguments '{"account": "A1"}' --connector-url https://test.example

It writes to the system that it is pointed at. What a connector does not promise is not checked, and counts as
deselected.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from steadyhand.connector import Answer, Ask, checked, checked_page
from steadyhand.testing.proxy import BEFORE, Proxy, Trouble
from steadyhand.testing.subject import Subject

SLACK_SECONDS = 2.0
PATIENCE_SECONDS = 5.0


def look(connector: Any, ask: Ask) -> Answer:
    return checked(connector.reconcile(ask))


def shown(subject: Subject, connector: Any, ask: Ask) -> Answer:
    """The look-up's answer once an effect has had the time to show that is declared for it."""
    lag = subject.promises.max_visibility_lag_seconds
    until = time.monotonic() + (PATIENCE_SECONDS if lag is None else lag) + SLACK_SECONDS
    found = look(connector, ask)
    while found.verdict in ("absent", "processing", "failed") and time.monotonic() < until:
        time.sleep(0.05)
        found = look(connector, ask)
    return found


def attempt(call: Callable[[Ask], Any], ask: Ask) -> Exception | None:
    """Make a call that may be refused; gives back what it raised."""
    try:
        call(ask)
    except Exception as refused:  # whatever a connector raises, it did not say that it was done
        return refused
    return None


# --- counts ---------------------------------------------------------------------------------------------------


def test_nothing_is_absent_and_counted_as_none(subject: Subject, line: Proxy) -> None:
    found = look(subject.at(line.url), subject.ask())
    assert found.verdict == "absent", f"a call that was never made is {found.verdict}: {found.fact}"
    assert found.count == 0 or not subject.promises.counts, "an absence counts 0 effects"


def test_one_effect_is_present_with_its_id(subject: Subject, line: Proxy) -> None:
    connector, ask = subject.at(line.url), subject.ask()
    connector.execute(ask)
    found = shown(subject, connector, ask)
    assert found.verdict == "present", f"an effect that was made is {found.verdict}: {found.fact}"
    assert found.external_id, "a presence names the effect"
    assert found.count == 1 or not subject.promises.counts, "one effect is counted as one"


@pytest.mark.promised("counts")
def test_two_effects_under_one_reference_are_not_one(subject: Subject, line: Proxy) -> None:
    connector, ask = subject.at(line.url), subject.ask()
    connector.execute(ask)
    again = subject.ask(action_id=ask.action_id, run_id=ask.run_id)
    if attempt(connector.execute, again) is not None:
        return  # the system itself makes no second one under a reference
    shown(subject, connector, ask)
    found = look(connector, ask)
    told = found.verdict == "conflict" or (found.count or 0) > 1
    assert told, f"two effects are {found.verdict}, {found.count}: it looks whether there is one, and does not count"


# --- whose it is ----------------------------------------------------------------------------------------------


def test_a_look_alike_is_not_ours(subject: Subject, line: Proxy) -> None:
    connector, ask, other = subject.at(line.url), subject.ask(), subject.ask()
    connector.execute(other)
    shown(subject, connector, other)
    found = look(connector, ask)
    assert found.verdict == "absent", f"an equal effect of somebody else is taken for ours: {found.fact}"


def test_all_fields_are_compared(subject: Subject, line: Proxy) -> None:
    """Our reference on other values is no presence, unless the record shows them, for `match` to compare."""
    connector, ask, changed = subject.at(line.url), subject.ask(), subject.promises.changed()
    other = subject.ask(action_id=ask.action_id, run_id=ask.run_id, key=ask.key, arguments=changed)
    connector.execute(other)
    shown(subject, connector, other)
    found = look(connector, ask)
    assert found.verdict in ("conflict", "partial", "present"), f"it is {found.verdict}: {found.fact}"
    if found.verdict == "present":
        differing = {name: value for name, value in changed.items() if value != ask.arguments.get(name)}
        record = found.record if isinstance(found.record, dict) else {}
        assert all(record.get(name) == value for name, value in differing.items()), "other values are taken for ours"


# --- keys -----------------------------------------------------------------------------------------------------


@pytest.mark.promised("key")
def test_a_repeat_under_one_key_makes_no_second_effect(subject: Subject, line: Proxy) -> None:
    connector, ask = subject.at(line.url), subject.ask()
    connector.execute(ask)
    attempt(connector.execute, ask)
    shown(subject, connector, ask)
    found = look(connector, ask)
    assert (found.verdict, found.count) == ("present", 1), (
        f"sent twice under one key it is {found.count}: {found.fact}"
    )


@pytest.mark.promised("key")
def test_a_key_with_other_arguments_is_refused(subject: Subject, line: Proxy) -> None:
    if not subject.promises.compares_arguments:
        return
    connector, ask = subject.at(line.url), subject.ask()
    connector.execute(ask)
    other = subject.ask(key=ask.key, arguments=subject.promises.changed())
    refused = attempt(connector.execute, other)
    assert refused is not None, "the same key with other arguments was accepted as if it were done"
    assert look(connector, other).verdict == "absent", "it was refused, and done all the same"


@pytest.mark.promised("key")
def test_the_claim_about_a_keys_life_can_be_kept(subject: Subject) -> None:
    claim, flight = subject.promises.retention_seconds, subject.promises.max_in_flight_seconds
    unlimited = claim == "unlimited"
    lasting = isinstance(claim, (int, float)) and not isinstance(claim, bool) and claim > 0
    assert unlimited or lasting, "say how long a key is remembered: seconds, or unlimited"
    assert unlimited or flight is not None, "without max_in_flight_seconds nobody knows when a key ran out"
    if lasting and flight is not None and not unlimited:
        assert float(claim or 0) > flight + subject.promises.timeout_seconds, "a key ends before its call may land"


# --- bounds ---------------------------------------------------------------------------------------------------


def test_an_effect_shows_within_the_declared_lag(subject: Subject, line: Proxy) -> None:
    connector, ask = subject.at(line.url), subject.ask()
    connector.execute(ask)
    found = shown(subject, connector, ask)
    lag = subject.promises.max_visibility_lag_seconds
    assert found.verdict == "present", f"after {lag} seconds, the declared lag, it does not show: {found.fact}"


# --- absent is not failed -------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", BEFORE)
def test_a_look_up_that_gets_no_answer_says_failed(subject: Subject, line: Proxy, trouble: Trouble) -> None:
    connector, ask = subject.at(line.url), subject.ask()
    line.trouble = trouble
    try:
        said = look(connector, ask).verdict
    except Exception:  # an exception is a look-up that failed, as it should be
        said = "failed"
    assert said == "failed", f"a system in trouble ({trouble}) is taken for one that answered: {said}"
    assert line.arrivals, "it asked somebody else than the address that it was given"
    assert line.repeats() == [], f"the look-up was repeated by itself: {line.repeats()}"


def test_a_look_up_ends_at_its_deadline(subject: Subject, line: Proxy) -> None:
    connector, ask = subject.at(line.url), subject.ask()
    line.trouble, line.hang_seconds = "hang", subject.promises.timeout_seconds + 3 * SLACK_SECONDS
    started = time.monotonic()
    try:
        said = look(connector, ask).verdict
    except Exception:  # an exception is a look-up that failed, as it should be
        said = "failed"
    took = time.monotonic() - started
    assert said == "failed", f"nobody answered, and it says {said}"
    assert took < subject.promises.timeout_seconds + SLACK_SECONDS, f"it took {took:.1f} seconds"
    assert line.repeats() == [], f"the look-up was repeated by itself: {line.repeats()}"


# --- no hidden retry ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", [*BEFORE, "lost"])
def test_one_send_is_one_arrival(subject: Subject, line: Proxy, trouble: Trouble) -> None:
    connector, ask = subject.at(line.url), subject.ask()
    line.trouble = trouble
    attempt(connector.execute, ask)
    writes = [one for one in line.arrivals if one[0] != "GET"]
    assert len(writes) == 1, f"one send arrived {len(writes)} times: a client in it tries again by itself"


# --- undo -----------------------------------------------------------------------------------------------------


@pytest.mark.promised("undo")
def test_an_undo_sent_twice_is_done_once(subject: Subject, line: Proxy) -> None:
    connector, ask = subject.at(line.url), subject.ask()
    undo = subject.undo_of(connector.execute(ask))
    first = connector.compensate(undo)
    again: list[Any] = []
    refused = attempt(lambda one: again.append(connector.compensate(one)), undo)
    try:
        count = look(connector, undo).count
    except Exception:  # not every undo can be looked up; then its answers have to speak
        count = None
    assert count is None or count <= 1, f"the undo was done {count} times"
    assert count is not None or refused is not None or again == [first], "a second undo got another answer"


# --- listing --------------------------------------------------------------------------------------------------


@pytest.mark.promised("lists")
def test_a_listing_holds_each_effect_once_and_in_its_interval(subject: Subject, line: Proxy) -> None:
    connector, ask = subject.at(line.url), subject.ask()
    before = datetime.now(timezone.utc) - timedelta(seconds=SLACK_SECONDS)
    connector.execute(ask)
    made = shown(subject, connector, ask).external_id
    after = datetime.now(timezone.utc) + timedelta(seconds=SLACK_SECONDS)
    assert _listed(connector, before, after).count(made) == 1, "an effect of the interval is not in it exactly once"
    earlier = _listed(connector, before - timedelta(hours=1), before)
    assert made not in earlier, "an effect is listed in an interval that ended before it was made"


@pytest.mark.promised("lists")
@pytest.mark.parametrize("trouble", BEFORE)
def test_a_listing_that_gets_no_answer_is_no_empty_one(subject: Subject, line: Proxy, trouble: Trouble) -> None:
    connector, now = subject.at(line.url), datetime.now(timezone.utc)
    line.trouble = trouble
    try:
        found = _listed(connector, now - timedelta(hours=1), now)
    except Exception:  # whatever it raises, it did not say that there was nothing
        return
    raise AssertionError(f"a system in trouble ({trouble}) is taken for one that did {found or 'nothing'}")


def _listed(connector: Any, since: datetime, until: datetime) -> list[str]:
    found: list[str] = []
    cursor = ""
    for _ in range(200):
        page = checked_page(connector.list_effects(since, until, cursor))
        found += [one.external_id for one in page.effects]
        if not page.cursor:
            return found
        cursor = page.cursor
    raise AssertionError("the listing has no end")
