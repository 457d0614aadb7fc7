"""`logs/crawl.jsonl`: one event a line, for people with `grep` and `jq`, in the order of the commits.

Place in the flow: the committing component calls `stage` with the records of a group. A visit
gives one line with `"event": "page"`, each item of a user's processor one with `"event": "item"`: the rows of the tables that
say so, with the columns' names, so that a query is the same over both. Lines: :mod:`gossamer.stores.lines`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.contracts.ledger import Group
from gossamer.contracts.tables import RowSource, Table
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.visit import Location, Record, Visit
from gossamer.stores.files import AppendFile, LastWrites
from gossamer.stores.lines import lines
from gossamer.stores.tables.catalog import shipped

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
    """Writes the log of the crawl. Contract: `storing.RowLog`. It creates the file at the first event."""

    def __init__(self, sheet: JsonLogSheet | None = None) -> None:
        super().__init__(sheet)
        self._file: AppendFile | None = None
        self._ends: dict[str, int] = {}
        self._last = LastWrites()
        self._encoder = msgspec.json.Encoder()
        self._tables = logged_tables()

    async def stop(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def stage(self, records: Sequence[Record], group: Group) -> None:
        """Write a group's lines. Nothing of it is in the ledger but where the files end."""
        self.append([one.visit for one in records], [one.location for one in records])

    def append(self, visits: Sequence[Visit], locations: Sequence[Location | None]) -> None:
        """Write a group's lines in one write.

        Raises:
            OSError: the group could not be written; nothing of it is in the file.
        """
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
        """See the contract."""
        self._last.take_back()
        self._ends.clear()

    def committed(self, ends: Mapping[str, int]) -> None:
        """Nothing waits for it."""

    def files(self) -> Sequence[str]:
        """None but those that :mod:`gossamer.stores.recovery` knows of every crawl."""
        return ()

    def ends(self) -> Mapping[str, int]:
        """The log and its end, if it was written since the last call."""
        ends, self._ends = self._ends, {}
        return ends


def _open(path: Path) -> AppendFile:
    """The log, cut back to its last whole line: what a kill tore was never acknowledged."""
    file = AppendFile(path, fresh=False)
    end = file.end_of_lines()
    if end < file.end:
        file.cut_back(end)
    return file
