"""The file that the masters of a crawl share: SQLite with a write-ahead log, so that no process serves it and none must live.

Place in the flow: `state/masters/shared.sqlite` of a crawl. It has which agent each domain was given to (decision 90). Agents never
open it. Commands do, also at rest.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.values.errors import CrawlDirectoryError, DiskFull
from gossamer.values.task import Task

#: Where it lies, inside the crawl directory.
SHARED = "state/masters/shared.sqlite"

#: Where copies of it lie that belong to checkpoints, by their names.
_CHECKPOINTS = "state/masters/checkpoints"

#: Seconds that a writer waits for another one: transactions take some milliseconds.
_BUSY = 10.0

_META = "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID"

_CRAWL = "crawl"


class SharedFile:
    """One open file. Contract: `agents.contract.SharedState`."""

    def __init__(self, directory: Path, *, crawl: str = "", is_new: bool = False) -> None:
        """Open the file of a crawl. `crawl` is the identity of the crawl, whose mark a new file gets; if it is empty, the file of
        any crawl will do. With `is_new`, make the file where there is none. Raises CrawlDirectoryError: it is gone, damaged, or
        another crawl's; or it cannot be read or written."""
        self.path = directory / SHARED
        if not is_new and not self.path.exists():
            raise CrawlDirectoryError(
                f"{self.path} is gone, which says which agent has which domain; bring it back from a copy, or let the "
                f"crawl make it again by what its agents hold: gossamer resume {directory} --accept-loss"
            )
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.reading = sqlite3.connect(self.path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
            self.reading.execute("PRAGMA journal_mode=WAL")
            # A kill loses nothing of what the system has; like the ledgers, it is not flushed for each transaction.
            self.reading.execute("PRAGMA synchronous=NORMAL")
            self.reading.execute(_META)
        if not crawl:
            return
        with self.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (_CRAWL, crawl))
            (known,) = connection.execute("SELECT value FROM meta WHERE name = ?", (_CRAWL,)).fetchone()
        if known != crawl:
            self.close()
            raise CrawlDirectoryError(f"{self.path} belongs to another crawl ({known}); bring its own back from a copy")

    def open(self, schema: str) -> None:
        with self._explained():
            self.reading.executescript(schema)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        with self._explained():
            self.reading.execute("BEGIN IMMEDIATE")
            try:
                yield self.reading
                self.reading.execute("COMMIT")
            except BaseException:
                if self.reading.in_transaction:
                    self.reading.execute("ROLLBACK")
                raise

    @contextmanager
    def erasing(self) -> Iterator[sqlite3.Connection]:
        with self._explained():
            self.reading.execute("PRAGMA secure_delete=ON")
        with self.writing() as connection:
            yield connection
        with self._explained():
            self.reading.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self.reading.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL:
                raise DiskFull(f"the disk of {self.path} is full; make room") from None
            raise CrawlDirectoryError(f"{self.path} cannot be used: {error}; bring it back from a copy") from None


def copy_shared(directory: Path, name: str) -> None:
    """Keep a copy that belongs to a checkpoint, also while masters are at work. Raises CrawlDirectoryError."""
    target = _copy_of(directory, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    with closing(SharedFile(directory)) as shared, closing(sqlite3.connect(target)) as copy:
        shared.reading.backup(copy)


def restore_shared(directory: Path, name: str) -> None:
    """Put the copy of a checkpoint in the place of the file; no master is at work. Raises CrawlDirectoryError: there is no such
    copy."""
    source = _copy_of(directory, name)
    if not source.exists():
        raise CrawlDirectoryError(f"{source} is gone, so that the crawl cannot go back to {name!r}")
    path = directory / SHARED
    fresh = path.with_name(f"{path.name}.new")
    shutil.copyfile(source, fresh)
    _forget_journals(path)
    fresh.replace(path)


@contextmanager
def shared_again(directory: Path, crawl: str) -> Iterator[SharedFile]:
    """Make the file of a crawl again that has lost it; it is there when the block has ended. Raises CrawlDirectoryError: it
    cannot be written."""
    path = directory / SHARED
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        with closing(SharedFile(Path(folder), crawl=crawl, is_new=True)) as shared:
            yield shared
        _forget_journals(path)
        (Path(folder) / SHARED).replace(path)


def _forget_journals(path: Path) -> None:
    for journal in ("-wal", "-shm"):
        path.with_name(path.name + journal).unlink(missing_ok=True)


def forget_copy(directory: Path, name: str) -> None:
    _copy_of(directory, name).unlink(missing_ok=True)


def forget_copies(directory: Path) -> None:
    shutil.rmtree(directory / _CHECKPOINTS, ignore_errors=True)


def _copy_of(directory: Path, name: str) -> Path:
    return directory / _CHECKPOINTS / f"{name}.sqlite"


# -- mail of an older version
# Masters of 0.2.0 put URLs for agents that were away on the disk here. It is sent once, and no more comes.


class OlderMail(msgspec.Struct, frozen=True):
    """One URL that waits on the disk."""

    number: int
    agent: str
    task: Task


#: Pieces that are read at once: each lot is one transaction when it is forgotten.
_LOT = 1_000

_task = msgspec.msgpack.Decoder(Task).decode


def _has_table(connection: sqlite3.Connection) -> bool:
    question = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'mail')"
    return bool(connection.execute(question).fetchone()[0])


def count_older_mail(connection: sqlite3.Connection) -> int:
    if not _has_table(connection):
        return 0
    (count,) = connection.execute("SELECT count(*) FROM mail").fetchone()
    return int(count)


def older_mail(connection: sqlite3.Connection, after: int = 0) -> list[OlderMail]:
    """Some pieces of all masters, in order, behind this number."""
    if not _has_table(connection):
        return []
    rows = connection.execute("SELECT id, agent, task FROM mail WHERE id > ? ORDER BY id LIMIT ?", (after, _LOT))
    return [OlderMail(number, agent, _task(data)) for number, agent, data in rows.fetchall()]


def forget_older_mail(connection: sqlite3.Connection, numbers: Iterable[int]) -> None:
    connection.executemany("DELETE FROM mail WHERE id = ?", [(number,) for number in numbers])


def delete_older_mail(connection: sqlite3.Connection, has: Callable[[str], bool]) -> None:
    """Take pieces away whose URL is deleted, or was found on one that is, within a transaction."""
    mark = 0
    while lot := older_mail(connection, mark):
        mark = lot[-1].number
        forget_older_mail(connection, [one.number for one in lot if has(one.task.url) or has(one.task.source)])


_PLACE = "its files are open there"


class SharedStateSheet(Sheet, frozen=True):
    directory: Annotated[str, setting("Keep the file in this crawl directory.", restart=_PLACE, names="a folder")] = "."
    crawl: Annotated[
        str,
        setting(
            "Use the file only if it belongs to the crawl with this identity. If empty, make the file if there is none.",
            restart=_PLACE,
        ),
    ] = ""


class CrawlSharedState(Provider[SharedStateSheet]):
    """Keeps the file that the masters of a crawl share. Contract: `agents.contract.SharedState`."""

    keeps_state = True
    _file: SharedFile

    async def start(self) -> None:
        """Open it. Raises CrawlDirectoryError: it is damaged, or another crawl's."""
        self._file = SharedFile(Path(self.sheet.directory), crawl=self.sheet.crawl, is_new=not self.sheet.crawl)

    async def stop(self) -> None:
        self._file.close()

    def open(self, schema: str) -> None:
        self._file.open(schema)

    @property
    def reading(self) -> sqlite3.Connection:
        return self._file.reading

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        with self._file.writing() as connection:
            yield connection
