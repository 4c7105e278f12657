"""The pages keep their promises: what the code cites stands there, and what they name exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

BASE = Path(__file__).resolve().parent.parent
README = BASE / "README.md"
PAGES = [README, BASE / "CHANGELOG.md", BASE / "sdk" / "README.md", *sorted((BASE / "docs").glob("*.md"))]
ROOMS = (
    "console",
    "recovery",
    "runs",
    "sdk/steadyhand",
    "sandbox",
    "demo",
    "benchmarks",
    "tests",
    "templates",
    "static",
)
WRITTEN = {".py", ".html", ".js", ".css", ".md"}
# An id may be a part of a test's name, never of a colour, a time or a longer word.
ID = re.compile(r"(?<![A-Za-z0-9#\-])(?:(F\d{3}|[IT][1-9]\d?|C\d{2})|SEC[-_]?(\d{2}))(?![0-9A-Za-z])")
RULE = re.compile(r"DECISIONS §?(\d[a-z])\b")
PART = r"§?(?:[0-9.]+|[A-I])\b"
SECTION = re.compile(rf"\b(DESIGN|DECISIONS|FAULTS|SECURITY|PERFORMANCE) ({PART}(?:(?:, | and | to ){PART})*)")
NAMED = re.compile(r"\bDESIGN: ([a-z][a-z ,]+[a-z])(?=[;).])")
RULING = re.compile(r"\bruling \d+\b")
TEST = re.compile(r"`(tests/[\w/]+\.py::test_\w+)`")


def sources() -> Iterator[tuple[str, str]]:
    """Every written file of the project as (path, text), without this one: it plants wrong ids."""
    for room in ROOMS:
        for path in sorted((BASE / room).rglob("*")):
            if path.suffix in WRITTEN and path.name != "test_docs.py" and "__pycache__" not in path.parts:
                yield str(path.relative_to(BASE)), path.read_text()


def ids(text: str) -> set[str]:
    """The ids that a text cites, in the form in which the pages write them."""
    plain = re.sub(r"#\s*noqa.*", "", text)
    return {found[1] or f"SEC-{found[2]}" for found in ID.finditer(plain)}


def sections(text: str) -> set[str]:
    """Citations of the design's sections and rulings, one by one."""
    found = set(RULING.findall(text))
    for match in SECTION.finditer(text):
        found |= {f"{match[1]} {part.strip('§.')}" for part in re.findall(PART, match[2])}
    return found


def entries(page: str) -> set[str]:
    """What a page has an entry for: its headings and the first cells of its tables."""
    text = (BASE / "docs" / page).read_text()
    return set(re.findall(r"^#+ (.+)$", text, re.M)) | {
        name for cell in re.findall(r"^\| ([^|]+?) \|", text, re.M) for name in cell.split(", ")
    }


def every_test() -> set[str]:
    """Every test of the project as file::name."""
    found = set()
    for path in sorted((BASE / "tests").rglob("test_*.py")):
        names = re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.M)
        found |= {f"{path.relative_to(BASE)}::{name}" for name in names}
    return found


def stale(faults: str, existing: set[str]) -> list[str]:
    """Entries that say that nothing shows them although a test of Steadyhand carries their id."""
    found = []
    for entry in re.split(r"^### ", faults, flags=re.M)[1:]:
        fault = entry[:4]
        named = [name for name in sorted(existing) if re.search(rf"_{fault}(?=_|$)", name.partition("::")[2])]
        own = [name for name in named if not name.startswith("tests/sandbox/")]
        if own and ("No test yet." in entry or "Shown by" not in entry):
            found.append(f"docs/faults.md says that nothing shows {fault}: name {own[0]} there")
    return found


def anchors(page: Path) -> set[str]:
    return {
        re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    }


def test_every_id_that_is_cited_has_an_entry() -> None:
    known = entries("faults.md") | entries("threats.md")
    missing = {name: sorted(ids(text) - known) for name, text in sources()}
    assert {name: lost for name, lost in missing.items() if lost} == {}


def test_every_rule_that_is_cited_is_a_heading() -> None:
    cited = {rule for _, text in sources() for rule in RULE.findall(text)}
    assert cited - entries("decisions.md") == set()


def test_every_section_that_is_cited_is_in_the_table_of_citations() -> None:
    cited = {section for name, text in sources() if name.endswith(".py") for section in sections(text)}
    assert cited - entries("architecture.md") == set()


def test_every_section_that_is_cited_by_name_is_a_heading() -> None:
    cited = {name for path, text in sources() if path.endswith(".py") for name in NAMED.findall(text)}
    assert cited - {title.lower() for title in entries("architecture.md")} == set()


