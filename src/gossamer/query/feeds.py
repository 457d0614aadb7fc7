"""The feed of a table: every committed row once and in order, out of row logs and of the Parquet that they become.

Place in the flow: processes other than the agent read here, while the crawl runs and after (:mod:`gossamer.query.following`). A
segment and its Parquet file have the same rows in the same order, so a mark holds for both. Of the run that still writes, only rows
are read that the agent has published as committed: a row that is undone by a kill was never seen here.

Row logs whose columns are texts are read without DuckDB, which takes about 3 us a row to parse a frame, to unnest it and to hand
the rows to Python; here it is a third of that, for feeds of millions of short rows, such as triples. The rows are those of
:func:`gossamer.query.schema.select_from_log`, which a test compares.
"""

import itertools
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import msgspec

from gossamer.engine.files import pieces_of, scratch
from gossamer.query.engine import Connection, connect, select_table
from gossamer.query.schema import select_from_log, tables_of
from gossamer.storage.tables.contract import (
    VISIT,
    ColumnSpec,
    CountingConsumer,
    FeedBatch,
    FeedConsumer,
    FeedMark,
    FeedPlace,
    TableSpec,
)
from gossamer.storage.tables.places import (
    committed,
    open_runs,
    reading,
    run_of_name,
    segments,
    table_files,
)

# Row logs of texts.

TextRow = tuple[object, ...]

#: Reads one column, from a decoded line and the number of its rows.
_Read = Callable[[Any, int], Sequence[str | None]]


class TextRows:
    """Reads some columns of a table's log."""

    def __init__(self, table: TableSpec, columns: Sequence[str]) -> None:
        """Nothing is read yet; :func:`is_textual` holds."""
        chosen = _chosen(table, columns)
        fields = {one.name: one for one in _needed(table, chosen)}
        line = msgspec.defstruct(
            "Line",
            [(name, list[str | None] | None if one.is_many else str | None, None) for name, one in fields.items()],
            gc=False,
        )
        self._decode = msgspec.json.Decoder(line).decode
        self._readers = [_reader(one) for one in chosen]
        self._first = next((one.name for one in table.columns if one.is_many), "")

    def of(self, path: Path, start: int, end: int) -> Iterator[tuple[list[TextRow], int]]:
        """The rows of each line of a log from byte `start` to byte `end`, with the line's length.
        Raises OSError: the log cannot be read. Raises ValueError: a line is no row of the table."""
        at = start
        with path.open("rb") as log:
            log.seek(start)
            for line in log:
                at += len(line)
                if at > end:
                    return
                if line.isspace():  # it could not be read, and a person went on without it
                    continue
                try:
                    decoded = self._decode(line)
                except ValueError as error:
                    raise ValueError(f"{path} is damaged before byte {at}: {error}") from None
                count = len(getattr(decoded, self._first) or ()) if self._first else 1
                yield list(zip_longest(*(read(decoded, count) for read in self._readers))), len(line)


def is_textual(table: TableSpec, columns: Sequence[str]) -> bool:
    """Whether these columns of a table can be read so: all are texts as they stand in the log, and every row of it counts."""
    chosen = _chosen(table, columns)
    plain = all(one.type == "VARCHAR" and not one.host_of and not one.same_as for one in _needed(table, chosen))
    return bool(chosen) and plain and table.without is None


def _chosen(table: TableSpec, columns: Sequence[str]) -> list[ColumnSpec]:
    known = {one.name: one for one in table.columns}
    return [known[name] for name in columns if name in known] if all(name in known for name in columns) else []


def _needed(table: TableSpec, chosen: Sequence[ColumnSpec]) -> list[ColumnSpec]:
    """These, and the one whose length says how many rows a line has."""
    first = [one for one in table.columns if one.is_many][:1]
    return list({one.name: one for one in chain(chosen, first)}.values())


def _reader(column: ColumnSpec) -> _Read:
    name, fill = column.name, None if column.fill is None else str(column.fill)
    if column.is_many:

        def each(line: Any, count: int) -> Sequence[str | None]:
            values: Sequence[str | None] | None = getattr(line, name)
            return [fill] * count if values is None else values

        return each

    def same(line: Any, count: int) -> Sequence[str | None]:
        value = getattr(line, name)
        return [fill if value is None else value] * count

    return same


#: Rows that are read at once.
_ROWS_READ = 1_000

#: Characters after which a batch is given whatever a consumer would hold: memory follows neither pages nor their values.
_MOST_CHARACTERS = 32_000_000

#: Parquet files are called after their segment; others were made by `reprocess`, or by other programs, and come first.
_MADE = re.compile(r"(?P<agent>[a-z0-9-]+)-(?P<run>\d{14,}-[0-9a-f]{8})-(?P<serial>\d{6})\.parquet")

Row = tuple[object, ...]


