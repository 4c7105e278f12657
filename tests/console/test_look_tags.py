"""What the template tags print: money, times, ids and clocks, as tables; and the geometry of the waterfall."""

from datetime import timedelta

import pytest
from django.template import Context

from console import waterfall
from console.looks import ACTION, RUN
from console.pages.common import Money, Sla
from console.templatetags import look
from tests.console.pages.shared import NOW, at

HERE = Context({"now": NOW})


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Money(171600, "GBP"), "1,716.00 GBP"),
        (Money(5, "EUR"), "0.05 EUR"),
        (Money(-1250, "EUR"), "-12.50 EUR"),
        (Money(1200, "JPY"), "1,200 JPY"),
        (Money(12345, "KWD"), "12.345 KWD"),
        (None, "none"),
    ],
)
def test_money_is_exact_and_names_its_currency(amount: Money | None, text: str) -> None:
    assert look.money(amount) == text


def test_sums_stand_side_by_side() -> None:
    euros, pounds, yen = Money(100, "EUR"), Money(200, "GBP"), Money(3, "JPY")
    assert look.sums([]) == "no money"
    assert look.sums([euros, pounds, yen]) == "1.00 EUR, 2.00 GBP and 3 JPY"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.9, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (552, "9 min 12 s"),
        (6720, "1 h 52 min"),
        (3605, "1 h"),
        (273600, "3 d 4 h"),
        (-4, "0 s"),
    ],
)
def test_a_duration_has_at_most_two_units(seconds: float, text: str) -> None:
    assert look.duration(seconds) == text


def test_a_relative_time_never_stands_alone() -> None:
    html = look.when(HERE, at("10:33:02"))
    assert "7 min ago" in html
    assert 'datetime="2026-03-02T10:33:02.000+00:00"' in html
    assert ">10:33:02</time>" in html
    assert "in 1 min 18 s" in look.when(HERE, NOW + timedelta(seconds=78))


def test_another_day_carries_its_date() -> None:
    assert "2026-03-01 10:40" in look.exact(HERE, NOW - timedelta(days=1), "minutes")


@pytest.mark.parametrize(
    ("left", "css", "words"),
    [
        (38, "plain", "38 min left"),
        (14, "warn", "14 min left"),
        (0, "bad", "Breached 0 s"),
        (-1.9, "bad", "Breached 1 min"),
    ],
)
def test_the_clock_of_a_task_turns_amber_then_red(left: float, css: str, words: str) -> None:
    due = NOW + timedelta(minutes=left)
    html = look.sla_ring(HERE, Sla(opened_at=due - timedelta(hours=1), due_at=due))
    assert f'class="sla {css}"' in html
    assert words in html


def test_an_id_is_cut_in_the_middle_and_whole_in_its_title() -> None:
    html = look.short_id("0195e2c4-77aa-7c31-9b2e-5d10c0aeb41f")
    assert ">0195…b41f<" in html
    assert 'title="0195e2c4-77aa-7c31-9b2e-5d10c0aeb41f"' in html


def test_code_in_a_sentence_is_marked_and_everything_is_escaped() -> None:
    assert look.codes("a `b<i>` <i>") == "a <code>b&lt;i&gt;</code> &lt;i&gt;"


def test_the_edge_of_a_badge_is_dashed_until_proven() -> None:
    assert 'class="badge unk open"' in look.badge(ACTION["unknown"])
    assert 'class="badge ok"' in look.badge(RUN["completed"])


def test_what_still_goes_on_reaches_the_edge_and_text_that_does_not_fit_stands_beside() -> None:
    lane = waterfall.Lane(
        "apply_credit",
        [
            waterfall.Stretch(at("10:00:00"), at("10:00:01"), "ok", "valid reply"),
            waterfall.Stretch(at("10:00:30"), None, "unk", "outcome unknown", dashed=True),
        ],
    )
    fall = waterfall.draw([lane], start=at("10:00:00"), end=at("10:01:00"), label="One call.")
    short, open_ended = fall.rows[0].spans
    assert short.label
    assert short.label.x > short.x + short.width
    assert open_ended.x + open_ended.width == waterfall.WIDTH - 8
    assert open_ended.label
    assert open_ended.x < open_ended.label.x < waterfall.WIDTH


def test_a_run_without_length_can_be_drawn() -> None:
    fall = waterfall.draw([], start=NOW, end=NOW, label="Nothing yet.", fired_at=NOW, fired="max turns 0")
    assert fall.ticks
    assert fall.fired
    assert waterfall.NAMES <= fall.fired.x <= waterfall.WIDTH
