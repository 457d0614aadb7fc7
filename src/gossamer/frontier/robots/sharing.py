"""A robots gate that shares the answers of sites with the other crawls of the same user (`--robots-cache`), and the file that has
them.

Place in the flow: :class:`SharingRobots` stands in the place of :class:`~gossamer.frontier.robots.provider.ObeyRobots` and judges
as it does. Before a robots.txt is requested, it looks for an answer of another crawl; settled answers of its own go there. An
answer is for one product token, one policy and one view of the web: crawls with other names, other addresses of hosts or other
credentials have their own. Failures are not shared: another crawl may have a better network.

:class:`UserRobotsAnswers` keeps them in one file of the user's cache folder: SQLite, so that any number of crawls write it at
once. The file is a cache and nothing more: it may be deleted at any time, and a process that cannot use it goes on alone. Only
the user can read it. It is read as if a stranger had written it: each state has a checksum over all that it stands for, and the
gate reads it as a typed value.
"""

import contextlib
import ipaddress
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import xxhash

from gossamer.engine import processes
from gossamer.engine.ends import Uses
from gossamer.engine.files import user_folder
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.robots.contract import Lesson, RobotsAnswers, RobotsRuling, RobotsVerdict
from gossamer.frontier.robots.machine import Effect, RobotsEvent, RobotsState, State
from gossamer.frontier.robots.provider import ObeyRobots, RobotsSheet
from gossamer.frontier.robots.rules import MAX_DELAY
from gossamer.values.task import Task
from gossamer.values.url import site_of
from gossamer.values.visit import Response

#: Of what is in the file. Another layout has a file of its own, so that two versions of Gossamer do not meet.
LAYOUT = 1

#: Seconds that a writer waits for another one: the crawl stands still meanwhile, and a transaction takes less than a millisecond.
_BUSY = 0.05

#: Seconds after which another process may ask, though one that lives has said that it would: the longest fetch takes 120.
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
    """The folder of the file: `$XDG_CACHE_HOME/gossamer/robots`, usually `~/.cache/gossamer/robots`."""
    return user_folder("cache") / "robots"


class UserRobotsAnswersSheet(Sheet, frozen=True):
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
    """Keeps the robots.txt answers that the crawls of one user share. Contract: `RobotsAnswers`."""

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
        self._close()

    # -- the contract

    def find(self, name: str) -> bytes:
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
        with self._alone_if_it_fails() as connection:
            if connection is None:
                return 0.0
            with _transaction(connection):
                known = connection.execute("SELECT until, process FROM claims WHERE name = ?", (name,)).fetchone()
                if known is not None and known[1] != os.getpid():
                    until, process = known
                    is_soon = isinstance(until, float) and now < until <= now + CLAIMED + _LOOK
                    if is_soon and _is_alive(process):
                        return _LOOK
                row = name, now + CLAIMED, os.getpid()
                connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", row)
        return 0.0

    def release(self, name: str) -> None:
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
    """The folder, which only its owner can enter. Raises OSError; so does one that belongs to another user."""
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
        # A kill loses nothing of what the system has; damage by a power cut is found by the checksums, or made anew.
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.executescript(_TABLES)
    except BaseException:
        connection.close()
        raise
    return connection


def _digest(name: str, state: bytes) -> bytes:
    return xxhash.xxh3_128_digest(b"%d\n%s\n%s" % (LAYOUT, name.encode(), state))


def _is_alive(process: object) -> bool:
    """Whether this process of ours lives. One in another container does not for us: it is asked for twice then, at worst."""
    return isinstance(process, int) and process > 0 and processes.is_alive(process)


#: Seconds by which the clock of another process may be ahead of ours.
_SLACK = 60.0

#: The meanings of answers that others can use.
_SHAREABLE = frozenset((Effect.OBEY, Effect.ALLOW, Effect.DENY))


class SharingRobotsSheet(RobotsSheet, frozen=True):
    reads: Annotated[
        bool,
        setting("Use answers of other crawls; if off, ask each site, and only share its answers."),
    ] = True
    private: Annotated[
        bool,
        setting(
            "Also share answers of hosts on this machine and in private networks, where an address may soon be another host's."
        ),
    ] = False
    view: Annotated[
        str,
        setting(
            "Share only with crawls that have the same text here, because they reach hosts in the same way.",
            restart="the kept answers were given to a crawl with this view",
        ),
    ] = ""


