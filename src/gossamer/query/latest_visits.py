"""Visits that another visit of the same URL came after: found once for a look at a crawl, and only where a question needs it.

Place in the flow: :class:`gossamer.query.database.Database` asks here before the first question that names a view of latest
visits. Of a crawl whose URLs were all visited once, the tables are the views; a note in its directory says so of the Parquet
files that there are, since finding it out reads every URL (0.4 s for a million pages).
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gossamer.query.engine import Connection
from gossamer.query.schema import EVERY, SUPERSEDED, superseded

#: Where it is noted that every URL was visited once.
NOTE = "state/visited-once.json"

#: Bytes of tables from which a note is worth a file: below, the question takes some hundredths of a second.
WORTH_A_NOTE = 1 << 22


class VisitedOnce(msgspec.Struct, frozen=True):
    """Says of some files of `pages` that no URL is in them twice."""

    files: str
    """A digest of their names, sizes and times."""


def find_superseded(connection: Connection) -> bool:
    """Make the tables of visits that others came after; False where there is none."""
    pages = f"pages{EVERY}"
    again = f"SELECT 1 FROM {pages} GROUP BY hash(url) HAVING count(*) > 1 LIMIT 1"
    # Two URLs may have one hash: what is found by it is only worth a closer look.
    found = bool(connection.execute(again).fetchall())
    is_any = False
    for is_made, name in SUPERSEDED.items():
        # A table, not a view: DuckDB then knows how small it is, and asks it once for each row of what it is compared with.
        rows = superseded(is_made) if found else f"SELECT url, visit, fetched_at, attempt FROM {pages} WHERE false"
        connection.execute(f"CREATE TEMP TABLE {name} AS {rows}")
        is_any = is_any or bool(found and connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchall())
    return is_any


def is_noted(directory: Path, files: Sequence[Path]) -> bool:
    """It is known of these files that every URL was visited once."""
    try:
        note = msgspec.json.decode((directory / NOTE).read_bytes(), type=VisitedOnce)
    except (OSError, msgspec.MsgspecError):
        return False
    return note.files == _digest(files)


def note_once(directory: Path, files: Sequence[Path]) -> None:
    """Keep that for later questions where it is worth it; a directory that cannot be written is asked anew each time."""
    if sum(path.stat().st_size for path in files) < WORTH_A_NOTE:
        return
    path = directory / NOTE
    fresh = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(exist_ok=True)
        fresh.write_bytes(msgspec.json.encode(VisitedOnce(_digest(files))))
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)


def _digest(files: Sequence[Path]) -> str:
    told = [(path.name, status.st_size, status.st_mtime_ns) for path in files for status in (path.stat(),)]
    return hashlib.sha256(msgspec.json.encode(sorted(told))).hexdigest()
