"""A monitor of one element of each page: a processor, a wiring and a report for Gossamer. See README.md."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec

from gossamer.crawls.compiling import shipped
from gossamer.documents.document import Document
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import ProviderPlan, Wiring, to_toml
from gossamer.query.database import Database
from gossamer.values.visit import Item

#: Characters of an element's text that are kept: an element that is larger is a page of its own.
MOST = 2_000

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")

#: The text of each visit beside that of the visit before; a visit without the element has an empty one.
_CHANGES = """
SELECT url, fetched_at, before, text FROM (
    SELECT i.url, p.fetched_at, i.data->>'text' AS text,
        lag(i.data->>'text') OVER (PARTITION BY i.url ORDER BY p.fetched_at) AS before
    FROM items_all i JOIN pages_all p USING (visit) WHERE i.data->>'select' IS NOT NULL)
WHERE before IS NOT NULL AND before <> text ORDER BY fetched_at, url
"""


class ElementSheet(Sheet, frozen=True):
    """Which element is watched."""

    select: Annotated[str, setting("Watch the first element that this CSS selector matches.")] = ""
    name: Annotated[str, setting("Kind of the items.")] = "element"


class ElementMonitor(Provider[ElementSheet]):
    """Keeps the text of one element of each page. Contract: `processing.Processor`."""

    async def start(self) -> None:
        """Raises SettingError where nothing is to be watched."""
        if not self.sheet.select:
            raise SettingError("setting 'select': name the element that is watched, as --set element.select='.price'")

    def process(self, document: Document) -> Iterator[Item]:
        """An item for the page: the element's text, empty where the page has no such element."""
        nodes = document.css(self.sheet.select)
        text = " ".join(nodes[0].text().split())[:MOST] if nodes else ""
        yield Item(self.sheet.name, document.url, {"select": self.sheet.select, "text": text})


def wiring() -> Wiring:
    """The shipped wiring, with the monitor among the processors of pages."""
    plain = shipped("default")
    process = plain.components["process"]
    read = dict(cast("dict[str, Any]", process.providers["processors"]))
    for mime in ("text/html", "application/xhtml+xml"):
        known = read.get(mime, [])
        read[mime] = [*([known] if isinstance(known, str) else known), "element"]
    process = msgspec.structs.replace(process, providers={**process.providers, "processors": read})
    return msgspec.structs.replace(
        plain,
        description="Changes of one element",
        components={**plain.components, "process": process},
        providers={**plain.providers, "element": ProviderPlan(use="element")},
    )


def report(crawl: str) -> Iterator[str]:
    """A line for each change that a crawl has seen, the newest last."""
    with Database(Path(crawl)) as database:
        for url, when, before, text in database.ask(_CHANGES):
            # What strangers wrote may hold what a terminal obeys.
            yield f"{when:%Y-%m-%d %H:%M:%S}  {url}  {before!r} -> {text!r}{_moved(before, text)}"


def _moved(before: str, text: str) -> str:
    """By how much a number rose or fell; nothing where a text has none."""
    numbers = [float(found[0].replace(",", "")) for found in map(_NUMBER.search, (before, text)) if found]
    if len(numbers) < 2 or not numbers[0] or numbers[0] == numbers[1]:
        return ""
    return f"  {numbers[1] / numbers[0] - 1:+.1%}"


def main() -> None:
    """`element-monitor wiring` or `element-monitor report CRAWL`."""
    if sys.argv[1:] == ["wiring"]:
        print(to_toml(wiring()))
    elif sys.argv[1:2] == ["report"] and len(sys.argv) == 3:
        print("\n".join(report(sys.argv[2])) or "nothing changed")
    else:
        sys.exit("usage: element-monitor wiring | element-monitor report CRAWL")


if __name__ == "__main__":
    main()
