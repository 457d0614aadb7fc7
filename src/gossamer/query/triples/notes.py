"""What a triple store's feeding has to remember: how far each feed was taken, and which visit each graph is of.

It is one SQLite file beside the store. What is done to a store can be done twice, so the store is changed first and the note
written after: a kill between the two has the rows come once more.
"""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from gossamer.contracts.feeding import FeedMark
from gossamer.model.errors import CrawlDirectoryError

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

        Raises:
            CrawlDirectoryError: another version of the program wrote them, or they are damaged.
        """
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
        """Let go of the file."""
        self._database.close()

    def get(self, name: str) -> str:
        """A note; empty where there is none."""
        row = self._database.execute("SELECT value FROM notes WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def put(self, name: str, value: str) -> None:
        """Keep a note."""
        self._database.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))

    def mark(self, table: str) -> FeedMark:
        """How far the feed of a table was taken."""
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
        """The pages that have a graph."""
        for (url,) in self._database.execute("SELECT url FROM graphs"):
            yield url

    def keep(self, table: str, mark: FeedMark, put: Mapping[str, str], gone: Iterable[str] = ()) -> None:
        """Note how far a feed was taken, and what became of graphs: all of it or nothing.

        Args:
            table: whose feed it is.
            mark: how far.
            put: URL of a page -> the visit that its graph is of by now.
            gone: pages that have no graph any more.
        """
        with self._changing():
            self._database.executemany("INSERT OR REPLACE INTO graphs VALUES (?, ?)", put.items())
            self._database.executemany("DELETE FROM graphs WHERE url = ?", [(url,) for url in gone])
            self.put(f"mark:{table}", msgspec.json.encode(mark).decode())

    def begin_anew(self, table: str, mark: FeedMark) -> None:
        """The store is empty: forget graphs and marks, and note where the feed of a table begins."""
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
