"""The look keeps its promises: contrast, one palette, nothing inline, every state drawn, a small style sheet."""

import re
from itertools import product
from pathlib import Path

import pytest
from django.conf import settings
from django.template.loader import get_template
from lucide.templatetags.lucide import lucide

from console import looks
from console.looks import MEANINGS, TABLES, Look
from runs.states import MACHINES

ROOT = Path(settings.BASE)
CSS = sorted((ROOT / "static/css").glob("*.css"))
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
HEX = re.compile(r"#[0-9a-fA-F]{3,8}\b")
LIMIT = 28 * 1024

TEXT_ON = ("canvas", "surface", "sunken", "hover", "select")
TEXTS = ("ink", "ink-2", "ink-3", "accent")


def tokens() -> dict[str, tuple[str, str]]:
    """Each colour token with its light and its dark value."""
    text = (ROOT / "static/css/tokens.css").read_text()
    pairs = {n: (a, b) for n, a, b in re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\);", text)}
    plain = {n: (a, a) for n, a in re.findall(r"--([\w-]+): (#\w{6});", text)}
    return pairs | plain


def luminance(colour: str) -> float:
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


PAIRS = [
    *((text, ground, 4.5) for text, ground in product(TEXTS, TEXT_ON)),
    *((text, f"{meaning}-bg", 4.5) for text, meaning in product(("ink", "ink-2"), MEANINGS)),
    *((meaning, f"{meaning}-bg", 4.5) for meaning in MEANINGS),
    *((meaning, ground, 4.5) for meaning, ground in product(MEANINGS, ("canvas", "surface", "select"))),
    ("ink-3", "unk-bg", 4.5),
    ("on-accent", "accent-bg", 4.5),
    ("on-accent", "accent-hi", 4.5),
    ("t0", "t0-bg", 4.5),
    ("t1", "t1-bg", 4.5),
    ("control", "surface", 3.0),
    ("control", "canvas", 3.0),
    ("unk-ln", "surface", 3.0),
    ("unk-ln", "canvas", 3.0),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("front", "ground", "least"), PAIRS)
def test_a_pair_of_colours_can_be_read(front: str, ground: str, least: float, scheme: str) -> None:
    at = ("light", "dark").index(scheme)
    found = contrast(tokens()[front][at], tokens()[ground][at])
    assert found >= least, f"{front} on {ground}: {found:.2f}"


def test_colours_are_written_in_the_tokens_only() -> None:
    for path in CSS:
        assert path.name == "tokens.css" or not HEX.search(path.read_text()), path.name
    for path in TEMPLATES:
        drawn = re.sub(r'(href|data-\w+)="#[^"]*"|&#\w+;', "", path.read_text())
        assert not re.search(r'(fill|stroke|color)="#', drawn), path.name


def test_every_custom_property_that_is_used_is_declared() -> None:
    text = "".join(path.read_text() for path in CSS)
    declared = set(re.findall(r"(--[\w-]+)\s*:", text))
    assert set(re.findall(r"var\((--[\w-]+)", text)) <= declared


def test_violet_belongs_to_the_unknown() -> None:
    for path in CSS:
        for selector, body in re.findall(r"([^{}]+)\{([^{}]*)\}", path.read_text()):
            if "var(--unk" in body:
                assert re.search(r"unk|worlds|cells", selector), selector.strip()


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_template_compiles_and_has_nothing_inline(path: Path) -> None:
    text = path.read_text()
    get_template(str(path.relative_to(ROOT / "templates")))
    assert not re.search(r"\sstyle=", text)
    assert not re.search(r"<style\b", text)
    assert not re.search(r"\son\w+=", text)
    assert not re.search(r"\|safe\b|autoescape off|javascript:|hx-on|hx-vals=.js", text)
    for tag in re.findall(r"<script\b[^>]*>", text):
        assert " src=" in tag


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_template_compares_no_state(path: Path) -> None:
    tags = re.findall(r"\{% (?:if|elif) (.*?) %\}", path.read_text())
    states = {state for table in TABLES.values() for state in table}
    assert not [tag for tag in tags if set(re.findall(r"[\"'](\w+)[\"']", tag)) & states]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_comment_of_a_template_ends_on_its_line(path: Path) -> None:
    for line in path.read_text().splitlines():
        assert line.count("{#") == line.count("#}")


ALL_LOOKS = [(kind, state, look) for kind, table in TABLES.items() for state, look in table.items()]


@pytest.mark.parametrize(("kind", "state", "look"), ALL_LOOKS)
def test_every_state_has_a_meaning_an_icon_and_a_word(kind: str, state: str, look: Look) -> None:
    assert look.css in MEANINGS
    assert look.word
    assert look.icon
    assert "<svg" in lucide(look.icon)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_state_of_a_machine_has_its_look(machine: str) -> None:
    assert set(TABLES[machine]) == set(MACHINES[machine])


def test_the_unknown_is_never_drawn_solid() -> None:
    assert not [(kind, state) for kind, state, look in ALL_LOOKS if look.css == "unk" and look.solid]


def test_green_is_earned() -> None:
    grey = {
        "decision": ("requested", "done"),
        "action": ("approved",),
        "task": ("claimed",),
        "attempt": ("dispatched",),
    }
    for kind, names in grey.items():
        assert all(TABLES[kind][name].css in ("idle", "move") for name in names)


def test_a_state_without_a_look_is_named() -> None:
    with pytest.raises(LookupError, match="run state 'dancing'"):
        looks.look("run", "dancing")


@pytest.mark.parametrize("name", sorted(set(looks.VERB_ICONS.values())))
def test_every_icon_of_a_verb_exists(name: str) -> None:
    assert "<svg" in lucide(name)


def test_every_icon_named_in_a_template_exists() -> None:
    for path in TEMPLATES:
        for name in re.findall(r'\{% icon "([\w-]+)"', path.read_text()):
            assert "<svg" in lucide(name)


@pytest.mark.parametrize("last", ["pages", "door"])
def test_the_style_sheets_of_a_page_stay_under_28_kilobytes(last: str) -> None:
    sheets = [path for path in CSS if path.stem in ("tokens", "base", "parts", last)]
    text = "".join(re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL) for path in sheets)
    small = re.sub(r"\s*([{};,>])\s*", r"\1", re.sub(r"\s+", " ", text)).replace(": ", ":")
    assert len(small.encode()) <= LIMIT, len(small.encode())


def test_every_style_sheet_is_one_of_a_page() -> None:
    assert [path.stem for path in CSS] == ["base", "door", "pages", "parts", "tokens", "tour"]
