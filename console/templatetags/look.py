"""What templates may print: icons, badges, money, times, ids and clocks, each drawn the same everywhere."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache

from django import template
from django.template.context import Context
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from lucide.templatetags.lucide import lucide

from console.looks import Look
from console.pages.common import Money, Piece, Sla
from console.topics import BY_SLUG, rules

register = template.Library()

CODE = re.compile(r"`([^`]+)`")
DECIMALS = {
    "JPY": 0,
    "KRW": 0,
    "VND": 0,
    "CLP": 0,
    "ISK": 0,
    "BHD": 3,
    "JOD": 3,
    "KWD": 3,
    "OMR": 3,
    "TND": 3,
}
SHARE_AMBER = 0.25
RING = 5.5


@register.simple_tag
@lru_cache(maxsize=512)
def icon(name: str, size: int = 14) -> str:
    """A lucide icon beside a word: hidden from screen readers, drawn in the colour of its text."""
    return lucide(name, size=size, stroke_width=2, aria_hidden="true", focusable="false", **{"class": "i"})


@register.simple_tag
def badge(look: Look, word: str = "") -> SafeString:
    """A state in its box; the edge is dashed unless the state is proven."""
    css = look.css if look.solid else f"{look.css} open"
    return format_html('<span class="badge {}">{}{}</span>', css, icon(look.icon, 12), word or look.word)


@register.simple_tag
def word(look: Look, size: int = 14) -> SafeString:
    """An answer without a box: icon and word in the colour of the meaning."""
    return format_html('<span class="word {}">{}<span>{}</span></span>', look.css, icon(look.icon, size), look.word)


@register.filter
def money(amount: Money | None) -> str:
    """ "1,716.00 GBP"; "none" when there is no amount."""
    if amount is None:
        return "none"
    places = DECIMALS.get(amount.currency, 2)
    return f"{_decimal(amount.minor, places)} {amount.currency}"


@register.filter
def sums(amounts: Iterable[Money]) -> str:
    """Amounts side by side, never added over currencies: "3.00 EUR and 4.00 GBP"; "no money" when there are none."""
    texts = [money(amount) for amount in amounts]
    if len(texts) < 2:
        return texts[0] if texts else "no money"
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


@register.simple_tag
def at_risk(amounts: Iterable[Money], undeclared: int = 0) -> str:
    """Sums, and beside them the writes whose tool declares no amount: unknown is not none."""
    known = list(amounts)
    if not undeclared:
        return sums(known)
    return f"{sums(known)}, {undeclared} not declared" if known else "amount not declared"


@register.filter
def codes(text: str) -> SafeString:
    """Plain text in which `backticks` mark ids and tool names; everything else is escaped."""
    parts = CODE.split(text)
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", part) if i % 2 else part,) for i, part in enumerate(parts))
    )


@register.simple_tag
def pieces(text: Iterable[Piece]) -> SafeString:
    """A text with what was looked for marked in it; each piece is escaped by itself."""
    drawn = (format_html("<mark>{}</mark>" if piece.hit else "{}", piece.text) for piece in text)
    return format_html_join("", "{}", ((piece,) for piece in drawn))


@register.inclusion_tag("frame/_about.html")
def about(slug: str) -> dict[str, object]:
    """A "?" beside the head of a section, with the short answer and the page of help behind it."""
    return {"topic": BY_SLUG[slug], "url": reverse("help_topic", args=[slug])}


@register.simple_tag
def rule(name: str) -> SafeString:
    """The id of a rule, which leads to the rule where it is one of the decision table."""
    if name not in rules():
        return format_html('<span class="rule">{}</span>', name)
    return format_html('<a class="rule" href="{}">{}</a>', reverse("help_rule", args=[name]), name)


@register.filter
def duration(seconds: float) -> str:
    """A length of time in the two largest units that say something: "1 h 52 min", "9 min 12 s", "3 d 4 h"."""
    whole = max(int(seconds), 0)
    days, hours, minutes, rest = whole // 86400, whole // 3600 % 24, whole // 60 % 60, whole % 60
    units = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((i for i, (n, _) in enumerate(units) if n), 3)
    return " ".join(f"{n} {unit}" for n, unit in units[first : first + 2] if n) or "0 s"


@register.filter
def latency(milliseconds: int) -> str:
    """Milliseconds as seconds with two decimals: "30.00 s"."""
    return f"{milliseconds / 1000:,.2f} s"


@register.simple_tag(takes_context=True)
def when(context: Context, at: datetime, style: str = "ago", clock: str = "seconds") -> SafeString:
    """A time both relative and exact. Needs `now` in the context.

    style  "ago" prints "2 min ago", "age" the bare length; a time to come is "in 1 min 18 s" in both.
    clock  how fine the exact time is, see `exact`.
    """
    seconds = (context["now"] - at).total_seconds()
    text = f"in {duration(-seconds)}" if seconds < 0 else _past(seconds, style)
    return format_html('<span class="when">{} {}</span>', text, exact(context, at, clock))


@register.simple_tag(takes_context=True)
def ago(context: Context, at: datetime) -> str:
    """Only "2 min ago": for a cell whose next line says the exact time."""
    return _past((context["now"] - at).total_seconds(), "ago")


@register.simple_tag(takes_context=True)
def exact(context: Context, at: datetime, style: str = "seconds") -> SafeString:
    """A time to the second ("minutes", "ms" on wish), with its date when that is not today's; ISO in the title."""
    local, today = timezone.localtime(at), timezone.localtime(context["now"]).date()
    clock = {"minutes": f"{local:%H:%M}", "ms": f"{local:%H:%M:%S}.{local.microsecond // 1000:03d}"}
    text = clock.get(style, f"{local:%H:%M:%S}")
    dated = text if local.date() == today else f"{local:%Y-%m-%d} {text}"
    iso = local.isoformat(timespec="milliseconds")
    return format_html('<time class="exact" datetime="{}" title="{}">{}</time>', iso, iso, dated)


