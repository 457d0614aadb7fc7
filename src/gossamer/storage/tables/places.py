"""Row logs and tables on the disk: where they lie, which files make up a table, and how they are locked.

Place in the flow: :mod:`gossamer.storage.tables.log` writes *segments* of row logs in the agent; :mod:`gossamer.query` reads
them, and turns closed ones into Parquet. Here is what both must agree on.

::

    state/agent-00/rows/pages-20260301120000-3f9c-000001.jsonl      TABLE-RUN-SERIAL: one row, or frame of rows, a line
    state/agent-00/rows/open                                        the run that may still write
    state/agent-00/rows/last                                        the last run that wrote
    state/agent-00/rows/committed                                   how far the run that writes is committed
    state/agent-00/rows/pages.table                                 the columns of the table

A segment is *closed* when a later one of its table and run exists, or when its run is not the one in `open`. A closed segment is
committed: a writer begins a segment only with a later group, a run only after :func:`~gossamer.storage.recovery.restore`,
and the end of a crawl takes `open` away when everything is committed. Names are never used twice.

Parquet files are called after the segment that they were made from, so that making one twice makes one. Files that another
run replaced (:mod:`gossamer.analysis.reprocess`) are listed in `tables/replaced.json` until no reader has them any more. One
process at a time makes tables, and no file goes while it is read.
"""

import contextlib
import fcntl
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from gossamer.engine.files import replace_file
from gossamer.storage.members import JOINED, read_kept
from gossamer.storage.recovery import changing
from gossamer.storage.tables.contract import TableSpec
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.patterns import lazy_pattern

#: The file that names the run which may still write.
OPEN = "open"

#: The file that names the last run that wrote: the next one sorts behind it.
LAST = "last"

#: The file that says how far the run which writes is committed.
COMMITTED = "committed"

#: How the name of a file ends that says what a table is.
DECLARED = ".table"

#: How often a line is read that another process may be writing: writing it takes microseconds.
_LOOKS = 5

_NAME = lazy_pattern(r"(?P<table>[a-z_]+)-(?P<run>[0-9a-z-]+)-(?P<serial>\d{6})\.jsonl")


class Segment(msgspec.Struct, frozen=True, order=True):
    """One segment of a table's row log; sorts in the order of writing."""

    table: str
    run: str
    serial: int
    agent: str
    path: Path

    @property
    def stem(self) -> str:
        """The name of the table's files that are made from it: no other segment of the table has it."""
        return f"{self.agent}-{self.run}-{self.serial:06d}"


def rows_directory(directory: Path, agent: str) -> Path:
    return directory / "state" / agent / "rows"


def segment_name(table: str, run: str, serial: int) -> str:
    return f"{table}-{run}-{serial:06d}.jsonl"


def new_run(directory: Path, agent: str, now: float) -> str:
    """A name for a run of an agent that no other has: the time for people and for order, a random part for certainty.

    Runs of an agent sort in the order in which they began, also where the clock was set back meanwhile: who follows rows keeps
    the last run that it saw.
    """
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d%H%M%S")
    rows = rows_directory(directory, agent)
    known = [one.run for one in segments(directory) if one.agent == agent]
    # The rows of old runs may be in Parquet, or in a file that replaced that: then a file of its own tells.
    known += [path.read_text().strip() for path in (rows / OPEN, rows / LAST) if path.exists()]
    made = re.compile(rf"{re.escape(agent)}-(\d{{14}}-[0-9a-f]+)-\d{{6}}\.parquet")
    tables = directory.glob(f"{TABLES}/*/{agent}-*.parquet")
    known += [match[1] for path in tables if (match := made.fullmatch(path.name))]
    last = max(known, default="").partition("-")[0]
    if last.isdigit() and stamp <= last:
        stamp = str(int(last) + 1)
    return f"{stamp}-{os.urandom(4).hex()}"