class _Part(msgspec.Struct, frozen=True):
    """A file with rows of the table, and its place in the order."""

    agent: str
    run: str
    serial: int
    path: Path
    end: int | None = None
    """The byte at which committed rows end in a row log; None for all of it."""

    @property
    def is_log(self) -> bool:
        return self.path.suffix == ".jsonl"


class Sight(msgspec.Struct, frozen=True):
    """The committed files of a table at one instant."""

    generation: int
    parts: list[_Part]
    """In the order of the feed."""


class Feed:
    """The rows of one table of a crawl directory. One feed serves one consumer."""

    def __init__(self, directory: Path, table: str) -> None:
        self._directory = directory
        self._table = table
        self._known: dict[tuple[str, str, int], tuple[int, int]] = {}
        """File -> rows that were read of it, and the byte behind them: a file that grows is not read again from its beginning."""

    def give(self, consumer: FeedConsumer, sight: Sight | None = None) -> int:
        """Give a consumer all that is committed and that it has not taken yet, by what :meth:`look` saw or sees now; returns
        the number of rows. Raises OSError: a file could not be read, or the consumer could not keep what it was given."""
        given = 0
        with reading(self._directory):
            spec = tables_of(self._directory).get(self._table)
            mark, waiting = self._waiting(consumer, sight or self.look())
            if not waiting:
                return 0
            with scratch() as folder, connect(folder) as connection:
                for part in waiting:
                    reader = _PartReader(Path(folder), connection, spec, consumer)
                    taken, rows, start = self._begun(part, mark)
                    end = reader.open(part, start, taken - rows)
                    while batch := reader.some():
                        taken += len(batch)
                        mark = _moved(mark, part, taken)
                        consumer.take(FeedBatch(reader.columns, batch, mark))
                        given += len(batch)
                    self._passed(part, mark, taken, end)
        return given

    def count(self, consumer: CountingConsumer, connection: Connection, folder: Path, sight: Sight) -> int:
        """Let a consumer count all that is committed and that it has not counted yet; returns the number of rows. They stay
        within DuckDB, which gives a million of them in a fraction of the time that Python takes for them. Links and copies of
        files stand in the folder meanwhile; `sight` is what :meth:`look` saw, under the same :func:`places.reading`. Raises
        OSError: a file could not be read."""
        counted = 0
        spec = tables_of(self._directory)[self._table]
        mark, waiting = self._waiting(consumer, sight)
        for part in waiting:
            taken, rows, start = self._begun(part, mark)
            name = folder / f"{self._table}{part.path.suffix}"
            sql, end = _sql_of(part, name, spec, start)
            new = consumer.count(connection, f"SELECT * FROM ({sql}) OFFSET {taken - rows}" if taken > rows else sql)
            name.unlink()
            mark = self._passed(part, mark, taken + new, end)
            consumer.reached(mark)
            counted += new
        return counted

    def _waiting(self, consumer: FeedConsumer | CountingConsumer, sight: Sight) -> tuple[FeedMark, list[_Part]]:
        """The mark of a consumer, and the files that may have rows for it; one of another generation begins anew."""
        mark = consumer.mark()
        if mark.generation != sight.generation:
            consumer.rebuild(sight.generation)
            mark = FeedMark(sight.generation)
        waiting = []
        for part in sight.parts:
            place = mark.places.get(part.agent, FeedPlace())
            known = self._known.get((part.agent, part.run, part.serial))
            is_here = (place.run, place.serial) == (part.run, part.serial)
            if is_here and known is not None and known == (place.row, _size(part)):
                continue  # nothing was added to it since it was read up to the mark
            if (part.run, part.serial) >= (place.run, place.serial):
                waiting.append(part)
        return mark, waiting

    def look(self) -> Sight:
        """The files that are committed now. While `reading`, they can be given later, without rows that come meanwhile."""
        # Segments first, then who may write, then how far: a run is cut back before the next one is marked as open.
        logs = [one for one in segments(self._directory) if one.table == self._table]
        still_open = open_runs(self._directory)
        logs = [one for one in logs if one.path.exists()]
        told = {agent: committed(self._directory, agent) for agent in {one.agent for one in logs}}
        files = table_files(self._directory, self._table)
        found = {}
        for path in files.current:
            match = _MADE.fullmatch(path.name)
            part = (
                _Part(match["agent"], match["run"], int(match["serial"]), path)
                if match
                else _Part("", path.stem, 0, path)
            )
            found[part.agent, part.run, part.serial] = part
        for one in logs:
            if f"{one.stem}.parquet" in files.made:
                continue
            end = None  # all of it is committed, but of the run that still writes
            if (one.agent, one.run) in still_open:
                mark = told[one.agent]
                serial, reached = mark.ends.get(one.table, (0, 0)) if mark.run == one.run else (0, 0)
                end = None if one.serial < serial else reached if one.serial == serial else 0
            if end != 0:
                found[one.agent, one.run, one.serial] = _Part(one.agent, one.run, one.serial, one.path, end)
        generation = max((run_of_name(path.name) for path in files.current), default=0)
        return Sight(generation, [found[key] for key in sorted(found)])

    def _begun(self, part: _Part, mark: FeedMark) -> tuple[int, int, int]:
        """Rows of a file that were taken, and as many of them, with the byte behind them, as need not be read again."""
        place = mark.places.get(part.agent, FeedPlace())
        taken = place.row if (place.run, place.serial) == (part.run, part.serial) else 0
        rows, start = self._known.get((part.agent, part.run, part.serial), (0, 0))
        return (taken, rows, start) if part.is_log and rows <= taken else (taken, 0, 0)

    def _passed(self, part: _Part, mark: FeedMark, taken: int, end: int) -> FeedMark:
        """The mark behind so many rows of a file, which were read up to a byte."""
        # Of each agent only the segment that it is at can grow.
        self._known = {key: kept for key, kept in self._known.items() if key[0] != part.agent}
        self._known[part.agent, part.run, part.serial] = (taken, end)
        return _moved(mark, part, taken)