@register.simple_tag
def short_id(value: str, url: str = "", copy: bool = True) -> SafeString:
    """An id with its middle cut; the whole id is in the title and behind the copy button."""
    text = value if len(value) <= 13 else f"{value[:4]}…{value[-4:]}"
    body = (
        format_html('<a class="mono" href="{}" title="{}">{}</a>', url, value, text)
        if url
        else format_html('<span class="mono" title="{}">{}</span>', value, text)
    )
    return format_html('<span class="id">{}{}</span>', body, copy_button(value) if copy else "")


@register.simple_tag
def copy_button(value: str, name: str = "Copy id") -> SafeString:
    """A button that copies; it shows itself only where script runs."""
    return format_html(
        '<button type="button" class="copy" data-copy="{}" aria-label="{} {}" hidden>{}</button>',
        value,
        name,
        value,
        icon("copy", 12),
    )


@register.simple_tag(takes_context=True)
def sla_ring(context: Context, sla: Sla) -> SafeString:
    """The clock of a task: a ring with the share left and words; amber under a quarter, red once breached."""
    if sla.pause:
        still = icon("pause")
        return format_html('<span class="sla plain" title="{}">{}<span>Paused</span></span>', sla.pause, still)
    left = (sla.due_at - context["now"]).total_seconds()
    title = timezone.localtime(sla.due_at).isoformat(timespec="seconds")
    if left <= 0:
        return format_html(
            '<span class="sla bad" title="{}">{}<span>Breached {}</span></span>',
            title,
            icon("alarm-clock"),
            _coarse(-left),
        )
    share = min(left / max((sla.due_at - sla.opened_at).total_seconds(), 1.0), 1.0)
    css = "warn" if share < SHARE_AMBER else "plain"
    return format_html(
        '<span class="sla {}" title="{}">{}<span>{} left</span></span>',
        css,
        title,
        _ring(share),
        _coarse(left),
    )


@register.simple_tag
def tenant_mark(name: str, beside: bool = False) -> SafeString:
    """Two letters for a tenant, one of two tints by a hash of its name; `beside` when the name stands next to it."""
    words = re.findall(r"\w+", name) or ["?"]
    letters = (words[0][0] + words[1][0] if len(words) > 1 else words[0][:2]).upper()
    tint = f"t{zlib.crc32(name.encode()) % 2}"
    if beside:
        return format_html('<span class="mark {}" aria-hidden="true">{}</span>', tint, letters)
    return format_html(
        '<abbr class="mark {}" title="{}">{}<span class="vh"> {}</span></abbr>', tint, name, letters, name
    )


@register.simple_tag
def face(name: str, deciding: bool = False) -> SafeString:
    """A person's initials; the ring is amber while that person is deciding. The name always stands beside it."""
    words = name.split() or ["?"]
    letters = (words[0][0] + words[-1][0] if len(words) > 1 else words[0][:2]).upper()
    css = "face deciding" if deciding else "face"
    return format_html('<span class="{}" aria-hidden="true">{}</span>', css, letters)


@register.simple_tag
def strength(bars: int, words: str) -> SafeString:
    """Five small bars and the words that say the same."""
    drawn = format_html_join(
        "",
        '<rect class="{}" x="{}" width="3" height="10" rx="1"/>',
        (("on" if i < bars else "off", i * 4) for i in range(5)),
    )
    return format_html(
        '<span class="strength"><svg width="19" height="10" aria-hidden="true">{}</svg>{}</span>',
        drawn,
        words,
    )


def _decimal(minor: int, places: int) -> str:
    sign, whole = ("-" if minor < 0 else ""), abs(minor)
    tail = f".{whole % 10**places:0{places}d}" if places else ""
    return f"{sign}{whole // 10**places:,}{tail}"


def _past(seconds: float, style: str) -> str:
    return duration(seconds) if style == "age" else f"{_coarse(seconds)} ago"


def _coarse(seconds: float) -> str:
    """One unit under an hour, two above: what changes each second must not flicker in a list."""
    return duration(seconds) if seconds < 60 else duration(timedelta(minutes=seconds // 60).total_seconds())


def _ring(share: float) -> SafeString:
    return format_html(
        '<svg class="ring" width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">'
        '<circle cx="7" cy="7" r="{r}"/><circle class="left" cx="7" cy="7" r="{r}" pathLength="100"'
        ' stroke-dasharray="{left} 100" transform="rotate(-90 7 7)"/></svg>',
        r=RING,
        left=round(share * 100),
    )
