"""The rows of the tables, as agents write them: appended with each commit, cheap, one file for each table.

Place in the flow: the commit calls `stage` with the records of a group, notes `ends` in the ledger, and says `committed` when the
group is kept. The tables say which rows a visit gives. Other processes turn these files into Parquet, and follow them
(:mod:`gossamer.query`): no agent imports the libraries of tables. :mod:`gossamer.storage.tables.places` describes the files.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec

from gossamer.engine.errors import UnknownName
from gossamer.engine.files import AppendFile, LastWrites
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.contract import AgentSheet
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.logs import CRAWL_LOG, line, lines, log_path
from gossamer.storage.recovery import opened_log
from gossamer.storage.tables.contract import RowSource, Table, shipped, table_named
from gossamer.storage.tables.places import CommittedEnds, declare, mark_open, new_run, rows_directory, segment_name
from gossamer.values import settings
from gossamer.values.visit import Location, Record, Visit

#: Stands for the log of the crawl where files go by the names of their tables.
_LOG = ""

_IN_USE = "it is part of the files that are open"


_LogName = Annotated[
    str,
    setting(
        "Write the log under this name; with several agents, each has a log of its own.",
        restart=_IN_USE,
        pattern=r"^[a-z0-9-]+$",
    ),
]


#: A row log takes at most this part of the memory of an agent: DuckDB needs nine times as much to make a table of one.
_OF_MEMORY = 40


class TableLogSheet(AgentSheet, frozen=True):
    tables: Annotated[
        tuple[str, ...],
        setting(
            "Keep these tables: `pages`, `links`, `items`, `errors`, `triples`, and those of installed packages. The "
            "index of the archive is also made from `pages`."
        ),
    ] = ("pages", "links", "items", "errors")
    log: Annotated[bool, setting("Also write the log, `logs/crawl.jsonl`.", restart=_IN_USE)] = True
    log_name: _LogName = CRAWL_LOG
    sha256: Annotated[bool, setting("Hash each body with SHA-256; this takes 33 us for 39 kB.")] = True
    segment_bytes: Annotated[
        int, setting("Close a row log when it reaches this size, so that it can become a table.", unit="bytes", ge=1)
    ] = 32 << 20
    memory: settings.Memory = None
    sync: Annotated[
        bool, setting("Force each group to the disk before it counts as written, so that it survives a power cut.")
    ] = False

    def __post_init__(self) -> None:
        try:
            for name in self.tables:
                table_named(name)
        except UnknownName as error:
            raise ValueError(str(error)) from None


class RowLog(Provider[TableLogSheet]):
    """Writes rows, and the log of the crawl, in the order of the commits."""

    def __init__(self, sheet: TableLogSheet | None = None) -> None:
        super().__init__(sheet)
        self._encoder = msgspec.json.Encoder()
        self._run = ""
        self._open: dict[str, AppendFile] = {}
        self._names: dict[str, str] = {}
        """Of the open files, as the ledger knows them."""
        self._serials: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._last = LastWrites()
        self._committed: CommittedEnds | None = None
        self._tables: tuple[Table, ...] = ()
        self._choose_tables()

    def read_sheet(self) -> None:
        self._take(self.sheet)

    def _take(self, own: TableLogSheet) -> None:
        # The process that makes tables takes the more memory, the larger a row log is when it is closed.
        self._own, most = own, own.memory // _OF_MEMORY if own.memory else own.segment_bytes
        self._most_bytes = min(own.segment_bytes, most)

    def _choose_tables(self) -> None:
        """The tables that are written, then those that only the log tells."""
        kept = tuple(map(table_named, dict.fromkeys(self._own.tables)))
        told = (table for table in shipped() if table.is_logged) if self._own.log else ()
        self._tables = (*kept, *(table for table in told if table not in kept))

    async def stop(self) -> None:
        """Close the files. They stay open to their run until a crawl has ended: only who commits knows that it has."""
        for file in self._open.values():
            file.close()
        self._open.clear()
        if self._committed is not None:
            self._committed.close()
            self._committed = None

    def changed(self, before: TableLogSheet) -> None:
        """Other tables are kept from the next group on."""
        super().changed(before)
        self._choose_tables()

    def stage(self, records: Sequence[Record], group: Group) -> None:
        self.append([one.visit for one in records], [one.location for one in records])

    def append(self, visits: Sequence[Visit], locations: Sequence[Location | None]) -> None:
        """Write a group's rows, one write for each table. Raises OSError: a table could not be written. Others may have been:
        nothing of the group counts before its commit."""
        self._last.begin()
        sheet, encoder = self._own, self._encoder
        written: defaultdict[str, list[bytes]] = defaultdict(list)
        log: list[bytes] = []
        troubles: list[str] = []
        for visit, location in zip(visits, locations, strict=True):
            told = RowSource(visit, visit.task, visit.response, location, sheet.sha256)
            for table in self._tables:
                if found := lines(table, told, encoder, troubles):
                    written[table.name] += found
                    if sheet.log and table.is_logged:
                        log += found
        for trouble in troubles:
            self.metrics.count(trouble)
        self._write(_LOG, log)
        for name in dict.fromkeys(sheet.tables):
            self._write(name, written[name])

    def add(
        self,
        table: str,
        rows: Iterable[msgspec.Struct],
        ledger: Ledger,
        beside: Callable[[Group], object] = lambda group: None,
    ) -> None:
        """Write rows that belong to no visit, as those of hosts, and commit them in a group of their own, with what `beside`
        stages. Raises OSError or GossamerError where rows or group could not be written: nothing of either counts then."""
        self._last.begin()
        made = (line(row, self._encoder) for row in rows)
        try:
            while found := list(islice(made, _ROWS_AT_ONCE)):
                self._write(table, found)
            ends = self.ends()
            with ledger.group() as group:
                beside(group)
                for file, end in ends.items():
                    group.written(file, end)
        except Exception:
            self.take_back()
            raise
        self.committed(ends)

    def take_back(self) -> None:
        self._last.take_back()
        self._ends.clear()

    def files(self) -> Sequence[str]:
        """None but those that :mod:`gossamer.storage.recovery` knows of every crawl."""
        return ()

    def ends(self) -> Mapping[str, int]:
        ends, self._ends = self._ends, {}
        return ends

    def committed(self, ends: Mapping[str, int]) -> None:
        """Tell those who follow the rows how far these are committed."""
        if self._committed is not None:
            self._committed.publish(ends)

    def _write(self, table: str, lines: Sequence[bytes]) -> None:
        if not lines:
            return
        file = self._file(table)
        data = b"".join(lines)
        self._last.about_to(file)
        file.append(data, sync=self._own.sync)
        self._ends[self._names[table]] = file.end
        if table == _LOG:
            self.metrics.counters["lines"] += len(lines)
        else:
            self.metrics.counters["rows"] += len(lines)
            self.metrics.counters["bytes"] += len(data)

    def _file(self, table: str) -> AppendFile:
        file = self._open.get(table)
        if file is not None and (file.end < self._most_bytes or table == _LOG):
            return file
        if table == _LOG:
            self._names[_LOG] = log_path(self._own.log_name)
            # A line that a kill tore was never acknowledged: it is cut off.
            log = self._open[_LOG] = opened_log(Path(self._own.directory, self._names[_LOG]))
            return log
        directory, agent = Path(self._own.directory), self._own.agent
        if not self._run:
            self._run = new_run(directory, agent, self.clock.now())
            self._committed = CommittedEnds(directory, agent, self._run)
            mark_open(directory, agent, self._run)
        if table not in self._serials:
            declare(directory, agent, table_named(table).spec)
        self._serials[table] = serial = self._serials.get(table, 0) + 1
        path = rows_directory(directory, agent) / segment_name(table, self._run, serial)
        fresh = AppendFile(path, fresh=True)
        if file is not None:
            file.close()
        self._open[table] = fresh
        self._names[table] = path.relative_to(directory).as_posix()
        return fresh


#: Rows of hosts that are made at once: memory must not follow their number.
_ROWS_AT_ONCE = 1_000


class TableLog(RowLog):
    """Writes the rows of the tables, and the log of the crawl, in the order of the commits. Contract: `Keeper`.

    One event is one line, whatever a server sent: control characters are escaped.
    It creates a file at its first row, so a table without rows leaves no file.
    """


class JsonLogSheet(Sheet, frozen=True):
    directory: Annotated[
        str, setting("Use this crawl directory; the log is `logs/NAME.jsonl` in it.", restart=_IN_USE, names="a folder")
    ] = "."
    name: _LogName = CRAWL_LOG
    sync: Annotated[
        bool, setting("Force each group to the disk before it counts as written, so that it survives a power cut.")
    ] = False


class JsonLog(RowLog):
    """Writes the log of the crawl alone. Contract: `Keeper`."""

    sheet_type = JsonLogSheet

    def __init__(self, sheet: Any = None) -> None:
        super().__init__(sheet)

    def read_sheet(self) -> None:
        own: Any = self.sheet
        self._take(TableLogSheet(own.directory, tables=(), log_name=own.name, sha256=False, sync=own.sync))
