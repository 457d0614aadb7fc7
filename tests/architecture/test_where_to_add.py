"""ARCHITECTURE.md says where each kind of thing is added: in three places at most, and they are there."""

import re

from tools import ROOT

PACKAGE = ROOT / "src" / "gossamer"

#: What stands in backticks and is a file or folder of the package.
PLACE = re.compile(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?|[a-z_]+/[a-z_]+\.py|[a-z_]+\.py)`")


def rows() -> dict[str, tuple[str, str]]:
    """Kind of thing -> where its class is written, and where it is named."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Where do I add")[2]
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("| ")
    ]
    return {kind: (written, named) for kind, written, named, _ in cells[1:]}


def places(written: str, named: str) -> list[str]:
    """The files and folders that one addition touches: what is only an example (`see ...`) is none."""
    without_examples = re.sub(r"\((?:see|as) [^)]*\)", "", written)
    beside = re.match(r"`([a-z_/]+/)", without_examples)
    found = PLACE.findall(without_examples) + PLACE.findall(named)
    return [place if "/" in place or beside is None else beside[1] + place for place in found]


def test_each_kind_of_thing_is_added_in_three_places_at_most_and_they_are_there() -> None:
    table = rows()
    assert {"rule of politeness", "table", "outcome", "control message", "metric"} <= set(table)
    counted = {kind: places(*cells) for kind, cells in table.items()}
    assert {kind: found for kind, found in counted.items() if len(set(found)) > 3} == {}
    missing = {kind: [one for one in found if not (PACKAGE / one).exists()] for kind, found in counted.items()}
    assert {kind: found for kind, found in missing.items() if found} == {}
    assert sum(map(len, counted.values())) > len(table), "the table is read"