MAPPED = ("sdk/steadyhand", "runs", "recovery", "recovery/*", "console", "console/management")


def test_every_module_stands_on_the_map() -> None:
    told = (BASE / "docs" / "architecture.md").read_text().partition("## The map")[2]
    rooms = [path for name in MAPPED for path in BASE.glob(name) if path.name != "migrations"]
    files = [file for room in rooms for file in room.glob("*.py") if file.stem not in ("__init__", "apps", "wsgi")]
    assert [str(file.relative_to(BASE)) for file in files if f"`{file.stem}`" not in told] == []


def test_every_test_that_a_page_names_exists() -> None:
    named = {name for page in PAGES for name in TEST.findall(page.read_text())}
    assert len(named) > 50
    assert named - every_test() == set()


def test_no_fault_is_called_unshown_that_a_test_shows() -> None:
    assert stale((BASE / "docs" / "faults.md").read_text(), every_test()) == []


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z][\w\-]*):", (BASE / "Makefile").read_text(), re.M))
    named = {name for page in PAGES for name in re.findall(r"(?:`|^)make ([a-z\-]+)", page.read_text(), re.M)}
    assert named
    assert named - targets == set()


def test_every_file_that_is_named_exists() -> None:
    named = {name for page in PAGES for name in re.findall(r"`([\w.\-]+(?:/[\w.\-]+)*/?)`", page.read_text())}
    ours = {name for name in named if "/" in name and name.split("/")[0] in {path.name for path in BASE.iterdir()}}
    made_later = {name for name in ours if name.startswith("var/")}
    assert {name for name in ours - made_later if not (BASE / name).exists()} == set()


def test_every_link_leads_somewhere() -> None:
    broken = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{page.name}: {link}")
    assert broken == []


def test_every_variable_of_the_readme_is_read_and_every_one_that_is_read_is_there() -> None:
    rows = re.findall(r"^\| (`[A-Z][^|]+)\|", README.read_text(), re.M)
    told = set(re.findall(r"[A-Z_]{6,}", " ".join(rows)))
    settings = (BASE / "console" / "settings.py").read_text()
    read = set(re.findall(r"(?:environ(?:\.get\(|\[)|_names\()\"([A-Z_]+)\"", settings))
    made = {"STEADYHAND_HOME", "STEADYHAND_SECRET_KEY", "STEADYHAND_SEALING_KEYS", "STEADYHAND_TOKEN_PEPPER"}
    assert told == read | made


def test_the_readmes_python_is_python() -> None:
    snippets = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S)
    assert len(snippets) >= 3
    for snippet in snippets:
        ast.parse(snippet)


def test_the_readme_is_a_short_read() -> None:
    assert len(README.read_text().splitlines()) <= 250


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("a lost reply (F026) and def test_T6_F999_it", {"F026", "T6", "F999"}),
        ("def test_SEC_37_a and test_SEC17_b, SEC-99", {"SEC-37", "SEC-17", "SEC-99"}),
        ("crashpoints.point('C19')  # as I13 says", {"C19", "I13"}),
        ("color: #C05; at 2026-01-01T10:00 import x  # noqa: F401", set()),
    ],
)
def test_an_id_is_seen_wherever_it_stands(text: str, cited: set[str]) -> None:
    assert ids(text) == cited


def test_sections_are_seen_one_by_one() -> None:
    text = "(DESIGN 2, rule 1) (DECISIONS §2, §9; FAULTS B and E) PERFORMANCE 1 and 5. FAULTS 2.2). ruling 16"
    assert sections(text) == {
        "DESIGN 2", "DECISIONS 2", "DECISIONS 9", "FAULTS B", "FAULTS E", "PERFORMANCE 1", "PERFORMANCE 5",
        "FAULTS 2.2", "ruling 16",
    }  # fmt: skip


def test_a_planted_id_without_an_entry_is_missed() -> None:
    known = entries("faults.md") | entries("threats.md")
    assert ids("F026 F999 SEC-16 SEC-99 T6 T11 I5 I21 C19 C27") - known == {"F999", "SEC-99", "T11", "I21", "C27"}


def test_an_entry_that_lags_behind_its_test_is_told() -> None:
    entry = "### F026\nThe reply was lost.\nNo test yet.\n"
    assert stale(entry, {"tests/sandbox/test_a.py::test_F026_x"}) == []
    assert len(stale(entry, {"tests/failures/test_a.py::test_T6_F026_x"})) == 1
    assert stale(entry.replace("No test yet.", "Shown by `it`."), {"tests/failures/test_a.py::test_F026_x"}) == []