class SharingRobots(ObeyRobots):
    """Obeys robots.txt, and shares answers. Implements `RobotsGate`."""

    answers: Uses[RobotsAnswers]
    sheet_type = SharingRobotsSheet

    def __init__(self, sheet: SharingRobotsSheet | None = None) -> None:
        super().__init__(sheet)
        self._claimed: set[str] = set()
        """Sites that this process asks."""
        self._private: set[str] = set()
        """Those of them that a private address has answered for."""

    @property
    def _terms(self) -> SharingRobotsSheet:
        assert isinstance(self.sheet, SharingRobotsSheet)
        return self.sheet

    async def stop(self) -> None:
        for site in list(self._claimed):
            self._release(site)

    def judge(self, task: Task, now: float) -> RobotsVerdict:
        verdict = super().judge(task, now)
        if verdict.ruling not in (RobotsRuling.FETCH_FIRST, RobotsRuling.WAIT) or not self._terms.reads:
            return verdict
        site = site_of(task.url)
        if self.known(site).tries or self.known(site).hops:
            return verdict  # an attempt of our own is under way
        if (found := self._found(site, now)) is not None:
            self._keep(site, found)
            self.metrics.count("answers_shared")
            self._release(site)
            return msgspec.structs.replace(super().judge(task, now), is_news=True)
        if verdict.ruling is RobotsRuling.FETCH_FIRST:
            if wait := self.answers.claim(self._name(site), now):
                return RobotsVerdict(RobotsRuling.WAIT, "another crawl asks for robots.txt", until=now + wait)
            self._claimed.add(site)
        return verdict

    def learned(self, site: str, response: Response, now: float, addresses: int = 1) -> Lesson:
        if not _is_public(response):
            self._private.add(site)
        lesson = super().learned(site, response, now, addresses)
        state = self.known(site)
        if not (state.tries or state.hops):
            is_private = site in self._private
            self._private.discard(site)
            if _is_shareable(state) and (self._terms.private or not is_private) and not response.is_unverified:
                self.answers.keep(self._name(site), self.state(site), now)
            self._release(site)
        return lesson

    def restore(self, site: str, state: bytes) -> None:
        super().restore(site, state)
        self._release(site)  # it need not be asked after all, or is claimed again

    # -- what others know

    def _name(self, site: str) -> str:
        sheet = self._terms
        return f"{site} {sheet.agent.lower()} {sheet.policy} {sheet.view}"

    def _found(self, site: str, now: float) -> RobotsState | None:
        """The answer to another crawl, if it is good now. An answer is believed only if this gate could have had it."""
        data = self.answers.find(self._name(site))
        if not data:
            return None
        try:
            state = msgspec.msgpack.decode(data, type=RobotsState)
        except (ValueError, RecursionError):
            self.metrics.count("states_unreadable")
            return None
        until = min(state.date + self._policy.keep, state.until)
        if not (_is_shareable(state) and state.date <= now + _SLACK and now < until):
            return None
        return msgspec.structs.replace(state, until=until, failures=0, since=0.0, target="", after=0.0)

    def _release(self, site: str) -> None:
        if site in self._claimed:
            self._claimed.discard(site)
            self.answers.release(self._name(site))


def _is_public(response: Response) -> bool:
    """Whether the address that answered means the same host for every agent. One that is not told, as behind a proxy, does not."""
    try:
        return ipaddress.ip_address(response.address).is_global
    except ValueError:
        return False


def _is_shareable(state: RobotsState) -> bool:
    """A settled answer of the site itself, in the form that the machine gives it."""
    if state.state is not State.QUALIFIED or state.meaning not in _SHAREABLE or state.event is RobotsEvent.SHUT:
        return False
    if state.tries or state.hops or (state.rules is not None) != (state.meaning is Effect.OBEY):
        return False
    delays = (group.delay for group in state.rules.groups) if state.rules else ()
    return all(delay is None or 0 <= delay <= MAX_DELAY for delay in delays)
