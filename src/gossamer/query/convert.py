"""Closed row logs become Parquet, and `pages` also a run of the index. A process of its own: `python -m gossamer.query`.

Place in the flow: the crawl starts it at its end (`--ended`) and by interval; `query` and `export` call :func:`convert`
before they read. It may be killed at any point: a file that is made is made whole (written beside, then renamed), is called
after its segment, and the segment goes only when its files are there. Who reads passes by segments that have their file.
"""

import tempfile
from pathlib import Path

import duckdb
import msgspec

from gossamer.query.places import TABLES, Manifest, converting, manifest, removing, table_files, write_manifest
from gossamer.query.schema import HOSTS_VIEW, LOGGED, Table
from gossamer.stores.cdxj import INDEX, merge, write_run
from gossamer.stores.segments import Segment, closed, mark_closed, open_runs, segments

#: What DuckDB may take while it converts; beyond, it spills to the disk.
MEMORY = "256MB"

#: Bytes of the largest line of a row log, with room to spare (`stores.rows` bounds items and frames).
LARGEST_LINE = 8 << 20

#: Rows of a Parquet file that are packed together. DuckDB's own 122,880 cost the converter 40 MB more.
ROW_GROUP = 20_480


#: How tables are written.
PARQUET = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP}"


class Converted(msgspec.Struct, frozen=True):
    """What :func:`convert` did."""

    segments: int = 0
    captures: int = 0
    """Lines of the index, where it was written."""
    busy: bool = False
    """Another process was at it, or the directory cannot be written: nothing was done."""


def parquet_of(directory: Path, segment: Segment) -> Path:
    """The file that a segment becomes."""
    return directory / TABLES / segment.table / f"{segment.stem}.parquet"


def run_of(directory: Path, segment: Segment) -> Path:
    """The run of the index that a segment of `pages` becomes."""
    return directory / "state" / segment.agent / "index" / f"{segment.stem}.cdxj"


def convert(directory: Path, *, ended: bool = False) -> Converted:
    """Make tables of all closed segments.

    Args:
        directory: the crawl directory.
        ended: the crawl has ended and everything is committed: all segments are closed, and the index is written.
    """
    with converting(directory, wait=ended) as held:
        if not held:
            return Converted(busy=True)
        if ended:
            mark_closed(directory)
        # First what may still be open, then what is there: a run that begins between the two is open, too.
        still_open = open_runs(directory)
        done = 0
        for segment in closed(segments(directory), still_open):
            if not parquet_of(directory, segment).exists():
                _convert_one(directory, segment)
                done += 1
        _remove_converted(directory, still_open)
        captures = 0
        if ended:
            captures = write_index(directory)
            write_hosts(directory)
        return Converted(done, captures)


def _convert_one(directory: Path, segment: Segment) -> None:
    if segment.table == "pages":
        with segment.path.open("rb") as rows:
            write_run(rows, run_of(directory, segment))
    table = LOGGED.get(segment.table)
    if table is not None:
        _write_parquet(table, segment.path, parquet_of(directory, segment))


def _write_parquet(table: Table, log: Path, target: Path) -> None:
    """Through links under names of our own, since DuckDB would read wildcards into those of the user."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gossamer-") as folder:
        link, out = Path(folder, "rows.jsonl"), Path(folder, "out")
        link.symlink_to(log.resolve())
        out.symlink_to(target.parent.resolve())
        fresh = out / f"{target.name}.new"
        with connect(folder) as connection:
            source = select_from_log(table, [link])
            connection.execute(f"COPY ({source}) TO '{fresh}' ({PARQUET})")
    target.with_name(f"{target.name}.new").replace(target)


def connect(workspace: str, memory: str = MEMORY, threads: int = 1) -> duckdb.DuckDBPyConnection:
    """A connection in memory that keeps to `memory` and spills into `workspace`."""
    connection = duckdb.connect(config={"memory_limit": memory, "threads": threads, "temp_directory": workspace})
    connection.execute("SET preserve_insertion_order = true")
    return connection


def select_from_log(table: Table, logs: list[Path]) -> str:
    """SQL that reads a table's rows out of row logs; their names hold nothing that SQL or a wildcard could mean."""
    names = ", ".join(f"'{path}'" for path in logs)
    log = (
        f"read_json([{names}], format = 'newline_delimited', columns = {table.logged}, "
        f"maximum_object_size = {LARGEST_LINE})"
    )
    return table.select.replace("{log}", log)


def _remove_converted(directory: Path, still_open: set[tuple[str, str]]) -> None:
    """Let go of segments that are tables now, and of files that newer ones replace, unless somebody reads."""
    with removing(directory) as alone:
        if not alone:
            return
        for segment in closed(segments(directory), still_open):
            if parquet_of(directory, segment).exists():
                segment.path.unlink()
        stands = manifest(directory)
        for name in stands.gone:
            (directory / TABLES / name).unlink(missing_ok=True)
        if stands.gone and not segments(directory):
            # While a log is left whose table is gone, its name has to be known.
            write_manifest(directory, Manifest(stands.run))


def write_index(directory: Path) -> int:
    """Merge all runs into the index; returns its lines. Runs go when the index holds them and nobody reads."""
    runs = sorted(directory.glob("state/*/index/*.cdxj"))
    index = directory / INDEX
    if not runs:
        return 0
    with tempfile.TemporaryDirectory(prefix="index-", dir=directory / "state") as folder:
        lines = merge([index, *runs] if index.exists() else runs, index, Path(folder))
    with removing(directory) as alone:
        for path in runs if alone else ():
            path.unlink()
    if not lines:
        index.unlink()
    return lines


def index_now(directory: Path, workspace: Path) -> Path:
    """The index as of now, in `workspace`: with the captures whose rows are not tables yet. Call it while `reading`."""
    parts = []
    for number, segment in enumerate(one for one in segments(directory) if one.table == "pages"):
        parts.append(workspace / f"live-{number}")
        with segment.path.open("rb") as rows:
            write_run((row for row in rows if row.endswith(b"\n")), parts[-1])
    parts += sorted(directory.glob("state/*/index/*.cdxj"))
    if (directory / INDEX).exists():
        parts.append(directory / INDEX)
    target = workspace / INDEX
    merge(parts, target, workspace)
    return target


def write_hosts(directory: Path) -> None:
    """The table of hosts as one file, for tools that read Parquet: it is made anew from pages and notes each time."""
    from gossamer.query.database import Database

    if not table_files(directory, "pages").current:
        return
    with Database(directory, memory=MEMORY, threads=1) as database:
        database.write_parquet(HOSTS_VIEW, directory / TABLES / "hosts" / "hosts.parquet")
