"""`logs/crawl.jsonl`: one event a line, for people with `grep` and `jq`, in the order of the commits.

Place in the flow: the commit calls `stage` with the records of a group. A visit gives one line with `"event": "page"`, each item of
a user's processor one with `"event": "item"`: the rows of the tables that say so, with the columns' names, so that a query is the
same over both. :mod:`gossamer.storage.json_lines` makes the lines.

Agents among several write a log each, and the supervisor merges these in the order of time when a run ends. Each agent's log keeps
its own order, in which a page stands before its items; of two agents, the line goes first whose agent has come less far in time. A
mark says how far each log is merged and where the merged one ends, so that a kill repeats nothing and loses nothing.
"""

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.engine.files import AppendFile, LastWrites, replace_file
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.json_lines import lines
from gossamer.storage.ledger.contract import Group
from gossamer.storage.tables.contract import RowSource, Table, shipped
from gossamer.values.agents import member
from gossamer.values.visit import Location, Record, Visit

#: The log of the whole crawl: its name, and its place inside the crawl directory (docs/kept.md).
CRAWL_LOG = "crawl"
LOG_FOLDER = "logs/"
LOG_PATH = f"{LOG_FOLDER}{CRAWL_LOG}.jsonl"


def log_path(name: str) -> str:
    """The place of a log inside the crawl directory: of the crawl's, or of the one that an agent among several writes."""
    return f"{LOG_FOLDER}{name}.jsonl"


def logged_tables() -> tuple[Table, ...]:
    """The tables whose rows the log of a crawl tells."""
    return tuple(table for table in shipped() if table.is_logged)


class JsonLogSheet(Sheet, frozen=True):
    """Settings of :class:`JsonLog`."""

    directory: Annotated[
        str,
        setting(
            "Use this crawl directory; the log is `logs/NAME.jsonl` in it.",
            restart="it is part of the open file",
            names="a folder",
        ),
    ] = "."
    name: Annotated[
        str,
        setting(
            "Write the log under this name; with several agents, each has a log of its own.",
            restart="it is part of the open file",
            pattern=r"^[a-z0-9-]+$",
        ),
    ] = CRAWL_LOG
    sync: Annotated[
        bool, setting("Force each group to the disk before it counts as written, so that it survives a power cut.")
    ] = False


