"""Where tables lie, and who may touch them: one converter at a time, and no file goes while somebody reads it.

Parquet files are called after the segment that they were made from, so that making one twice makes one. Files that another
run replaced (:mod:`gossamer.assembly.reprocess`) are listed in `tables/replaced.json` until nobody reads them any more.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gossamer.model.errors import UsageError

#: The file that makes a directory a crawl.
CRAWL_FILE = "crawl.toml"

TABLES = "tables"
REPLACED = "replaced.json"


def crawl_directory(text: str) -> Path:
    """The crawl directory of this name.

    Raises:
        UsageError: there is none.
    """
    path = Path(text)
    if not (path / CRAWL_FILE).is_file():
        raise UsageError(f"{text} holds no crawl: there is no {CRAWL_FILE} in it")
    return path


def parquet_files(directory: Path, table: str) -> list[Path]:
    """The Parquet files that make up a table now."""
    gone = replaced(directory)
    found = sorted((directory / TABLES / table).glob("*.parquet"))
    return [path for path in found if f"{table}/{path.name}" not in gone]


def table_names(directory: Path) -> list[str]:
    """Every table that has a file."""
    return sorted({path.parent.name for path in (directory / TABLES).glob("*/*.parquet")})


def replaced(directory: Path) -> set[str]:
    """Files, as `TABLE/NAME`, whose rows newer files replace."""
    try:
        return set(msgspec.json.decode((directory / TABLES / REPLACED).read_bytes(), type=list[str]))
    except FileNotFoundError:
        return set()


def replace_files(directory: Path, names: set[str]) -> None:
    """From now on, these files count no more. One write: a reader sees all of it or nothing."""
    path = directory / TABLES / REPLACED
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_bytes(msgspec.json.encode(sorted(names)))
    fresh.replace(path)


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


@contextlib.contextmanager
def converting(directory: Path, *, wait: bool) -> Iterator[bool]:
    """Be the one process that makes tables; False where another is, or the directory cannot be written."""
    how = fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB)
    with _flock(directory / TABLES / "converting.lock", how) as held:
        yield held


@contextlib.contextmanager
def reading(directory: Path) -> Iterator[None]:
    """No file of tables and logs goes away meanwhile."""
    with _flock(directory / TABLES / "reading.lock", fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def removing(directory: Path) -> Iterator[bool]:
    """Nobody reads meanwhile; False where somebody does: then what is to go stays until next time."""
    with _flock(directory / TABLES / "reading.lock", fcntl.LOCK_EX | fcntl.LOCK_NB) as held:
        yield held
