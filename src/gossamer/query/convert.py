"""Closed row logs become Parquet, and `pages` also a run of the index.

Place in the flow: a crawl has a worker call :func:`make_tables` now and then and at its end; `query` and `export` call
:func:`convert` before they read. It may be killed at any point: a file is made whole (written beside, then renamed), is
called after its segment, and the segment goes only when its files are there. Readers pass by segments that have their file.
"""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from gossamer.engine.errors import refusing
from gossamer.engine.worker import Caller
from gossamer.query.engine import ParquetWriter, select_table
from gossamer.query.schema import EVERY, HOSTS_VIEW, lasting, select_from_log, tables_of, tables_that_ship
from gossamer.storage.archive.cdxj import merge, write_run
from gossamer.storage.archive.contract import INDEX
from gossamer.storage.recovery import changing, noted
from gossamer.storage.tables.contract import TableSpec
from gossamer.storage.tables.manifest import (
    Damage,
    Notes,
    TablesOrder,
    damaged_index,
    note_failure,
    notes_of,
    read_notes,
    with_tables,
    write_notes,
)
from gossamer.storage.tables.places import (
    TABLES,
    Segment,
    TableManifest,
    closed_segments,
    converting,
    manifest,
    mark_closed,
    reading,
    removing,
    run_of_name,
    segments,
    table_files,
    write_manifest,
)
from gossamer.values.errors import CrawlDirectoryError

#: Bytes of a segment after which DuckDB is opened anew: it keeps some 70 MB of such a one, and opening costs a small table more
#: than the table itself.
_LARGE = 8 << 20


class Converted(msgspec.Struct, frozen=True):
    segments: int = 0
    captures: int = 0
    """Lines of the index, where it was written."""
    remade: str = ""
    """The damage of the index, where it was made again from the archive."""
    unreadable: int = 0
    """Gaps of the archive that were met meanwhile: records there are not in the index."""
    busy: bool = False
    """Another process was at it, or the directory cannot be written: nothing was done."""

    @property
    def told(self) -> str:
        """The parts that had to be made again, in words; empty where none had."""
        if not self.remade:
            return ""
        gaps = f", without {self.unreadable} damaged places of it" if self.unreadable else ""
        return f"{self.remade}; it was made again from the archive{gaps}"


def parquet_of(directory: Path, segment: Segment) -> Path:
    """The file that a segment becomes."""
    return directory / TABLES / segment.table / f"{segment.stem}.parquet"


def run_of(directory: Path, segment: Segment) -> Path:
    """The run of the index that a segment of `pages` becomes."""
    return directory / "state" / segment.agent / "index" / f"{segment.stem}.cdxj"


def make_tables(order: TablesOrder, caller: Caller) -> str | None:
    """Do as :func:`convert`; the answer tells of parts that had to be made again, and is None where an order that does not wait
    would have to. Raises CrawlDirectoryError: a directory cannot be written."""
    done = convert(Path(order.directory), ended=order.ended, waits=order.waits)
    if done.busy and order.ended:
        if not order.waits:
            return None
        raise CrawlDirectoryError("the directory cannot be written")
    return done.told


def convert(directory: Path, *, ended: bool = False, waits: bool = True) -> Converted:
    """Make tables of all closed segments. `ended` says that everything is committed: then all segments are closed, the index is
    written, and it `waits` for another process that is at it."""
    with converting(directory, wait=ended and waits) as held, ParquetWriter() as writer:
        if not held:
            return Converted(busy=True)
        if ended:
            mark_closed(directory)
        tables = tables_of(directory)
        done = 0
        for segment in closed_segments(directory):
            if not parquet_of(directory, segment).exists():
                _convert_one(directory, segment, tables, writer)
                done += 1
                if segment.path.stat().st_size >= _LARGE:
                    writer.rest()
        _remove_converted(directory)
        if not ended:
            return Converted(done)
        index = write_index(directory)
        write_hosts(directory, writer)
        note_failure(directory, "")
        return msgspec.structs.replace(index, segments=done)


def _convert_one(directory: Path, segment: Segment, tables: Mapping[str, TableSpec], writer: ParquetWriter) -> None:
    """Make what a segment becomes. The table is noted before it stands in its place."""
    if segment.table == "pages":
        with segment.path.open("rb") as rows:
            write_run(rows, run_of(directory, segment))
    table = tables.get(segment.table)
    if table is None:
        return
    target = parquet_of(directory, segment)
    sql = lasting(table.name, select_from_log(table, [writer.link(segment.path)]))
    fresh, _ = writer.prepare(sql, target)
    write_notes(directory, with_tables(notes_of(directory), {f"{segment.table}/{target.name}": noted(fresh)}))
    fresh.replace(target)


