"""Watching a crawl from outside: how it stands, again and again, whether it runs, rests, or begins and ends meanwhile.

Place in the flow: `gossamer watch` and the dashboard look here. A running crawl is asked over one connection that stays; of one
that rests the ledger is read once, and again only when something has been at it. Samples, as plots need them, come out of the log
of the run that writes, and out of the tables of earlier ones. SQL sees the same rows as the table `samples`
(:mod:`gossamer.storage.tables.row_tables`); here a look at the last minutes costs no SQL.
"""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.control.client import Control, NotRunning, check_is_crawl
from gossamer.crawls.control.host_facts import HostNow, HostsNow
from gossamer.crawls.control.messages import ReadHosts, Status
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.engine.files import scratch
from gossamer.query.convert import parquet_of
from gossamer.query.engine import Error, connect, linked, select_table
from gossamer.query.schema import lasting
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.storage.tables.manifest import is_parquet
from gossamer.storage.tables.places import CRAWL_FILE, Segment, reading, segments, table_files
from gossamer.storage.tables.row_tables import FINE, SAMPLES, SampleRow

#: Seconds for an answer: a watcher would rather say that there is none than wait for long.
PATIENCE = 5.0


class CrawlWatch:
    """Looks at one crawl."""

    def __init__(self, directory: Path, patience: float = PATIENCE) -> None:
        """Nothing is looked at yet.

        Args:
            patience: seconds for an answer of a running crawl.

        Raises:
            UsageError: the directory holds no crawl.
        """
        check_is_crawl(directory)
        self.directory = directory
        self._patience = patience
        self._control: Control | None = None
        self._resting: tuple[object, CrawlStanding] | None = None

    def look(self, *, units: bool = False, agent: str = "") -> CrawlStanding:
        """How the crawl stands now; with `units` also what every unit of a running one has counted.

        Args:
            units: also tell of units.
            agent: tell of this one alone, of several that run.

        Raises:
            CrawlDirectoryError: a running crawl does not answer, or the ledger of one that rests is missing or damaged.
            SteeringRefused: it has no such agent.
        """
        try:
            found = self._connected().told(Status(units, agent), CrawlStanding)
            self._resting = None
            return found
        except NotRunning:
            self.close()
            return self._read()
        except Exception:
            self.close()
            raise

    def hosts(self, names: Sequence[str]) -> dict[str, HostNow]:
        """How hosts stand at this moment, by their names; nothing of a crawl that does not run.
        Raises CrawlDirectoryError: a running crawl does not answer."""
        try:
            found = self._connected().told(ReadHosts(list(names)), HostsNow)
        except NotRunning:
            self.close()
            return {}
        except Exception:
            self.close()
            raise
        return found.hosts

    def close(self) -> None:
        """Hang up. The next look connects again."""
        control, self._control = self._control, None
        if control is not None:
            control.close()

    def _connected(self) -> Control:
        if self._control is None:
            self._control = Control(self.directory, self._patience, changing=0.0)
        return self._control

    def _read(self) -> CrawlStanding:
        mark = self._mark()
        if self._resting is None or self._resting[0] != mark:
            self._resting = mark, standing_at_rest(self.directory)
        return self._resting[1]

    def _mark(self) -> object:
        """Something that is another one when a run, or a command about a crawl at rest, has been at its ledger."""
        places = [self.directory / CRAWL_FILE, *sorted((self.directory / STATE_DIRECTORY).glob("*/ledger"))]
        return [(place, place.stat().st_mtime_ns) for place in places if place.exists()]


#: Bytes at the end of a log that are read for recent samples: more than a day of them.
TAIL = 8 << 20

#: Columns that are added up where several agents took samples of one crawl; the others are those of the last agent.
_ADDED = (
    "pages", "fetched", "unique_documents", "bytes", "errors", "raised", "discovered", "queued", "set_aside", "in_flight",
    "hosts", "pages_per_second", "cpu_seconds", "peak_rss_bytes",
)  # fmt: skip

_row = msgspec.json.Decoder(SampleRow)


def read_samples(directory: Path, since: str = "") -> list[SampleRow]:
    """The samples of every agent that were taken after an instant, in the order of time; a row that cannot be read is left out.

    Args:
        since: as in the column `taken_at`; empty for all.
    """
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
                except msgspec.MsgspecError:
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
    return [_of_table(dict(zip(names, row, strict=True))) for row in found]


#: How `taken_at` is written.
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"

#: Columns that come out of a table as text.
_as_text = {"taken_at": f"strftime(taken_at, '{_TIME}')", "outcomes": "outcomes::VARCHAR", "sizes": "sizes::VARCHAR"}


def _of_table(row: dict[str, object]) -> SampleRow:
    for name in ("outcomes", "sizes"):
        row[name] = msgspec.json.decode(str(row[name])) if row[name] else {}
    return msgspec.convert({name: value for name, value in row.items() if value is not None}, SampleRow)


def combined(rows: Iterable[SampleRow]) -> list[SampleRow]:
    """The samples of several agents as those of one crawl: added up by the ten seconds in which they were taken."""
    by_time: dict[str, dict[str, SampleRow]] = {}
    for row in rows:
        by_time.setdefault(row.taken_at[:18], {})[row.agent] = row  # up to the tens of seconds
    return [_sum(list(parts.values())) for _, parts in sorted(by_time.items())]


def _sum(parts: list[SampleRow]) -> SampleRow:
    if len(parts) == 1:
        return parts[0]
    added = {name: sum(getattr(part, name) for part in parts) for name in _ADDED}
    outcomes: dict[str, int] = {}
    for part in parts:
        for name, count in part.outcomes.items():
            outcomes[name] = outcomes.get(name, 0) + count
    return msgspec.structs.replace(parts[-1], **added, outcomes=outcomes)


def speeds(rows: list[SampleRow]) -> list[float]:
    """Pages a second between each sample and the one before; a new run, or a gap, gives 0."""
    found = []
    for before, row in itertools.pairwise(rows):
        passed = row.seconds - before.seconds
        found.append(max(0, row.pages - before.pages) / passed if 0 < passed <= 60 * FINE else 0.0)
    return found