class JsonLog(Provider[JsonLogSheet]):
    """Writes the log of the crawl. Contract: `RowLog`. It creates the file at the first event."""

    def __init__(self, sheet: JsonLogSheet | None = None) -> None:
        super().__init__(sheet)
        self._file: AppendFile | None = None
        self._ends: dict[str, int] = {}
        self._last = LastWrites()
        self._encoder = msgspec.json.Encoder()
        self._tables = logged_tables()

    async def stop(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def stage(self, records: Sequence[Record], group: Group) -> None:
        self.append([one.visit for one in records], [one.location for one in records])

    def append(self, visits: Sequence[Visit], locations: Sequence[Location | None]) -> None:
        troubles: list[str] = []
        found: list[bytes] = []
        for visit, location in zip(visits, locations, strict=True):
            told = RowSource(visit, visit.task, visit.response, location)
            for table in self._tables:
                found += lines(table, told, self._encoder, troubles)
        for trouble in troubles:
            self.metrics.count(trouble)
        self.write(found)

    def write(self, lines: Sequence[bytes]) -> None:
        """Write whole lines in one write, as who has made them for the tables already does.

        Raises:
            OSError: nothing of them is in the file.
        """
        if not lines:
            return
        if self._file is None:
            self._file = _open(Path(self.sheet.directory, log_path(self.sheet.name)))
        self._last.begin()
        self._last.about_to(self._file)
        self._file.append(b"".join(lines), sync=self.sheet.sync)
        self._ends[log_path(self.sheet.name)] = self._file.end
        self.metrics.count("lines", len(lines))

    def take_back(self) -> None:
        self._last.take_back()
        self._ends.clear()

    def committed(self, ends: Mapping[str, int]) -> None:
        """Nothing waits for it."""

    def files(self) -> Sequence[str]:
        """None but those that :mod:`gossamer.storage.recovery` knows of every crawl."""
        return ()

    def ends(self) -> Mapping[str, int]:
        ends, self._ends = self._ends, {}
        return ends


def _open(path: Path) -> AppendFile:
    """The log, cut back to its last whole line: what a kill tore was never acknowledged."""
    file = AppendFile(path, fresh=False)
    end = file.end_of_lines()
    if end < file.end:
        file.cut_back(end)
    return file


# Merging the logs of several agents.

#: Where the mark stands, inside the crawl directory.
MARK = "state/supervisor/merged.json"

#: Bytes of merged lines that are written at once.
_CHUNK = 1 << 20

#: When a line's page was fetched: lines are our own, and the column stands in each row of a page.
_TIME = re.compile(rb'"fetched_at":"([^"]*)"')


class MergeMark(msgspec.Struct, frozen=True):
    """How far logs are merged."""

    ends: dict[str, int] = {}
    """File -> byte, for each agent's log."""
    end: int = 0
    """Of the merged log."""


def merge_logs(
    directory: Path, members: Sequence[str], ends: Mapping[str, int] | None = None, *, before: str = ""
) -> int:
    """Merge what agents have logged since the last time.

    Args:
        directory: of the crawl.
        members: its agents.
        ends: file -> byte up to which it is committed, while agents are at work; all whole lines, when they have ended.
        before: merge what was fetched before this time (as :func:`gossamer.values.instants.utc_text` writes it), so that an
        agent that
            commits a little later finds its place in the order; all of it unless told.

    Returns:
        The lines that were merged.

    Raises:
        OSError: the merged log cannot be written.
    """
    mark = read_mark(directory)
    if not (directory / LOG_PATH).exists() or (directory / LOG_PATH).stat().st_size < mark.end:
        mark = MergeMark()  # what was merged is gone: it is made again
    files = [log_path(member(text).agent) for text in members]
    files = [file for file in files if (directory / file).exists()]
    if not files:
        return 0
    to = {file: (directory / file).stat().st_size if ends is None else ends.get(file, 0) for file in files}
    reached = dict(mark.ends)
    count = 0
    merged = AppendFile(directory / LOG_PATH, fresh=False)
    try:
        merged.cut_back(min(mark.end, merged.end))
        chunk = bytearray()
        parts = [_lines(directory, file, mark.ends.get(file, 0), to[file]) for file in files]
        for time, file, end, line in heapq.merge(*parts):
            if before and time >= before.encode():
                break
            chunk += line
            reached[file] = end
            count += 1
            if len(chunk) >= _CHUNK:
                merged.append(bytes(chunk), sync=False)
                chunk.clear()
        if chunk:
            merged.append(bytes(chunk), sync=False)
        write_mark(directory, MergeMark(reached, merged.end))
    finally:
        merged.close()
    return count


def read_mark(directory: Path) -> MergeMark:
    """How far logs are merged; from the beginning where nothing says so."""
    try:
        return msgspec.json.decode((directory / MARK).read_bytes(), type=MergeMark)
    except (FileNotFoundError, msgspec.DecodeError):
        return MergeMark()


def write_mark(directory: Path, mark: MergeMark) -> None:
    path = directory / MARK
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, msgspec.json.encode(mark))


def _lines(directory: Path, file: str, start: int, end: int) -> Iterator[tuple[bytes, str, int, bytes]]:
    """The whole lines of a log between two bytes: how far its agent has come in time, the file, where the line ends, the line."""
    latest, place = b"", start
    with (directory / file).open("rb") as log:
        log.seek(start)
        for line in log:
            place += len(line)
            if place > end or not line.endswith(b"\n"):
                return
            latest = max(latest, _time_of(line))
            yield latest, file, place, line


def _time_of(line: bytes) -> bytes:
    """The time in a line; nothing where it has none. A text of the page that looks like the column has its quotes escaped."""
    found = _TIME.search(line)
    return found[1] if found else b""