def segments(directory: Path) -> list[Segment]:
    found = []
    for path in directory.glob("state/*/rows/*.jsonl"):
        match = _NAME.fullmatch(path.name)
        if match is not None:
            found.append(Segment(match["table"], match["run"], int(match["serial"]), path.parent.parent.name, path))
    return sorted(found)


def open_runs(directory: Path) -> set[tuple[str, str]]:
    return {(path.parent.parent.name, path.read_text().strip()) for path in directory.glob(f"state/*/rows/{OPEN}")}


def closed_segments(directory: Path) -> list[Segment]:
    """The segments that are not written any more, and that are committed to the last byte."""
    # A run is marked as open before it has a segment. So segments first: a run that begins after that has none of these.
    found = segments(directory)
    still_open = open_runs(directory)
    last = {(one.table, one.agent, one.run): one.serial for one in found}  # they are in order
    return [
        one
        for one in found
        if (one.agent, one.run) not in still_open or one.serial < last[one.table, one.agent, one.run]
    ]


def mark_open(directory: Path, agent: str, run: str) -> None:
    """Say which run of an agent writes from now on; all earlier ones are closed by that."""
    rows = rows_directory(directory, agent)
    _replace_summed(rows / LAST, run.encode())
    _replace(rows / OPEN, run.encode())


def mark_closed(directory: Path) -> None:
    for path in directory.glob(f"state/*/rows/{OPEN}"):
        path.unlink(missing_ok=True)


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data)


def _replace_summed(path: Path, data: bytes) -> None:
    with changing(path.parent, (LAST, f"*{DECLARED}")):
        _replace(path, data)


# -- how far the run that writes is committed


class CommittedMark(msgspec.Struct, frozen=True):
    """The content of the file :data:`COMMITTED`."""

    run: str = ""
    ends: dict[str, tuple[int, int]] = {}
    """Table -> serial of its last segment that has committed rows, and the byte at which they end."""


class CommittedEnds:
    """Tells other processes how far a run's segments are committed, with one small write a group.

    The ledger knows the same, but belongs to its process. A reader may find the line half written: it bears a checksum.
    """

    def __init__(self, directory: Path, agent: str, run: str) -> None:
        path = rows_directory(directory, agent) / COMMITTED
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(path, flags, 0o644)
        self._told = CommittedMark(run, {})

    def publish(self, ends: Mapping[str, int]) -> None:
        """Say that these files of the crawl directory are committed up to these bytes; files other than segments do not count."""
        told = self._told.ends
        for name, end in ends.items():
            match = _NAME.fullmatch(name.rpartition("/")[2])
            if match is not None and match["run"] == self._told.run:
                place = int(match["serial"]), end
                told[match["table"]] = max(place, told.get(match["table"], place))
        data = msgspec.json.encode(self._told)
        os.pwrite(self._descriptor, b"%08x %s\n" % (zlib.crc32(data), data), 0)

    def close(self) -> None:
        os.close(self._descriptor)


def committed(directory: Path, agent: str) -> CommittedMark:
    """How far the run of an agent is committed; nothing is known of it where the line is being written just now."""
    with contextlib.suppress(FileNotFoundError):
        return _mark(directory, agent) or CommittedMark()
    return CommittedMark()


def _mark(directory: Path, agent: str) -> CommittedMark | None:
    """None where it cannot be read. Raises FileNotFoundError."""
    data = (rows_directory(directory, agent) / COMMITTED).read_bytes().partition(b"\n")[0]
    checksum, _, text = data.partition(b" ")
    with contextlib.suppress(ValueError):
        if checksum == b"%08x" % zlib.crc32(text):
            return msgspec.json.decode(text, type=CommittedMark)
    return None


def is_mark_damaged(directory: Path, agent: str) -> bool:
    """Whether what an agent has said of its commits cannot be read."""
    with contextlib.suppress(FileNotFoundError):
        return all(_mark(directory, agent) is None for _ in range(_LOOKS))
    return False