def _moved(mark: FeedMark, part: _Part, taken: int) -> FeedMark:
    return FeedMark(mark.generation, {**mark.places, part.agent: FeedPlace(part.run, part.serial, taken)})


class _PartReader:
    _numbers = itertools.count()

    def __init__(self, folder: Path, connection: Connection, table: TableSpec | None, consumer: FeedConsumer) -> None:
        self._folder = folder
        self._connection = connection
        self._table = table
        self._chosen = ", ".join(f'"{name}"' for name in consumer.columns) or "*"
        self._wanted = consumer.columns
        self._rows_at_once = consumer.rows_at_once
        self._held: list[Row] = []
        self.columns: tuple[str, ...] = ()

    def open(self, part: _Part, start: int, skip: int) -> int:
        """Begin to read from byte `start` of a row log, leaving out so many rows; returns where the log ends."""
        if part.is_log and self._table is not None and is_textual(self._table, self._wanted):
            self.columns, end = self._wanted, _size(part)
            self._more = _skipped(TextRows(self._table, self._wanted).of(part.path, start, end), max(0, skip))
        else:
            name = self._folder / f"part-{next(self._numbers)}{part.path.suffix}"
            sql, end = _sql_of(part, name, self._table, start)
            answer = self._connection.execute(f"SELECT {self._chosen} FROM ({sql}) OFFSET {max(0, skip)}")
            self.columns = tuple(column[0] for column in answer.description or ())
            some = iter(lambda: answer.fetchmany(_ROWS_READ), [])
            self._more = ((rows, _characters(rows)) for rows in some)
        self._visit = self.columns.index(VISIT) if VISIT in self.columns else None
        return end

    def some(self) -> list[Row]:
        """The next rows, those of one visit together; none at the end."""
        rows, characters = self._held, _characters(self._held)
        self._held = []
        for more, length in self._more:
            rows += more
            characters += length
            if len(rows) >= self._rows_at_once or characters >= _MOST_CHARACTERS:
                whole, visit = len(rows), self._visit
                if visit is not None and (last := rows[-1][visit]) is not None:  # of the last visit, more may follow
                    while whole and rows[whole - 1][visit] == last:
                        whole -= 1
                if whole:
                    self._held = rows[whole:]
                    return rows[:whole]
        return rows


def _skipped(some: Iterator[tuple[list[Row], int]], skip: int) -> Iterator[tuple[list[Row], int]]:
    for rows, length in some:
        if skip >= len(rows):
            skip -= len(rows)
        else:
            yield rows[skip:] if skip else rows, length
            skip = 0


def _sql_of(part: _Part, name: Path, table: TableSpec | None, start: int) -> tuple[str, int]:
    """SQL over the rows of a file, of a row log from byte `start` on, by a link or copy of this name; and where the log ends."""
    if not part.is_log:
        name.symlink_to(part.path.resolve())
        return select_table(table, [name]), _size(part)
    with part.path.open("rb") as rows, name.open("wb") as copy:
        rows.seek(start)
        if part.end is None:
            shutil.copyfileobj(rows, copy)
        else:
            copy.writelines(pieces_of(rows, part.end - start))
        end = rows.tell()
    return select_from_log(table, [name]) if table is not None else "SELECT 1 WHERE false", end


def _characters(rows: Iterable[Row]) -> int:
    return sum(map(_length, zip(*rows, strict=True)))


def _length(cells: tuple[object, ...]) -> int:
    """The characters of one column; joining its texts costs a fifth of asking each for its length."""
    try:
        return len("".join(cells))  # type: ignore[arg-type]
    except TypeError:  # not all of them are texts
        return sum(len(cell) for cell in cells if type(cell) is str)


def _size(part: _Part) -> int:
    return part.path.stat().st_size if part.end is None else part.end