def _remove_converted(directory: Path) -> None:
    """Let go of segments that are tables now, and of files that newer ones replace, unless another program reads."""
    with removing(directory) as alone:
        if not alone:
            return
        for segment in closed_segments(directory):
            if parquet_of(directory, segment).exists():
                segment.path.unlink()
        stands = manifest(directory)
        if stands.gone:
            # The rows of these are in newer files.
            write_notes(directory, with_tables(notes_of(directory), dict.fromkeys(stands.gone)))
        for name in stands.gone:
            (directory / TABLES / name).unlink(missing_ok=True)
        if stands.gone and not segments(directory):
            # While a log is left whose table is gone, its name has to be known.
            write_manifest(directory, TableManifest(stands.run))


def write_index(directory: Path) -> Converted:
    """Merge all runs into the index, or make it again from the archive where it or a run is lost or cut. Runs go when the index
    holds them and no program reads. Call it while `converting`."""
    notes = notes_of(directory)
    runs, index = sorted(directory.glob("state/*/index/*.cdxj")), directory / INDEX
    damage = damaged_index(directory, notes)
    if not runs and damage is None:
        return Converted()
    gaps = 0
    state = directory / "state"
    for left in state.glob("index-*"):  # of a process that was killed: one at a time is here
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="index-", dir=state) as folder:
        if damage is None:
            parts = [index, *runs] if index.exists() else runs
        else:
            parts, gaps = _again(directory, Path(folder))
        fresh = Path(folder, INDEX)
        try:
            lines = merge(parts, fresh, Path(folder))
        except ValueError:  # a disk or a person changed a line
            damage = Damage(INDEX, "has lines that are no captures")
            parts, gaps = _again(directory, Path(folder))
            lines = merge(parts, fresh, Path(folder))
        tables = [Path(name) for name in notes.tables if name.startswith("pages/")]
        _put_index(directory, notes, fresh, [*runs, *(path for path in tables if not run_of_name(path.name))])
    with removing(directory) as alone:
        for path in runs if alone else ():
            path.unlink()
    return Converted(captures=lines, remade=str(damage or ""), unreadable=gaps)


def _again(directory: Path, workspace: Path) -> tuple[list[Path], int]:
    """Runs made from the archive, and how many gaps it has."""
    from gossamer.query.archive import runs_of  # the ledger's libraries: only a damaged crawl pays for them

    gaps: list[str] = []
    return runs_of(directory, workspace, lambda file, gap: gaps.append(file)), len(gaps)


def _put_index(directory: Path, notes: Notes, fresh: Path, merged: list[Path]) -> None:
    """Put an index into its place: the notes know both sizes before, and the new one after."""
    index, size = directory / INDEX, fresh.stat().st_size
    before = index.stat().st_size if index.exists() else 0
    known, made = notes.indexes[-1:] or ((noted(index),) if before else ()), (noted(fresh),) if size else ()
    stems = tuple(sorted({*notes.merged, *(path.stem for path in merged)}))
    changed = msgspec.structs.replace(notes, index=(before, size), indexes=known + made)
    write_notes(directory, changed)
    if size:
        fresh.replace(index)
    else:
        index.unlink(missing_ok=True)
    write_notes(directory, msgspec.structs.replace(changed, index=(size,), indexes=made, merged=stems))


def sound_index(directory: Path) -> str:
    """Make the index again where it is lost or cut; returns what was wrong with it, in words, and empty where nothing was.
    Raises CrawlDirectoryError: it cannot be made, since a ledger cannot be read or the directory cannot be written."""
    notes = read_notes(directory)
    if notes is None or damaged_index(directory, notes) is None:
        return ""
    told, advice = (
        f"{directory / INDEX} is damaged, and cannot be made again",
        "; copy the crawl where it can be written",
    )
    with converting(directory, wait=True), refusing(CrawlDirectoryError, told, advice):
        return write_index(directory).told


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
    """The table of hosts as one file, for tools that read Parquet: it is made anew from pages and notes each time. Call it when
    everything that was logged is a table."""
    with reading(directory):
        files = {name: table_files(directory, name).current for name in ("pages", "host_notes")}
        if not files["pages"]:
            return
        tables = tables_that_ship()
        for name, view in (("pages", f"pages{EVERY}"), ("host_notes", "host_notes")):
            writer.view(view, select_table(tables[name], [writer.link(path) for path in files[name]]))
        with changing(directory / TABLES / "hosts"):
            writer.write(HOSTS_VIEW, directory / TABLES / "hosts" / "hosts.parquet")