# -- what the rows are


def declare(directory: Path, agent: str, spec: TableSpec) -> None:
    _replace_summed(rows_directory(directory, agent) / f"{spec.name}{DECLARED}", msgspec.json.encode(spec))


def declared(directory: Path) -> dict[str, TableSpec]:
    """The tables that agents wrote rows of, by name, as they were declared; a table that cannot be read is left out."""
    found = {}
    for path in sorted(directory.glob(f"state/*/rows/*{DECLARED}")):
        with contextlib.suppress(ValueError, OSError):
            spec = msgspec.json.decode(path.read_bytes(), type=TableSpec)
            found[spec.name] = spec
    return found


#: The file that makes a directory a crawl: the whole wiring as run.
CRAWL_FILE = "crawl.toml"

#: Where it is noted how far each item file is whole (:mod:`gossamer.query.item_files`).
ITEM_FILE_NOTES = "state/item-files"

#: A file of this name says that the index follows the crawl (`--index`).
FOLLOWING_INDEX = "state/follow-index"

#: The copy of the file of `--sinks`.
SINKS_FILE = "state/sinks.toml"

#: Where the full-text index lies.
INDEX_DIRECTORY = "index"
#: Where an empty file names each consumer of an installed package that follows the crawl (`gossamer.query.following`).
PACKAGE_FOLLOWERS = "state/followers"
#: Where the triple store of a crawl lies (:mod:`gossamer.rdf.store.store`).
TRIPLES = "triples"

#: Where it is noted which triple stores elsewhere follow the crawl (:mod:`gossamer.rdf.store.endpoint`).
ENDPOINTS = "state/triple-stores"

TABLES = "tables"

#: Tables that `gossamer rank` makes of the others: of URLs, and of hosts.
RANKS = ("ranks", "host_ranks")

#: The table that `gossamer index --terms` makes of the index.
TERMS = "terms"

#: Tables that are counted out of others and hold names or words of pages: a deletion removes them whole.
COUNTED = (*RANKS, TERMS)
REPLACED = "replaced.json"


def crawl_directory(text: str) -> Path:
    """The crawl directory of this name, for all that ask what the crawl has kept. Raises as :func:`begun_crawl` and
    :func:`check_is_here` do."""
    path = begun_crawl(text)
    check_is_here(path)
    return path


def check_is_here(directory: Path) -> None:
    """Refuse the directory of a supervisor whose agents keep everything on machines of their own. Raises CrawlDirectoryError."""
    if (directory / JOINED).exists() and not any(directory.glob("state/*/ledger")):
        raise CrawlDirectoryError(
            f"{directory} has no page of its crawl, whose agents work on machines of their own; ask its store, or the folders there"
        )


def begun_crawl(text: str | Path) -> Path:
    """The crawl directory of this name. Raises UsageError: there is none; CrawlDirectoryError: there is all of one but the file
    that makes it one."""
    path, text = Path(text), str(text)
    if not (path / CRAWL_FILE).is_file():
        if any(path.glob("state/*/ledger")):
            raise CrawlDirectoryError(f"{text} is damaged: its {CRAWL_FILE} is missing; bring it back from a copy")
        text = re.sub("^([a-z0-9]{2,}):/+(?:[^/]*@)?", r"\1://", text)  # a path has lost a slash; a secret is not told
        if re.match("https?:/", text):
            raise UsageError(f"{text} is the URL of a page; name the directory of the crawl first, then URLs")
        if "://" in text or any(path.glob("agents/*/head.json")):
            raise UsageError(
                f"{text} is a store (--store), and this command takes a crawl directory; bring the crawl back first: "
                f"gossamer resume {text} -o DIR"
            )
        reason = f"holds no crawl (no {CRAWL_FILE} in it)" if path.is_dir() else "is not a directory"
        raise UsageError(f"{text} {reason}; name the directory of a crawl")
    return path


