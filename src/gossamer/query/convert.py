"""Closed row logs become Parquet, and `pages` also a run of the index. A process of its own: `python -m gossamer.query`.

Place in the flow: the crawl starts it at its end (`--ended`) and by interval; `query` and `export` call :func:`convert`
before they read. It may be killed at any point: a file that is made is made whole (written beside, then renamed), is called
after its segment, and the segment goes only when its files are there. Who reads passes by segments that have their file.
"""

import tempfile
from pathlib import Path

import msgspec

from gossamer.query.engine import ParquetWriter, select_from_log, select_table
from gossamer.query.places import TABLES, Manifest, converting, manifest, reading, removing, table_files, write_manifest
from gossamer.query.schema import HOSTS_VIEW, LOGGED, Table
from gossamer.stores.cdxj import INDEX, merge, write_run
from gossamer.stores.segments import Segment, closed, mark_closed, open_runs, segments


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
    with converting(directory, wait=ended) as held, ParquetWriter() as writer:
        if not held:
            return Converted(busy=True)
        if ended:
            mark_closed(directory)
        # First what may still be open, then what is there: a run that begins between the two is open, too.
        still_open = open_runs(directory)
        done = 0
        for segment in closed(segments(directory), still_open):
            if not parquet_of(directory, segment).exists():
                _convert_one(directory, segment, writer)
                done += 1
        _remove_converted(directory, still_open)
        captures = 0
        if ended:
            captures = write_index(directory)
            write_hosts(directory, writer)
        return Converted(done, captures)


def _convert_one(directory: Path, segment: Segment, writer: ParquetWriter) -> None:
    if segment.table == "pages":
        with segment.path.open("rb") as rows:
            write_run(rows, run_of(directory, segment))
    table = LOGGED.get(segment.table)
    if table is not None:
        _write_parquet(table, segment.path, parquet_of(directory, segment), writer)


def _write_parquet(table: Table, log: Path, target: Path, writer: ParquetWriter) -> None:
    writer.write(select_from_log(table, [writer.link(log)]), target)


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


def write_hosts(directory: Path, writer: ParquetWriter) -> None:
    """The table of hosts as one file, for tools that read Parquet: it is made anew from pages and notes each time.

    Call it when everything that was logged is a table.
    """
    with reading(directory):
        files = {name: table_files(directory, name).current for name in ("pages", "host_notes")}
        if not files["pages"]:
            return
        for name, paths in files.items():
            writer.view(name, select_table(name, [writer.link(path) for path in paths]))
        writer.write(HOSTS_VIEW, directory / TABLES / "hosts" / "hosts.parquet")
