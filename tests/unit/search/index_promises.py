"""Runs the suite of feed consumers over the index; `test_search.py` starts it.

Whatever asks or writes the index does so in a child of its own: this process must have no thread of tantivy, since a fork has none.
"""

import datetime
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.query.contract import has_index
from gossamer.search.asking import Search
from gossamer.search.index import SearchIndex
from gossamer.storage.tables.contract import FeedBatch, FeedConsumer, FeedMark
from gossamer.testing import check_feed_consumer

COLUMNS = (
    "url", "host", "status", "outcome", "mime", "media_type", "language", "title", "depth", "fetched_at", "warc_file", "noarchive",
    "discarded", "visit",
)  # fmt: skip

WHEN = datetime.datetime.fromisoformat("2026-03-01")


class Titles:
    """Gives the title as text."""

    remarks: Sequence[str] = ()

    def text(self, row: Mapping[str, Any]) -> tuple[str, str]:
        return str(row["title"]), str(row["title"])

    def close(self) -> None:
        """Nothing is open."""


def row(number: int) -> tuple[Any, ...]:
    url = f"http://a.test/{number}"
    return (
        url,
        "a.test",
        200,
        "ok",
        "text/html",
        None,
        "en",
        f"Title {number}",
        1,
        WHEN,
        "w",
        False,
        None,
        f"v{number}",
    )


def in_a_child(work: Callable[[], object]) -> bytes:
    """What work returns, as JSON."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.write(theirs, msgspec.json.encode(work()))
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as answer:
        said = answer.read()
    assert os.waitpid(child, 0)[1] == 0, "a child failed"
    return said


class Outside:
    """The index, each call in a child."""

    table = "pages"

    def __init__(self, crawl: Path) -> None:
        self._crawl = crawl

    def _index(self) -> SearchIndex:
        return SearchIndex(self._crawl, Titles())

    def mark(self) -> FeedMark:
        return msgspec.json.decode(in_a_child(lambda: self._index().mark()), type=FeedMark)

    def rebuild(self, generation: int) -> None:
        in_a_child(lambda: self._index().rebuild(generation))

    def take(self, batch: FeedBatch) -> None:
        in_a_child(lambda: self._index().take(batch))


def main(crawl: Path) -> None:
    parent = os.getpid()

    def make() -> FeedConsumer:
        return Outside(crawl) if os.getpid() == parent else SearchIndex(crawl, Titles())

    def urls() -> list[str]:
        if not has_index(crawl):
            return []
        return sorted(
            (hit.url for hit in Search(crawl).ask("", most=100).hits), key=lambda one: int(one.rpartition("/")[2])
        )

    check_feed_consumer(make, lambda: msgspec.json.decode(in_a_child(urls)), COLUMNS, row)
    print("promises are kept")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
