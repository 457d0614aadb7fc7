"""Notes on each file of tables and index that was made, so that its loss or change is noticed: `state/made.json`.

Place in the flow: :mod:`gossamer.query.convert` notes each file before it stands in its place, by one rename for a change;
`query`, `export`, `verify` and the start of a crawl hold the files against the notes. A crawl of an older version has none:
its files are noted as they are, and earlier losses are not told.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from gossamer.storage.archive.contract import INDEX
from gossamer.storage.members import read_kept, write_kept
from gossamer.storage.recovery import Noted, damage_of, find_losses, noted
from gossamer.storage.tables import places

#: Where the notes lie, inside the crawl directory.
MADE = "state/made.json"

#: Why tables and index could not be made when that was last tried; not there where they were.
FAILED = "state/made-not.txt"

_PARQUET = b"PAR1"


class Notes(msgspec.Struct, frozen=True):
    tables: dict[str, Noted | None] = {}
    """`TABLE/NAME` of every Parquet file; None where newer files have its rows."""
    index: tuple[int, ...] | None = None
    """Bytes that the index may have: two numbers while it is replaced, 0 where there is none.

    Empty: it is to be made again. None: nothing is known of it.
    """
    indexes: tuple[Noted, ...] = ()
    """The index as it was made, and while it is replaced, as it will be; empty in notes of an older version."""
    merged: tuple[str, ...] = ()
    """Segments of `pages`, as their files are called, whose captures the index holds."""
    is_whole: bool = True
    """The crawl was noted from its beginning."""
    run: int = 0
    """The last run that replaced files: the manifest (`tables/replaced.json`) names it, or a later one."""


class TablesOrder(msgspec.Struct, frozen=True):
    """Asks a worker to make tables (:func:`gossamer.query.convert.make_tables`)."""

    directory: str
    """Of the crawl."""
    ended: bool
    """The crawl has ended and everything is committed: all segments are closed, and the index is written."""
    waits: bool = True
    """For another process that is at it, where the crawl has ended."""


class Damage(msgspec.Struct, frozen=True):
    """A file that is not what it was."""

    file: str
    """Inside the crawl directory."""
    what: str
    """`is missing`, `has 5 bytes instead of 10`, `has other bytes than were written`."""

    def __str__(self) -> str:
        return f"{self.file} {self.what}"

    @property
    def table(self) -> str:
        """The table whose rows are in it; that of a manifest is called `tables`."""
        path = Path(self.file)
        return path.name.partition("-")[0] if path.parent.name == "rows" else path.parent.name


def read_notes(directory: Path) -> Notes | None:
    """The notes; None where there are none. Raises CrawlDirectoryError: they cannot be read."""
    return read_kept(directory / MADE, Notes, "remove it, and tables and index are noted as they are")


def known_notes(directory: Path) -> Notes:
    """The notes; empty ones where there are none."""
    if (known := read_notes(directory)) is not None:
        return known
    has_begun = any((directory / places.TABLES).glob("*/*.parquet")) or (directory / INDEX).exists()
    return Notes(is_whole=not has_begun)


def notes_of(directory: Path) -> Notes:
    """The notes; where there are none, of what is there now, which is read for that: for who writes them."""
    if (known := read_notes(directory)) is not None:
        return known
    # The table of hosts is made anew each time, and holds nothing that others do not.
    paths = [path for path in sorted((directory / places.TABLES).glob("*/*.parquet")) if path.parent.name != "hosts"]
    found = {f"{path.parent.name}/{path.name}": noted(path) for path in paths}
    index = directory / INDEX
    return Notes(
        tables=dict(found),
        index=(index.stat().st_size,) if index.exists() else None,
        indexes=(noted(index),) if index.exists() else (),
        merged=tuple(Path(name).stem for name in found if name.startswith("pages/")) if index.exists() else (),
        is_whole=not found and not index.exists(),
    )


def write_notes(directory: Path, notes: Notes) -> None:
    write_kept(directory / MADE, notes)


def failure_of(directory: Path) -> str:
    """Why tables and index could not be made at the end of the last run; empty where they were, or they were made since."""
    try:
        return (directory / FAILED).read_text("utf-8", "replace")
    except FileNotFoundError:
        return ""


def unmade(why: str) -> str:
    return f"tables and index could not be made ({why}), and their rows stay in the row logs"


def note_failure(directory: Path, why: str) -> None:
    """Note why tables and index could not be made; empty: they were. Raises OSError."""
    if why:
        (directory / FAILED).write_text(why, "utf-8")
    else:
        (directory / FAILED).unlink(missing_ok=True)


def with_tables(notes: Notes, changes: Mapping[str, Noted | None]) -> Notes:
    return msgspec.structs.replace(notes, tables={**notes.tables, **changes})


def is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            if file.seek(0, 2) < 2 * len(_PARQUET):
                return False
            file.seek(0)
            first = file.read(len(_PARQUET))
            file.seek(-len(_PARQUET), 2)
            return first == file.read() == _PARQUET
    except FileNotFoundError:
        return False


def switch(directory: Path, made: Mapping[str, Noted | None], stands: places.TableManifest) -> None:
    """Let other files, which stand in their places, count from now on; `stands` names what they replace. Call it while
    `converting`."""
    write_notes(directory, with_tables(notes_of(directory), made))
    places.write_manifest(directory, stands)
    # Once it stands: a kill in between must not leave notes of a manifest that never was.
    changed = with_tables(notes_of(directory), dict.fromkeys(stands.gone))
    write_notes(directory, msgspec.structs.replace(changed, run=stands.run))


def manifest_again(notes: Notes) -> places.TableManifest:
    """The manifest as the notes have it: for who has lost it."""
    return places.TableManifest(notes.run, tuple(name for name, one in notes.tables.items() if one is None))


def damaged_tables(directory: Path, notes: Notes, *, deep: bool = False) -> list[Damage]:
    """Parquet files that are not what they were. One whose row log still stands is being made, and is not damaged.

    A lost manifest is one of them: without it no reader knows which files count.
    """
    stands = places.manifest(directory)
    lost = [Damage(f"{places.TABLES}/{places.REPLACED}", "is missing")] if stands.run < notes.run else []
    found = {
        name: what
        for name, one in notes.tables.items()
        if one is not None
        if (what := damage_of(directory / places.TABLES / name, one, deep=deep))
    }
    if not found:
        return lost
    last = max(stands.run, notes.run)
    again = {f"{segment.table}/{segment.stem}.parquet" for segment in places.segments(directory)}
    return lost + [
        Damage(f"{places.TABLES}/{name}", what)
        for name, what in found.items()
        if name not in stands.gone and name not in again and places.run_of_name(Path(name).name) <= last
    ]


def damaged_logs(directory: Path, notes: Notes) -> list[Damage]:
    """Row logs of the runs that wrote last which are gone or short, and no tables yet: what the writers said is committed of them.

    The ledger knows it of all files; this is for who asks beside it, while another process has it.
    """
    found: list[Damage] = []
    for path in sorted(directory.glob(f"state/*/rows/{places.COMMITTED}")):
        agent = path.parent.parent.name
        mark = places.committed(directory, agent)
        ends = {
            f"state/{agent}/rows/{places.segment_name(table, mark.run, serial)}": end if serial == last else 1
            for table, (last, end) in mark.ends.items()
            for serial in range(1, last + 1)
        }
        for loss in find_losses(directory, ends, partial(are_tables, notes)):
            short = f"has {loss.size} bytes, and {loss.committed} were committed"
            found.append(Damage(loss.file, "is missing" if loss.size is None else short))
    return found


def are_tables(notes: Notes, files: Iterable[str]) -> set[str]:
    """Those of `files` that are row logs (`state/AGENT/rows/TABLE-RUN-SERIAL.jsonl`) and became tables: they may be gone."""
    found = set()
    for log in (Path(file) for file in files if file.endswith(".jsonl") and "/rows/" in file):
        table, _, rest = log.stem.partition("-")
        if f"{table}/{log.parts[1]}-{rest}.parquet" in notes.tables or not notes.is_whole:
            found.add(log.as_posix())
    return found


def damaged_index(directory: Path, notes: Notes, *, deep: bool = False) -> Damage | None:
    """The damage of the index: None where it holds every capture of the tables, or a run that waits to be merged does.

    Its bytes are read where its time has changed, or `deep` says so.
    """
    path = directory / INDEX
    size = path.stat().st_size if path.exists() else 0
    if notes.index is not None and size not in notes.index:
        wanted = f"has {size} bytes instead of {notes.index[-1]}" if notes.index else "is not that of the archive"
        return Damage(INDEX, wanted if size else "is missing")
    if size and notes.indexes and all(wrong := [damage_of(path, one, deep=deep) for one in notes.indexes]):
        return Damage(INDEX, wrong[-1])
    merged = set(notes.merged)
    for name in notes.tables:
        table, _, file = name.partition("/")
        stem = Path(file).stem
        if table != "pages" or stem in merged or places.run_of_name(file):
            continue
        is_run = any(directory.glob(f"state/*/index/{stem}.cdxj"))
        if not is_run and not any(one.table == "pages" and one.stem == stem for one in places.segments(directory)):
            return Damage(f"state/{stem.rsplit('-', 3)[0]}/index/{stem}.cdxj", "is missing")
    return None
