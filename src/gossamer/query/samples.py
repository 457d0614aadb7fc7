"""The samples of a crawl, as plots need them: out of the log of the run that writes, and out of the tables of earlier ones.

Place in the flow: `watch` and the dashboard read here. SQL sees the same rows as the table `samples`
(:mod:`gossamer.storage.tables.row_tables`); here a look at the last minutes costs no SQL.
"""

import itertools
from collections.abc import Iterable
from pathlib import Path

import msgspec

from gossamer.engine.files import scratch
from gossamer.query.convert import parquet_of
from gossamer.query.engine import Error, connect, select_table
from gossamer.query.schema import lasting
from gossamer.storage.tables.manifest import is_parquet
from gossamer.storage.tables.places import reading, table_files
from gossamer.storage.tables.row_tables import FINE, SAMPLES, SampleRow
from gossamer.storage.tables.segments import Segment, segments

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
        directory: the crawl directory.
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
        links = []
        for number, path in enumerate(sound):
            links.append(Path(folder, f"samples-{number}.parquet"))
            links[-1].symlink_to(path.resolve())
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
