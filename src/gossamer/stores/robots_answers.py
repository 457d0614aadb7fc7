"""What sites said in robots.txt, in one file of the user's cache folder: SQLite, so that any number of crawls write it at once.

Place in the flow: a robots gate that shares (:mod:`gossamer.services.robots.sharing`) asks it. The file is a cache and nothing
more: it may be deleted at any time, and a process that cannot use it goes on alone. Only the user can read it. It is read as if a
stranger had written it: each state has a checksum over all that it stands for, and the gate reads it as a typed value.
"""

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import xxhash

from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider

#: Of what is in the file. Another layout has a file of its own, so that two versions of Gossamer do not meet.
LAYOUT = 1

#: Seconds that a writer waits for another one: the crawl stands still meanwhile, and a transaction takes less than a millisecond.
_BUSY = 0.05

#: Seconds after which somebody else may ask, though a process that lives has said that it would: the longest fetch takes 120.
CLAIMED = 120.0

#: Seconds between two looks at a site that another process asks.
_LOOK = 1.0

#: Bytes of a state. Longer ones are asked for by each crawl; rules of this length are one site in many thousands.
MAX_STATE = 256 << 10

#: States that are kept between two looks at the size of the file.
_BETWEEN = 256

#: The part of the states that goes when the file is too large.
_PART = 8

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (name TEXT PRIMARY KEY, kept REAL NOT NULL, state BLOB NOT NULL, digest BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS by_time ON answers (kept);
CREATE TABLE IF NOT EXISTS claims (name TEXT PRIMARY KEY, until REAL NOT NULL, process INTEGER NOT NULL) WITHOUT ROWID;
"""


def robots_cache_folder() -> Path:
    """Where the file lies: `$XDG_CACHE_HOME/gossamer/robots`, usually `~/.cache/gossamer/robots`."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "gossamer" / "robots"


class UserRobotsAnswersSheet(Sheet, frozen=True):
    """Settings of :class:`UserRobotsAnswers`."""

    folder: Annotated[
        str,
        setting(
            "Keep the file in this folder, which is made private; empty: `gossamer/robots` in the user's cache folder.",
            restart="its file is open there",
            names="a folder",
        ),
    ] = ""
    size: Annotated[
        int, setting("Let the file grow to about this size; the oldest answers go first.", unit="bytes", ge=1 << 20)
    ] = 64 << 20


class UserRobotsAnswers(Provider[UserRobotsAnswersSheet]):
    """Keeps the robots.txt answers that the crawls of one user share. Contract: `robots_answers.RobotsAnswers`."""

    def __init__(self, sheet: UserRobotsAnswersSheet | None = None) -> None:
        super().__init__(sheet)
        self._connection: sqlite3.Connection | None = None
        self._kept = 0
        self._is_told = False
        self.metrics.gauge("is_alone", lambda: int(self._connection is None))

    async def start(self) -> None:
        """Open the file; one that is damaged is made anew. A crawl that cannot use it goes on without."""
        with self._alone_if_it_fails():
            path = _private(self._folder) / f"answers-{LAYOUT}.sqlite"
            try:
                self._connection = _opened(path)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise  # locked, or not to be written: it may be as good as ever
                self.metrics.count("files_damaged")
                for end in ("", "-wal", "-shm"):
                    path.with_name(path.name + end).unlink(missing_ok=True)
                self._connection = _opened(path)
            self._shrink()

    async def stop(self) -> None:
        """Close it."""
        self._close()

    # -- the contract

    def find(self, name: str) -> bytes:
        """See the contract."""
        found: tuple[object, object] | None = None
        with self._alone_if_it_fails() as connection:
            if connection is not None:
                found = connection.execute("SELECT state, digest FROM answers WHERE name = ?", (name,)).fetchone()
        if found is None:
            return b""
        state, digest = found
        if not isinstance(state, bytes) or len(state) > MAX_STATE or digest != _digest(name, state):
            self.metrics.count("answers_damaged")
            return b""
        self.metrics.count("answers_found")
        return state

    def keep(self, name: str, state: bytes, now: float) -> None:
        """See the contract."""
        if len(state) > MAX_STATE:
            return
        with self._alone_if_it_fails() as connection:
            if connection is None:
                return
            row = name, now, state, _digest(name, state)
            connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", row)
            self.metrics.count("answers_kept")
            self._kept += 1
            if self._kept % _BETWEEN == 0:
                self._shrink()

    def claim(self, name: str, now: float) -> float:
        """See the contract."""
        with self._alone_if_it_fails() as connection:
            if connection is None:
                return 0.0
            with _transaction(connection):
                known = connection.execute("SELECT until, process FROM claims WHERE name = ?", (name,)).fetchone()
                if known is not None and known[1] != os.getpid() and _holds(known[0], known[1], now):
                    return _LOOK
                row = name, now + CLAIMED, os.getpid()
                connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", row)
        return 0.0

    def release(self, name: str) -> None:
        """See the contract."""
        with self._alone_if_it_fails() as connection:
            if connection is not None:
                connection.execute("DELETE FROM claims WHERE name = ? AND process = ?", (name, os.getpid()))

    # -- the file

    @property
    def _folder(self) -> Path:
        return Path(self.sheet.folder) if self.sheet.folder else robots_cache_folder()

    @contextlib.contextmanager
    def _alone_if_it_fails(self) -> Iterator[sqlite3.Connection | None]:
        """Use the file. Where it is busy, do without it this once; where it fails otherwise, from now on."""
        try:
            yield self._connection
        except sqlite3.Error as error:
            self.metrics.count("failures")
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                self._go_alone(str(error))
        except OSError as error:
            self.metrics.count("failures")
            self._go_alone(error.strerror or str(error))

    def _go_alone(self, why: str) -> None:
        self._close()
        if not self._is_told:
            self._is_told = True
            self.report(
                f"the robots cache in {self._folder} cannot be used ({why}), so this crawl asks every site itself; "
                "the folder may be deleted"
            )

    def _close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _shrink(self) -> None:
        """Drop the oldest answers of a file that is too large, and claims of processes that are gone."""
        connection = self._connection
        assert connection is not None
        [pages], [free], [size] = (
            connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count", "page_size")
        )
        with _transaction(connection):
            for name, process in connection.execute("SELECT name, process FROM claims").fetchall():
                if not _is_alive(process):
                    connection.execute("DELETE FROM claims WHERE name = ?", (name,))
            if (pages - free) * size > self.sheet.size:
                connection.execute(
                    "DELETE FROM answers WHERE name IN (SELECT name FROM answers ORDER BY kept "
                    "LIMIT (SELECT 1 + count(*) / ? FROM answers))",
                    (_PART,),
                )
                self.metrics.count("shrunk")


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _private(folder: Path) -> Path:
    """The folder, which only its owner can enter. Raises OSError; so does one that belongs to somebody else."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    seen = folder.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
        raise PermissionError(f"{folder} is not a folder of yours")
    if seen.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def _opened(path: Path) -> sqlite3.Connection:
    """The file, made where there is none. Raises sqlite3.Error, OSError."""
    # SQLite gives the files beside it the mode of this one.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, timeout=_BUSY, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        # A kill loses nothing of what the system has; what a power cut damages is found by the checksums, or made anew.
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.executescript(_TABLES)
    except BaseException:
        connection.close()
        raise
    return connection


def _digest(name: str, state: bytes) -> bytes:
    """Over all that a row says, and its layout."""
    return xxhash.xxh3_128_digest(b"%d\n%s\n%s" % (LAYOUT, name.encode(), state))


def _holds(until: object, process: object, now: float) -> bool:
    """Whether somebody is still asking."""
    return isinstance(until, float) and now < until <= now + CLAIMED + _LOOK and _is_alive(process)


def _is_alive(process: object) -> bool:
    """Whether this process of ours lives. One in another container does not for us: it is asked for twice then, at worst."""
    if not isinstance(process, int) or process <= 0:
        return False
    try:
        os.kill(process, 0)
    except (OSError, OverflowError):
        return False
    return True
