"""What differs between two crawls: a synchronous filter joins the pages of two logs pair by pair.

    python examples/01-compare-crawls/compare.py OLD/logs/crawl.jsonl NEW/logs/crawl.jsonl

Two producers send one page for each URL that either crawl has met, in the same order; `Compare` is called when both inputs
have an item, with one of each.
"""

import asyncio
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.engine.component import Consumer, Producer, SynchronousFilter
from gossamer.engine.ends import In, Out, Uses
from gossamer.engine.planning import Catalog, plan
from gossamer.engine.running import RunningGraph
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import read, with_settings

HERE = Path(__file__).parent


class Page(msgspec.Struct, frozen=True):
    """What a log says of a URL; no outcome where it says nothing."""

    url: str
    outcome: str = ""
    digest: str = ""


class Difference(msgspec.Struct, frozen=True):
    """A URL of which the two crawls say different things."""

    url: str
    what: str


class LogsSheet(Sheet, frozen=True):
    """Where the logs are."""

    old: Annotated[str, setting("The log of the first crawl.")]
    new: Annotated[str, setting("The log of the second crawl.")]


class BothLogs(Provider[LogsSheet]):
    """The pages of both crawls under every URL that either has met."""

    async def start(self) -> None:
        """Read both logs."""
        self._pages = {side: _pages(Path(getattr(self.sheet, side))) for side in ("old", "new")}
        self._urls = sorted({url for pages in self._pages.values() for url in pages})

    def pages(self, side: str) -> Iterator[Page]:
        """The pages of one crawl, in the order of their URLs; an empty one for each that only the other has met."""
        return (self._pages[side].get(url, Page(url)) for url in self._urls)


def _pages(log: Path) -> dict[str, Page]:
    rows = (msgspec.json.decode(line) for line in log.read_bytes().splitlines())
    return {row["url"]: msgspec.convert(row, Page) for row in rows if row["event"] == "page"}


class SideSheet(Sheet, frozen=True):
    """Which of the two."""

    side: Annotated[str, setting("`old` or `new`.", pattern="^(old|new)$")]


class PagesOf(Producer[SideSheet]):
    """The pages of one crawl."""

    outbox: Out[Page]
    pages: Uses[BothLogs]

    def produce(self) -> Iterable[Page]:
        """One for each URL."""
        return self.pages.pages(self.sheet.side)


class Compare(SynchronousFilter[NoSettings]):
    """Tells what became of a page."""

    old: In[Page]
    new: In[Page]
    outbox: Out[Difference]

    def filter(self, old: Page, new: Page) -> Iterator[Difference]:
        """One page of each crawl, of the same URL."""
        if not old.outcome:
            yield Difference(new.url, "new")
        elif not new.outcome:
            yield Difference(old.url, "gone")
        elif old.outcome != new.outcome:
            yield Difference(old.url, f"{old.outcome} -> {new.outcome}")
        elif old.digest != new.digest:
            yield Difference(old.url, "changed")


class Show(Consumer[NoSettings]):
    """Prints."""

    inbox: In[Difference]

    def consume(self, item: Difference) -> None:
        """One line for each difference."""
        print(f"{item.what:24} {item.url}")


CATALOG = Catalog({"pages-of": PagesOf, "compare": Compare, "show": Show}, {"both-logs": BothLogs})


async def main(old: str, new: str) -> None:
    """Compare two logs."""
    wiring = with_settings(read(HERE / "wiring.toml"), "pages", {"old": old, "new": new})
    await RunningGraph(plan(wiring, CATALOG)).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