class TableManifest(msgspec.Struct, frozen=True):
    """Which Parquet files count: what is in `tables/replaced.json`."""

    run: int = 0
    """The last run that replaced files; files of later runs, `run-N.parquet`, are not finished."""
    gone: tuple[str, ...] = ()
    """Files, as `TABLE/NAME`, whose rows newer files have."""


def manifest(directory: Path) -> TableManifest:
    """The manifest as it stands now; an empty one where nothing was ever replaced. Raises CrawlDirectoryError: it cannot be
    read."""
    advice = f"remove it, then `gossamer resume {directory} --accept-loss` makes it again"
    return read_kept(directory / TABLES / REPLACED, TableManifest, advice) or TableManifest()


def write_manifest(directory: Path, new: TableManifest) -> None:
    """Switch to other files. One rename: a reader sees all of it or nothing."""
    replace_file(directory / TABLES / REPLACED, msgspec.json.encode(new))


class TableFiles(msgspec.Struct, frozen=True):
    """The Parquet files of one table, looked at once."""

    current: list[Path]
    """Those that make it up."""
    made: frozenset[str]
    """Names of all that were ever made and may have a row log still: whose rows are not to be read from there."""


def table_files(directory: Path, table: str) -> TableFiles:
    """Which files make up a table now."""
    stands = manifest(directory)
    gone = {name.partition("/")[2] for name in stands.gone if name.startswith(f"{table}/")}
    found = sorted((directory / TABLES / table).glob("*.parquet"))
    return TableFiles(
        [path for path in found if path.name not in gone and run_of_name(path.name) <= stands.run],
        frozenset(gone | {path.name for path in found}),
    )


def has_rows(directory: Path, table: str) -> bool:
    return any(one.table == table for one in segments(directory)) or bool(table_files(directory, table).current)


def run_file(directory: Path, table: str, run: int) -> Path:
    return directory / TABLES / table / f"run-{run:04d}.parquet"


def run_of_name(name: str) -> int:
    """The number of the run that a Parquet file replaces a table by; 0 for others."""
    match = re.fullmatch(r"run-(\d+)\.parquet", name)
    return int(match[1]) if match else 0


def table_names(directory: Path) -> list[str]:
    return sorted({path.parent.name for path in (directory / TABLES).glob("*/*.parquet")})


@contextlib.contextmanager
def flocked(path: Path, how: int) -> Iterator[bool]:
    """Hold a lock, or do not; says which. A directory that cannot be written has no writers either."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError:
        yield how & fcntl.LOCK_SH == fcntl.LOCK_SH
        return
    try:
        try:
            fcntl.flock(descriptor, how)
        except OSError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)


_Held = AbstractContextManager[bool]


def _held(directory: Path, name: str, *, wait: bool = False, how: int = fcntl.LOCK_EX) -> _Held:
    return flocked(directory / "state" / f"tables-{name}.lock", how | (0 if wait else fcntl.LOCK_NB))


def converting(directory: Path, *, wait: bool) -> _Held:
    """Be the one process that makes tables; False where another is, or the directory cannot be written."""
    return _held(directory, "converting", wait=wait)


def reading(directory: Path) -> _Held:
    """No file of tables and logs goes away meanwhile."""
    return _held(directory, "reading", wait=True, how=fcntl.LOCK_SH)


def removing(directory: Path) -> _Held:
    """Keep readers out meanwhile; False where one is at work: then the replaced files stay until next time."""
    return _held(directory, "reading")


def following(directory: Path, what: str, *, wait: bool) -> _Held:
    """Be the one process that feeds one thing which follows the crawl; False where another is at it, or it cannot be written."""
    return _held(directory, f"following-{what}", wait=wait)


def replacing(directory: Path) -> _Held:
    """Be the one process that makes files to replace others; False where another is at it."""
    return _held(directory, "replacing")
