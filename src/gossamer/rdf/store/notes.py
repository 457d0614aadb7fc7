"""The two feeds that a triple store follows, and the notes by which it goes on after a kill.

The notes say how far each feed was taken, and which visit each graph is of. They are one SQLite file beside the store. Each
change of a store can be made twice, so the store is changed first and the note written after: a kill between the two has the rows
come once more.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from gossamer.query.schema import tells
from gossamer.rdf.store.graphs import COLUMNS, PageGraph, newest_graphs
from gossamer.storage.tables.contract import FeedBatch, FeedConsumer, FeedMark
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.instants import visit_order

#: Raised when notes or what they stand for change their meaning.
VERSION = "1"

#: Graphs that are asked for at once: SQLite takes so many values in one statement.
_AT_ONCE = 500

_SCHEMA = f"""
BEGIN;
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS graphs (url TEXT PRIMARY KEY, visit TEXT NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO notes VALUES ('version', '{VERSION}');
COMMIT;
"""


class GraphNotes:
    """The notes of one store."""

    def __init__(self, path: Path) -> None:
        """Open or begin them.
        Raises CrawlDirectoryError: another version of the program wrote them, or they are damaged."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        try:
            self._database = sqlite3.connect(path, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.executescript(_SCHEMA)
            version = self.get("version")
        except sqlite3.DatabaseError as error:
            raise CrawlDirectoryError(
                f"{path.parent} cannot be read ({error}); delete it, and it is made again"
            ) from None
        if version != VERSION:
            raise CrawlDirectoryError(
                f"{path.parent} is of version {version}, and this program reads version {VERSION}; delete it, and it is made again"
            )

    def __repr__(self) -> str:
        return f"<GraphNotes {self._path}>"

    def close(self) -> None:
        self._database.close()

    def get(self, name: str) -> str:
        row = self._database.execute("SELECT value FROM notes WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def put(self, name: str, value: str) -> None:
        self._database.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))

    def mark(self, table: str) -> FeedMark:
        text = self.get(f"mark:{table}")
        return msgspec.json.decode(text, type=FeedMark) if text else FeedMark()

    def visits(self, urls: Iterable[str]) -> dict[str, str]:
        """The visits that the graphs of some pages are of; those that have no graph are left out."""
        wanted = list(urls)
        found: dict[str, str] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            places = ",".join("?" * len(some))
            found.update(self._database.execute(f"SELECT url, visit FROM graphs WHERE url IN ({places})", some))
        return found

    def urls(self) -> Iterator[str]:
        for (url,) in self._database.execute("SELECT url FROM graphs"):
            yield url

    def keep(self, table: str, mark: FeedMark, put: Mapping[str, str], gone: Iterable[str] = ()) -> None:
        """Note how far a feed was taken, and what became of graphs: all of it or nothing.

        Args:
            put: URL of a page -> the visit that its graph is of by now.
            gone: pages that have no graph any more.
        """
        with self._changing():
            self._database.executemany("INSERT OR REPLACE INTO graphs VALUES (?, ?)", put.items())
            self._database.executemany("DELETE FROM graphs WHERE url = ?", [(url,) for url in gone])
            self.put(f"mark:{table}", msgspec.json.encode(mark).decode())

    def begin_anew(self, table: str, mark: FeedMark) -> None:
        with self._changing():
            self._database.execute("DELETE FROM graphs")
            self._database.execute("DELETE FROM notes WHERE name LIKE 'mark:%'")
            self.put(f"mark:{table}", msgspec.json.encode(mark).decode())

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")


# The two feeds that a triple store follows: `triples` puts the graphs of pages, `pages` takes away those of pages that are gone.
# `gossamer.analysis.following` feeds them. A page that says nothing any more has no row in `triples`; that it was visited again
# stands in `pages`. What `pages` has must never be ahead of `triples`, so it is looked at first and taken last.

#: Rows of a batch: the store takes a triple for 18 us of CPU in batches of 25,000, for 15 of 100,000, for 13 of 400,000, which need
#: half a gigabyte of memory.
TRIPLES_AT_ONCE = 200_000
PAGES_AT_ONCE = 10_000


class GraphStore(Protocol):
    """Where graphs are kept. Whatever is done can be done twice."""

    def put(self, graphs: Sequence[PageGraph], replaced: Iterable[str]) -> None:
        """Keep graphs.

        Args:
            graphs: each as its page is by now.
            replaced: URLs of those pages that may have a graph already, which goes.

        Raises:
            OSError: they could not be kept; they come again.
        """
        ...

    def drop(self, urls: Sequence[str]) -> None:
        """Let the graphs of pages go. Raises OSError: it could not be done; it comes again."""
        ...

    def empty(self, urls: Iterable[str]) -> None:
        """Let everything of this crawl go: the graphs of these pages.
        Raises OSError: it could not be done; it comes again."""
        ...


class GraphFeed:
    """Puts what the rows of `triples` say. Contract: `storage.tables.feeds.FeedConsumer`."""

    table = "triples"
    columns: tuple[str, ...] = COLUMNS
    rows_at_once = TRIPLES_AT_ONCE

    def __init__(self, notes: Callable[[], GraphNotes], store: GraphStore) -> None:
        self._notes = notes
        self._store = store

    def mark(self) -> FeedMark:
        return self._notes().mark(self.table)

    def rebuild(self, generation: int) -> None:
        """See the contract. The rows of `pages` come again too."""
        self._store.empty(self._notes().urls())
        self._notes().begin_anew(self.table, FeedMark(generation))

    def take(self, batch: FeedBatch) -> None:
        graphs = newest_graphs(batch.rows)
        known = self._notes().visits(graphs)
        newer = [graph for url, graph in graphs.items() if visit_order(known.get(url, "")) <= visit_order(graph.visit)]
        self._store.put(newer, known)
        self._notes().keep(self.table, batch.mark, {graph.url: graph.visit for graph in newer})


class GoneFeed(GraphFeed):
    """Drops the graphs of pages whose latest visit found nothing. Contract: `storage.tables.feeds.FeedConsumer`."""

    table = "pages"
    columns: tuple[str, ...] = ("url", "outcome", "change", "visit")
    rows_at_once = PAGES_AT_ONCE

    def rebuild(self, generation: int) -> None:
        """See the contract. What rows took away is not brought back: those of `triples` come again where that is right."""
        self._notes().keep(self.table, FeedMark(generation), {})

    def take(self, batch: FeedBatch) -> None:
        visits: dict[str, str] = {}
        for url, outcome, change, visit in batch.rows:
            if tells(outcome, change):
                visits[url] = max(visits.get(url, ""), visit or "", key=visit_order)
        known = self._notes().visits(visits)
        gone = [url for url, visit in known.items() if visit_order(visit) < visit_order(visits[url])]
        if gone:
            self._store.drop(gone)
        self._notes().keep(self.table, batch.mark, {}, gone)


def graph_consumers(notes: Callable[[], GraphNotes], store: GraphStore) -> list[FeedConsumer]:
    """Both feeds of a store, in the order in which they are given."""
    return [GraphFeed(notes, store), GoneFeed(notes, store)]
