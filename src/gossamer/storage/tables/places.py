"""Where tables lie, and how they are locked: one converter at a time, and no file goes while it is read.

Parquet files are called after the segment that they were made from, so that making one twice makes one. Files that another
run replaced (:mod:`gossamer.analysis.reprocess`) are listed in `tables/replaced.json` until no reader has them any more.
"""

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gossamer.engine.files import replace_file
from gossamer.storage.tables.segments import segments
from gossamer.values.errors import CrawlDirectoryError, UsageError

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
#: Where an empty file names each consumer of an installed package that follows the crawl (`gossamer.analysis.following`).
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
    """The crawl directory of this name.

    Raises:
        UsageError: there is none.
        CrawlDirectoryError: there is all of one but the file that makes it one.
    """
    path = Path(text)
    if not (path / CRAWL_FILE).is_file():
        if any(path.glob("state/*/ledger")):
            raise CrawlDirectoryError(f"{text} is damaged: its {CRAWL_FILE} is missing; bring it back from a copy")
        raise UsageError(f"{text} holds no crawl (no {CRAWL_FILE} in it); name the directory of one")
    return path


class TableManifest(msgspec.Struct, frozen=True):
    """Which Parquet files count: what is in `tables/replaced.json`."""

    run: int = 0
    """The last run that replaced files; files of later runs, `run-N.parquet`, are not finished."""
    gone: tuple[str, ...] = ()
    """Files, as `TABLE/NAME`, whose rows newer files have."""


def manifest(directory: Path) -> TableManifest:
    """The manifest as it stands now; an empty one where nothing was ever replaced.

    Raises:
        CrawlDirectoryError: it cannot be read.
    """
    path = directory / TABLES / REPLACED
    try:
        return msgspec.json.decode(path.read_bytes(), type=TableManifest)
    except FileNotFoundError:
        return TableManifest()
    except msgspec.DecodeError as error:
        text = f"{path} is damaged: {error}; remove it, then `gossamer resume {directory} --accept-loss` makes it again"
        raise CrawlDirectoryError(text) from None


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
def _flock(path: Path, how: int) -> Iterator[bool]:
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


def _lock(directory: Path, name: str) -> Path:
    return directory / "state" / f"tables-{name}.lock"


@contextlib.contextmanager
def converting(directory: Path, *, wait: bool) -> Iterator[bool]:
    """Be the one process that makes tables; False where another is, or the directory cannot be written."""
    how = fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB)
    with _flock(_lock(directory, "converting"), how) as held:
        yield held


@contextlib.contextmanager
def reading(directory: Path) -> Iterator[None]:
    """No file of tables and logs goes away meanwhile."""
    with _flock(_lock(directory, "reading"), fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def removing(directory: Path) -> Iterator[bool]:
    """Keep readers out meanwhile; False where one is at work: then the replaced files stay until next time."""
    with _flock(_lock(directory, "reading"), fcntl.LOCK_EX | fcntl.LOCK_NB) as held:
        yield held


@contextlib.contextmanager
def following(directory: Path, what: str, *, wait: bool) -> Iterator[bool]:
    """Be the one process that feeds one thing which follows the crawl; False where another is at it, or it cannot be written."""
    with _flock(_lock(directory, f"following-{what}"), fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB)) as held:
        yield held


@contextlib.contextmanager
def replacing(directory: Path) -> Iterator[bool]:
    """Be the one process that makes files to replace others; False where another is at it."""
    with _flock(_lock(directory, "replacing"), fcntl.LOCK_EX | fcntl.LOCK_NB) as held:
        yield held
