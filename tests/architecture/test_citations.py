"""The source cites only what its readers have: modules and files that are there, the design papers, published sources by name."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import ROOT

PAPERS = ROOT / "docs" / "design"

#: Folders and files whose text is read by people.
CITING = ("src", "tests", "tools", "examples", "docs", "changes", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
SUFFIXES = (".py", ".md", ".toml")

_NUMBERS = r"[0-9]+(?:(?:, | and |-| to )[0-9]+)*"
_ROWS = r"[A-Z][0-9]+(?:(?:, | and )[A-Z][0-9]+)*"
CITATION = re.compile(
    rf"\b(?:(?P<kind>fault|design promise|design question)s? (?P<numbers>{_NUMBERS})|rows? (?P<rows>{_ROWS}))(?![\w.])"
)
#: A module that a docstring or comment names, and a file that a manual or a decision names by its place in the package.
MODULE = re.compile(r":mod:`(?:[^`<]*<)?~?\.?([\w.]+)>?`")
PLACE = re.compile(r"`((?:[a-z_]+/)+[a-z_]+\.py)`")
#: A file of tests that a command or a sentence names, and the test in it, if one is named.
TESTS = re.compile(r"\b(tests/(?:[a-z_]+/)*[a-z_]+\.py)(?:::(\w+))?")
#: Names of papers that are not part of the project.
FOREIGN = re.compile(r"\b(?:DESIGN|MISSION|FAULTS|PEERS|INTERFACE|CORPORA)\b|\b[Ss]eeds? 00[0-9]\b")


def texts() -> Iterator[tuple[Path, str]]:
    for name in CITING:
        place = ROOT / name
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.suffix in SUFFIXES and path != Path(__file__):
                yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def known() -> dict[str, set[str]]:
    def found(page: str, pattern: str) -> set[str]:
        return set(re.findall(pattern, (PAPERS / page).read_text(encoding="utf-8"), re.MULTILINE))

    return {
        "design promise": found("promises.md", r"^## promise ([0-9]+):"),
        "design question": found("questions.md", r"^### question ([0-9]+):"),
        "fault": found("faults.md", r"^\| ([0-9]+) \|"),
        "row": found("rows.md", r"^\| ([A-Z][0-9]+) \|"),
    }


def numbers(text: str) -> Iterator[str]:
    for part in re.split(r", | and ", text):
        first, _, last = part.replace(" to ", "-").partition("-")
        yield from (str(number) for number in range(int(first), int(last or first) + 1))


def citations(text: str) -> Iterator[tuple[str, str]]:
    """Kind and number of everything that a text cites."""
    for match in CITATION.finditer(text):
        if match["rows"]:
            yield from (("row", one) for one in re.split(r", | and ", match["rows"]))
        else:
            yield from ((match["kind"], one) for one in numbers(match["numbers"]))


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("(fault 38)", [("fault", "38")]),
        ("faults 41-43 and 52", [("fault", "41"), ("fault", "42"), ("fault", "43"), ("fault", "52")]),
        ("rows M3, M6", [("row", "M3"), ("row", "M6")]),
        ("design question 12", [("design question", "12")]),
        ("by default 38", []),
    ],
)
def test_citations_are_found_in_text(text: str, cited: list[tuple[str, str]]) -> None:
    assert list(citations(text)) == cited


def test_every_citation_resolves() -> None:
    papers = known()
    assert all(papers.values()), "each page of the design papers has entries"
    missing = [
        f"{path}: {kind} {number}"
        for path, text in texts()
        for kind, number in citations(text)
        if number not in papers[kind]
    ]
    assert not missing


def test_nothing_is_cited_that_readers_do_not_have() -> None:
    found = [f"{path}: {match[0]}" for path, text in texts() for match in FOREIGN.finditer(text)]
    assert not found


def test_every_module_that_is_named_is_there() -> None:
    """By its whole name, or as its neighbours in the same folder call it."""
    missing = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for match in MODULE.finditer(path.read_text(encoding="utf-8")):
            parts = match[1].split(".")
            home = ROOT / "src" if parts[0] == "gossamer" else path.parent
            place = home.joinpath(*parts)
            if not (place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()):
                missing.append(f"{path.relative_to(ROOT)}: {match[0]}")
    assert not missing


def test_every_file_that_the_manuals_name_is_there() -> None:
    homes = (ROOT, ROOT / "src", ROOT / "src" / "gossamer")
    missing = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in [*sorted((ROOT / "docs").rglob("*.md")), *ROOT.glob("*.md")]
        if path.name != "CHANGELOG.md"
        for match in PLACE.finditer(path.read_text(encoding="utf-8"))
        if not any((home / match[1]).exists() for home in homes) and not match[1].startswith("gossamer_")
    ]
    assert not missing


def test_every_test_that_the_manuals_name_is_there() -> None:
    found = [
        (path.relative_to(ROOT), *match.groups())
        for path in [*sorted((ROOT / "docs").rglob("*.md")), *ROOT.glob("*.md")]
        if path.name != "CHANGELOG.md"
        for match in TESTS.finditer(path.read_text(encoding="utf-8"))
    ]
    assert len(found) > 10
    missing = [
        (path, file, test)
        for path, file, test in found
        if not (ROOT / file).is_file() or (test and f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8"))
    ]
    assert not missing
