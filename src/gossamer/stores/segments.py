"""Row logs on the disk: segments that grow with the commits, until another process turns them into tables.

Place in the flow: :mod:`gossamer.stores.tablelog` writes segments in the agent; :mod:`gossamer.query` reads them, and turns
closed ones into Parquet. Here is what both must agree on.

::

    state/agent-00/rows/pages-20260301120000-3f9c-000001.jsonl      TABLE-RUN-SERIAL: one row, or frame of rows, a line
    state/agent-00/rows/open                                        the run that may still write

A segment is *closed* when a later one of its table and run exists, or when its run is not the one in `open`. What is closed is
committed: a writer begins a segment only with a later group, a run only after :func:`~gossamer.stores.recovery.restore`,
and whoever ends a crawl takes `open` away when everything is committed. Names are never used twice.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

#: The tables that agents write rows for.
TABLES = ("pages", "links", "items", "host_notes")

#: The file that names the run which may still write.
OPEN = "open"

_NAME = re.compile(r"(?P<table>[a-z_]+)-(?P<run>[0-9a-z-]+)-(?P<serial>\d{6})\.jsonl")


class Segment(msgspec.Struct, frozen=True, order=True):
    """One segment of a table's row log; sorts in the order of writing."""

    table: str
    run: str
    serial: int
    agent: str
    path: Path

    @property
    def stem(self) -> str:
        """What the table's files made from it are called: a name that no other segment of the table has."""
        return f"{self.agent}-{self.run}-{self.serial:06d}"


def rows_directory(directory: Path, agent: str) -> Path:
    """Where an agent's row logs lie."""
    return directory / "state" / agent / "rows"


def segment_name(table: str, run: str, serial: int) -> str:
    """The file name of a segment."""
    return f"{table}-{run}-{serial:06d}.jsonl"


def new_run(now_text: str) -> str:
    """A name for a run that no other has: the time for people, a random part for certainty."""
    return f"{now_text}-{os.urandom(4).hex()}"


def segments(directory: Path) -> list[Segment]:
    """Every segment of every agent, in the order of writing."""
    found = []
    for path in directory.glob("state/*/rows/*.jsonl"):
        match = _NAME.fullmatch(path.name)
        if match is not None:
            found.append(Segment(match["table"], match["run"], int(match["serial"]), path.parent.parent.name, path))
    return sorted(found)


def open_runs(directory: Path) -> set[tuple[str, str]]:
    """Agent and run of every writer that may still write."""
    return {(path.parent.parent.name, path.read_text().strip()) for path in directory.glob(f"state/*/rows/{OPEN}")}


def closed(all_of_them: Iterable[Segment], still_open: set[tuple[str, str]]) -> list[Segment]:
    """Those segments that nobody writes any more, and that are committed to the last byte."""
    found = list(all_of_them)
    last: dict[tuple[str, str, str], int] = {}
    for one in found:
        key = (one.table, one.agent, one.run)
        last[key] = max(one.serial, last.get(key, 0))
    return [
        one
        for one in found
        if (one.agent, one.run) not in still_open or one.serial < last[one.table, one.agent, one.run]
    ]


def mark_open(directory: Path, agent: str, run: str) -> None:
    """Say which run of an agent writes from now on; all earlier ones are closed by that."""
    rows = rows_directory(directory, agent)
    rows.mkdir(parents=True, exist_ok=True)
    fresh = rows / f"{OPEN}.new"
    fresh.write_text(run)
    fresh.replace(rows / OPEN)


def mark_closed(directory: Path) -> None:
    """Say that nobody writes any more and that everything is committed: the end of a crawl."""
    for path in directory.glob(f"state/*/rows/{OPEN}"):
        path.unlink(missing_ok=True)
