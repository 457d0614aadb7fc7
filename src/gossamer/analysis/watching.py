"""Watching a crawl from outside: how it stands, again and again, whether it runs, rests, or begins and ends meanwhile; and one of
its hosts, with versions of its robots.txt and with visits that failed (:func:`picture_of`).

Place in the flow: `gossamer watch` and the dashboard look here. A running crawl is asked over one connection that stays; of one
that rests the ledger is read once, and again only when something has been at it. Samples, as plots need them, come out of the log
of the run that writes, and out of the tables of earlier ones. SQL sees the same rows as the table `samples`
(:mod:`gossamer.storage.tables.row_tables`); here a look at the last minutes costs no SQL.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from gossamer.crawls.catalog import catalog
from gossamer.crawls.control.at_rest import added, standing_at_rest
from gossamer.crawls.control.client import Control, NotRunning
from gossamer.crawls.control.facts import NAMED, FailedUrl, HostKnown, HostNow, HostsNow, host_known
from gossamer.crawls.control.messages import ReadHost, ReadHosts, Status
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.control.wire import ControlRequest
from gossamer.crawls.directory import read_wiring
from gossamer.crawls.old_wirings import completed
from gossamer.engine.files import scratch
from gossamer.engine.planning import plan
from gossamer.query.archive import ArchiveReader, view_archived
from gossamer.query.convert import parquet_of
from gossamer.query.engine import Error, connect, linked, select_table
from gossamer.query.schema import lasting
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, RocksLedger, ledgers_of
from gossamer.storage.logs import LOG_PATH
from gossamer.storage.tables.manifest import is_parquet
from gossamer.storage.tables.places import CRAWL_FILE, Segment, begun_crawl, reading, segments, table_files
from gossamer.storage.tables.row_tables import FINE, SAMPLES, SampleRow
from gossamer.values.errors import CrawlDirectoryError, UnreadableUrl, UsageError
from gossamer.values.outcome import ERRORS
from gossamer.values.url import canonical, host_of

#: Seconds for an answer: a watcher would rather say that there is none than wait for long.
PATIENCE = 5.0


class CrawlWatch:
    def __init__(self, directory: Path) -> None:
        """Nothing is looked at yet. Raises UsageError: the directory holds no crawl."""
        begun_crawl(directory)
        self.directory = directory
        self._control: Control | None = None
        self._resting: tuple[object, CrawlStanding] | None = None

    def look(self, *, units: bool = False, agent: str = "") -> CrawlStanding:
        """How the crawl, or one of several agents, stands now; with `units` also what every unit of a running one has counted.
        Raises CrawlDirectoryError: a running crawl does not answer, or the ledger of one that rests is missing or damaged.
        Raises RequestRefused: it has no such agent."""
        try:
            found = self._connected().told(Status(units, agent), CrawlStanding)
            self._resting = None
            return found
        except NotRunning:
            self.close()
            # The mark is another one when a run, or a command about a crawl at rest, has been at its ledger.
            places = [self.directory / CRAWL_FILE, *sorted((self.directory / STATE_DIRECTORY).glob("*/ledger"))]
            mark = [(place, place.stat().st_mtime_ns) for place in places if place.exists()]
            if self._resting is None or self._resting[0] != mark:
                self._resting = mark, standing_at_rest(self.directory)
            return self._resting[1]
        except Exception:
            self.close()
            raise

    def hosts(self, names: Sequence[str]) -> dict[str, HostNow]:
        """How hosts stand at this moment, by their names; nothing of a crawl that does not run.
        Raises CrawlDirectoryError: a running crawl does not answer."""
        try:
            return self._connected().told(ReadHosts(list(names)), HostsNow).hosts
        except Exception as error:
            self.close()
            if isinstance(error, NotRunning):
                return {}
            raise

    def close(self) -> None:
        """Hang up. The next look connects again."""
        control, self._control = self._control, None
        if control is not None:
            control.close()

    def _connected(self) -> Control:
        if self._control is None:
            self._control = Control(self.directory, PATIENCE, changing=0.0)
        return self._control


#: Bytes at the end of a log that are read for recent samples: more than a day of them.
TAIL = 8 << 20

#: Columns that are added up where several agents took samples of one crawl; the others are those of the last agent.
_ADDED = (
    "pages", "fetched", "unique_documents", "bytes", "errors", "raised", "discovered", "queued", "set_aside", "in_flight",
    "hosts", "pages_per_second", "cpu_seconds", "peak_rss_bytes",
)  # fmt: skip

_row = msgspec.json.Decoder(SampleRow)


def read_samples(directory: Path, since: str = "") -> list[SampleRow]:
    """The samples of every agent that were taken after an instant (as in the column `taken_at`; empty for all), in the order of
    time; a row that cannot be read is left out."""
    with reading(directory):
        logs = [one for one in segments(directory) if one.table == SAMPLES.name]
        files = table_files(directory, SAMPLES.name)
        live = [one for one in logs if parquet_of(directory, one).name not in files.made]
        rows = [row for one in live for row in _logged(one, since) if row.taken_at > since]
        rows += _tabled(files.current, since)
    return sorted(rows, key=lambda row: row.taken_at)


def _logged(segment: Segment, since: str) -> Iterable[SampleRow]:
    with segment.path.open("rb") as log:
        end = log.seek(0, 2)
        # The first line of a part is torn; a row of long ago is not looked for where only recent ones are wanted.
        log.seek(max(0, end - TAIL) if since else 0)
        for line in log:
            if line.endswith(b"\n"):
                try:
                    yield _row.decode(line)
                except ValueError:
                    continue


def _tabled(files: Iterable[Path], since: str) -> list[SampleRow]:
    sound = [path for path in files if is_parquet(path)]
    if not sound:
        return []
    names = SampleRow.__struct_fields__
    columns = ", ".join(_as_text.get(name, f'"{name}"') for name in names)
    with scratch() as folder, connect(folder) as connection:
        links = [linked(Path(folder), f"samples-{number}", path) for number, path in enumerate(sound)]
        rows = lasting(SAMPLES.name, select_table(SAMPLES.spec, links))
        try:
            found = connection.execute(
                f"SELECT {columns} FROM ({rows}) WHERE taken_at IS NOT NULL AND strftime(taken_at, ?) > ?",
                [_TIME, since],
            ).fetchall()
        except Error:
            return []  # `gossamer verify` says which file is damaged: a plot is no place for it
    samples = []
    for row in found:
        told = {name: value for name, value in zip(names, row, strict=True) if value is not None}
        told |= {name: msgspec.json.decode(told[name] or "{}") for name in ("outcomes", "sizes") if name in told}
        samples.append(msgspec.convert(told, SampleRow))
    return samples


#: How `taken_at` is written.
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"

#: Columns that come out of a table as text.
_as_text = {"taken_at": f"strftime(taken_at, '{_TIME}')", "outcomes": "outcomes::VARCHAR", "sizes": "sizes::VARCHAR"}


def combined(rows: Iterable[SampleRow]) -> list[SampleRow]:
    """The samples of several agents as those of one crawl: added up by the ten seconds in which they were taken."""
    by_time: dict[str, dict[str, SampleRow]] = {}
    for row in rows:
        by_time.setdefault(row.taken_at[:18], {})[row.agent] = row  # up to the tens of seconds
    made = []
    for _, parts in sorted(by_time.items()):
        *others, last = parts.values()
        if others:
            sums = {name: sum(getattr(part, name) for part in parts.values()) for name in _ADDED}
            last = msgspec.structs.replace(last, **sums, outcomes=added(part.outcomes for part in parts.values()))
        made.append(last)
    return made


def speeds(rows: list[SampleRow]) -> list[float]:
    """Pages a second between each sample and the one before; a new run, or a gap, gives 0."""
    found = []
    for before, row in itertools.pairwise(rows):
        passed = row.seconds - before.seconds
        found.append(max(0, row.pages - before.pages) / passed if 0 < passed <= 60 * FINE else 0.0)
    return found


# One host of a crawl as a person looks at it: what the crawl knows of it, and its robots.txt with all versions of it.

T = TypeVar("T", bound=msgspec.Struct)

#: Sites of a host whose robots.txt is looked for, versions that are listed of each, and characters that are shown of the last one.
SITES, VERSIONS, SHOWN = 4, 50, 50_000


class RobotsVersion(msgspec.Struct, frozen=True):
    at: str
    """Digits of the time, as `20260301120000` (UTC)."""
    status: str
    is_changed: bool
    """It has other bytes than the version before."""


class SiteRobots(msgspec.Struct, frozen=True):
    url: str
    versions: list[RobotsVersion]
    """The newest first; fifty at most."""
    text: str
    """Body of the last good answer; empty where there is none, or the archive cannot be read."""


class HostPicture(msgspec.Struct, frozen=True):
    known: HostKnown
    robots: list[SiteRobots]
    errors: list[FailedUrl]
    """Visits that failed, the newest first: the last visits of URLs, and all among the last lines of the log."""


class _Logged(msgspec.Struct, frozen=True):
    """The fields that are read of a line of the log."""

    url: str
    host: str
    outcome: str
    fetched_at: str
    status: int = 0
    error: str = ""


def picture_of(directory: Path, name: str) -> HostPicture:
    """The knowledge of a crawl, which may be at work, of a host. Raises UsageError: it is not the name of a host, or there is
    no crawl. Raises CrawlDirectoryError: the ledger is missing or damaged, or a running crawl does not answer."""
    try:
        host = host_of(canonical(f"http://{name.strip()}/"))
    except UnreadableUrl:
        host = ""
    if not host or any(letter in name for letter in "/@?#"):
        raise UsageError(f"{name!r} is not the name of a host")
    begun_crawl(directory)

    def read(ledger: RocksLedger) -> HostKnown:
        return host_known(ledger, plan(completed(read_wiring(directory)), catalog()), host)

    found = known_facts(
        directory, ReadHost(host), HostKnown, read, lambda place: Control(place, PATIENCE, changing=0.0)
    )
    known = max(found, key=lambda one: (one.state.first_seen > 0, one.queued))
    sites = known.sites[:SITES] or [f"https://{host}", f"http://{host}"]
    robots = [one for site in sites if (one := _robots(directory, f"{site}/robots.txt")).versions]
    # Both tell of the same visit with other digits of its time.
    errors = {(one.url, round(one.fetched_at, 3)): one for one in (*known.failed, *_failed_visits(directory, host))}
    return HostPicture(known, robots, sorted(errors.values(), key=lambda one: -one.fetched_at)[:NAMED])


def known_facts(
    directory: Path,
    asked: ControlRequest,
    kind: type[T],
    read: Callable[[RocksLedger], T],
    connect: Callable[[Path], Control] = Control,
) -> list[T]:
    """Facts by word of the crawl while it runs, otherwise out of each of its ledgers."""
    try:
        with connect(directory) as control:
            return [control.told(asked, kind)]
    except NotRunning:
        found = []
        for ledger in ledgers_of(directory):
            with ledger.looking():
                found.append(read(ledger))
        return found


def _failed_visits(directory: Path, host: str) -> list[FailedUrl]:
    """The failed visits of a host that the end of the log tells of."""
    named = b'"host":' + msgspec.json.encode(host)
    found = []
    for line in last_lines(directory / LOG_PATH, TAIL):
        if named in line:
            with contextlib.suppress(ValueError):  # the first line is torn, and the last may be
                row = msgspec.json.decode(line, type=_Logged)
                if row.outcome in ERRORS and row.host == host:
                    at = datetime.fromisoformat(row.fetched_at).timestamp()
                    found.append(FailedUrl(row.url, row.outcome, row.status, at, row.error))
    return found


def last_lines(path: Path, most: int) -> list[bytes]:
    """The lines in so many bytes at the end of a file, of which the first may be torn; none where it cannot be read."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, log.seek(0, 2) - most))
            return log.read(most).splitlines()
    except OSError:
        return []


def _robots(directory: Path, url: str) -> SiteRobots:
    versions: list[RobotsVersion] = []
    before = ""
    for one in ArchiveReader(directory).captures(url):
        versions.append(RobotsVersion(one.timestamp, one.entry.status, one.entry.digest != before))
        before = one.entry.digest
    text = ""
    with contextlib.suppress(UsageError, CrawlDirectoryError):  # the list of versions is worth showing without it
        text = view_archived(directory, url).source[:SHOWN] if versions else ""
    return SiteRobots(url, versions[: -VERSIONS - 1 : -1], text)
