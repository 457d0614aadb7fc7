"""Journals: where a sender keeps its frames until they are acknowledged. Used by :mod:`.sending`.

With a `MemoryJournal` they live as long as the process: nothing is lost when the link or the *receiver* dies. With a
`FileJournal` they outlive the sender too, and so does the numbering, which is how the receiver knows repeats.
"""

import secrets
import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from gossamer.engine.errors import ConnectorError, WiringError


class KeptFrame(msgspec.Struct, frozen=True):
    """A frame that is not acknowledged yet, without its payload."""

    first: int
    last: int
    size: int
    """Bytes of its payload."""


class Loaded(msgspec.Struct, frozen=True):
    """State of a journal when it is opened."""

    stream: str
    acknowledged: int
    """Number of the last item that is safe on the other side; 0 where none is."""
    frames: Sequence[KeptFrame] = ()


class MemoryJournal:
    """Frames in memory, by the number of their first item. Numbers begin at 1 and have no gaps."""

    durable = False
    """It outlives the process."""

    def __init__(self) -> None:
        self._stream = secrets.token_hex(16)
        self._payloads: dict[int, bytes] = {}
        self._frames: deque[tuple[int, int]] = deque()

    def open(self) -> Loaded:
        """Read the frames from before, or begin a new stream, with a name that no other has."""
        return Loaded(self._stream, 0)

    def append(self, first: int, last: int, payload: bytes) -> None:
        """Keep a frame; it is safe after :meth:`commit`."""
        self._payloads[first] = payload
        self._frames.append((first, last))

    def commit(self) -> None:
        """Make safe what was appended."""

    def payload(self, first: int) -> bytes:
        return self._payloads[first]

    def acknowledged(self, up_to: int) -> None:
        """Forget frames that end at item `up_to` or before."""
        while self._frames and self._frames[0][1] <= up_to:
            del self._payloads[self._frames.popleft()[0]]

    def close(self) -> None:
        """Close its files; everything committed stays."""


_SCHEMA = """
CREATE TABLE IF NOT EXISTS stream (id TEXT NOT NULL, about TEXT NOT NULL, acknowledged INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS frames (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, payload BLOB NOT NULL);
"""


class FileJournal(MemoryJournal):
    """Frames in a SQLite file, for one process at a time.

    A committed frame survives `kill -9` of the process, always: it is in the system's cache. With `fsync` it survives
    loss of power as well, for a write to the disk's platter per commit, during which the event loop stands.
    """

    durable = True

    def __init__(self, path: Path, about: str, *, fsync: bool = False) -> None:
        super().__init__()
        self.path = path
        self._about = about
        self._fsync = fsync
        self._database: sqlite3.Connection | None = None

    def open(self) -> Loaded:
        """Read the frames from before, or begin a new stream. Raises WiringError: the file belongs to another connector, is
        in use, or is no journal."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            database = self._database = sqlite3.connect(self.path, timeout=0, isolation_level=None)
            # Exclusive before anything is read: the lock is kept, and the write-ahead log needs no shared memory file.
            database.execute("PRAGMA locking_mode=EXCLUSIVE")
            database.execute("PRAGMA journal_mode=WAL")
            database.execute(f"PRAGMA synchronous={'FULL' if self._fsync else 'OFF'}")
            database.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA.split(";"):
                database.execute(statement)
            row = database.execute("SELECT id, about, acknowledged FROM stream").fetchone()
            if row is None:
                row = (self._stream, self._about, 0)
                database.execute("INSERT INTO stream VALUES (?, ?, ?)", row)
            database.execute("COMMIT")
            frames = database.execute("SELECT first, last, length(payload) FROM frames ORDER BY first").fetchall()
        except sqlite3.Error as error:
            self.close()
            reason = "another process uses it" if "locked" in str(error) else str(error)
            raise WiringError(f"journal {str(self.path)!r} cannot be opened: {reason}") from None
        if row[1] != self._about:
            self.close()
            raise WiringError(
                f"journal {str(self.path)!r} holds items of {row[1]}, not of {self._about}; give each its own file"
            )
        return Loaded(row[0], row[2], [KeptFrame(*frame) for frame in frames])

    def append(self, first: int, last: int, payload: bytes) -> None:
        """Keep a frame; a transaction is open until :meth:`commit`."""
        with self._opened() as database:
            if not database.in_transaction:
                database.execute("BEGIN")
            database.execute("INSERT INTO frames VALUES (?, ?, ?)", (first, last, payload))

    def commit(self) -> None:
        with self._opened() as database:
            if database.in_transaction:
                database.execute("COMMIT")

    def payload(self, first: int) -> bytes:
        with self._opened() as database:
            row = database.execute("SELECT payload FROM frames WHERE first = ?", (first,)).fetchone()
        if row is None:
            raise ConnectorError(f"journal {str(self.path)!r} has lost the frame of item {first}")
        return bytes(row[0])

    def acknowledged(self, up_to: int) -> None:
        """Delete what is safe on the other side, at once: a repeat would double items of a forgetful consumer."""
        with self._opened() as database:
            database.execute("BEGIN")
            database.execute("DELETE FROM frames WHERE last <= ?", (up_to,))
            database.execute("UPDATE stream SET acknowledged = ?", (up_to,))
            database.execute("COMMIT")

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        if self._database is None:
            raise ConnectorError(f"journal {str(self.path)!r} is not open")
        try:
            yield self._database
        except sqlite3.Error as error:
            raise ConnectorError(f"journal {str(self.path)!r} cannot go on: {error}") from error
