"""SQL over a crawl: tables, and rows that are not tables yet, while the crawl runs or after.

Place in the flow: `gossamer query`, exports and reports ask here. A :class:`Database` looks at the directory once, so a question
sees one state: Parquet files by name, and of row logs the whole lines that were there. All files stand, as links or copies under
names of ours, in one folder; then DuckDB is shut off from every other file and from the network, its settings are locked, and only
statements that ask are taken. Rows are strangers' words: they are bound to columns, never to SQL.
"""

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.engine.files import in_place_of, scratch
from gossamer.engine.sheet import nearest
from gossamer.query.convert import parquet_of
from gossamer.query.engine import (
    DERIVED,
    MACROS,
    VIEWS,
    Connection,
    Error,
    StatementType,
    connect,
    linked,
    select_table,
)
from gossamer.query.item_tables import asks_for_items, make_item_views
from gossamer.query.schema import (
    EVERY,
    FIRST_COPIES,
    HOSTS,
    HOSTS_VIEW,
    SUPERSEDED,
    first_copies,
    lasting,
    latest,
    literal,
    superseded,
    tables_of,
    with_copies,
    with_shells,
)
from gossamer.storage.members import crawl_id, write_kept
from gossamer.storage.recovery import opened_log
from gossamer.storage.tables.manifest import Damage, damaged_logs, damaged_tables, is_parquet, known_notes
from gossamer.storage.tables.places import TABLES, reading, segments, table_files, table_names
from gossamer.storage.tables.row_tables import COPIES
from gossamer.values.errors import CrawlDirectoryError, UsageError

#: Memory that a question may take; beyond, it spills to the disk.
MEMORY = "1GB"

#: The table of one row that names the crawl.
CRAWLS = "crawls"

#: The table by which visits are told apart.
PAGES = "pages"

_NO_TABLE = re.compile(r"Table with name (\S+) does not exist")

#: Rows that are held at once between DuckDB and the printer.
ROWS_AT_ONCE = 1_000


class Database:
    """An open look at a crawl's tables; a context manager. Its files do not go away meanwhile."""

    def __init__(
        self,
        directory: Path,
        only: Mapping[str, Sequence[Path]] | None = None,
        *,
        memory: str = MEMORY,
        threads: int = 0,
    ) -> None:
        """Look at `directory` now; instead of what there is, only at these Parquet files of each table. DuckDB may take `memory`,
        and use so many threads, 0 for one a core. Raises OSError: no room for copies of the row logs that are not tables yet."""
        self._stack = contextlib.ExitStack()
        self._allowed: list[Path] = []
        self.tables: list[str] = []
        """Names of the tables that can be asked."""
        self.without_rows: list[str] = []
        """Those of them that no file belongs to."""
        self.damaged: list[Damage] = []
        """Files whose rows are in no answer, since they are not what they were."""
        self._item_views: list[str] | None = None
        self._names: dict[str, str] = {}
        """Name of a file for DuckDB -> its name in the crawl directory."""
        self._directory = directory
        self._pages: list[Path] = []
        """The Parquet files of `pages`."""
        self._is_whole = False
        """They are all that there is of it."""
        self._is_once = False
        """No URL is in them twice."""
        try:
            self._stack.enter_context(reading(directory))
            self.folder = Path(self._stack.enter_context(scratch("gossamer-query-")))
            (self.folder / "spill").mkdir()
            self._connection = self._stack.enter_context(
                connect(str(self.folder / "spill"), memory, threads or os.cpu_count() or 1)
            )
            self._make_views(directory, only)
            # From here on DuckDB sees the folder and nothing else, and no statement can change that.
            allowed = ", ".join(map(literal, self._allowed))
            for setting in (
                f"SET allowed_directories = ['{self.folder}']",
                f"SET allowed_paths = [{allowed}]",
                "SET enable_external_access = false",
                "SET autoinstall_known_extensions = false",
                "SET autoload_known_extensions = false",
                "SET python_enable_replacements = false",
                "SET lock_configuration = true",
            ):
                self._connection.execute(setting)
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # -- what there is

    def _make_views(self, directory: Path, only: Mapping[str, Sequence[Path]] | None) -> None:
        logs = segments(directory) if only is None else []
        notes = known_notes(directory)
        self.damaged = [*damaged_tables(directory, notes), *(damaged_logs(directory, notes) if only is None else ())]
        tables = tables_of(directory)
        of_visits = {f"{name}{EVERY}" for name, table in tables.items() if table.page}
        made: dict[str, str] = {}
        for name in dict.fromkeys([*tables, *table_names(directory)]):
            if name in (HOSTS.name, CRAWLS) or name in of_visits or not name.isidentifier():
                continue
            files = table_files(directory, name)
            logged = [one for one in logs if one.table == name]
            live = [one.path for one in logged if parquet_of(directory, one).name not in files.made]
            current = files.current if only is None else only.get(name, ())
            copies = []  # whole lines of logs that may grow meanwhile
            for number, path in enumerate(live):
                copy = self.folder / f"{name}-{number}.jsonl"
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(path, copy, follow_symlinks=False)
                    opened_log(copy).close()  # one that was caught in the middle of a write ends in a torn line
                    copies.append(copy)
            sql = select_table(tables.get(name), self._linked(name, current), copies)
            made[f"{name}{EVERY}" if f"{name}{EVERY}" in of_visits else name] = lasting(name, sql)
            if not current and not live:
                self.without_rows.append(name)
            if name == PAGES:
                self._pages = list(current)
                self._is_whole = only is None and not live
                self._is_once = self._is_whole and is_noted(directory, self._pages)
        if COPIES.name not in self.without_rows:
            self._create(FIRST_COPIES, first_copies(made[COPIES.name]))
            made[f"{PAGES}{EVERY}"] = with_copies(made[f"{PAGES}{EVERY}"])
        made[f"{PAGES}{EVERY}"] = with_shells(made[f"{PAGES}{EVERY}"])
        for view, sql in made.items():
            self._make_view(view, sql)
        self._make_view(HOSTS.name, HOSTS_VIEW)
        self._make_view(CRAWLS, f"SELECT nullif({literal(crawl_id(directory))}, '') AS id")
        for head, meaning in MACROS.items():
            self._connection.execute(f"CREATE MACRO {head} AS {meaning}")
        self._latest = {table.name: table for table in tables.values() if table.page}
        self._views = {name: sql for name, sql in VIEWS.items() if name not in self.tables}
        self._derived = {name: made for name, made in DERIVED.items() if name not in self.tables}
        self.tables += [*self._latest, *self._views, *self._derived]

    def _settle(self, question: str) -> None:
        """Refuse what is no question, and make views that one names for the first time."""
        with _told(self._names):
            statements = self._connection.extract_statements(question)
        if len(statements) != 1 or statements[0].type not in _ASKING:
            raise UsageError("one question at a time, as SELECT ... FROM pages; the tables are only read")
        asked = set(_names_in(question, self.tables))
        if not asked or asked & {*self._latest, *self._views, *self._derived}:
            self._make_latest()
        for name in asked & {*self._derived}:
            self._derive(name)
        if asks_for_items(question):
            self.item_views()

    def _make_latest(self) -> None:
        has_superseded = False
        if self._latest and not self._is_once:
            has_superseded = find_superseded(self._connection)
            if not has_superseded and self._is_whole:
                note_once(self._directory, self._pages)
        for name, table in self._latest.items():
            every = f"{name}{EVERY}"
            self._create(name, latest(table, every) if has_superseded else f'SELECT * FROM "{every}"')
        for name, sql in self._views.items():
            self._create(name, sql)
        self._latest, self._views = {}, {}

    def _derive(self, name: str) -> None:
        table = self._derived.pop(name, None)
        if table is None:
            return
        for other in table.needs:
            self._derive(other)
        for step, sql in table.steps.items():
            with _told(self._names):
                self._connection.execute(f'CREATE TEMP TABLE "{step}" AS {sql}')

    def _create(self, name: str, sql: str) -> None:
        self._connection.execute(f'CREATE VIEW "{name}" AS {sql}')

    def _make_view(self, name: str, sql: str) -> None:
        self.tables.append(name)
        self._create(name, sql)

    def damage_to(self, question: str) -> list[Damage]:
        """Of :attr:`damaged`, what a question would have needed, by the names of tables that are in it."""
        asked = {name.removesuffix(EVERY) for name in _names_in(question, self.tables)}
        if asked & {*VIEWS, *DERIVED}:
            asked |= {"pages", "links", "items", "triples"}
        if asks_for_items(question):
            asked.add("items")
        if HOSTS.name in asked:
            asked |= {"pages", "host_notes"}
        if PAGES in asked:
            asked.add(COPIES.name)
        if asked:
            asked.add(TABLES)  # a lost manifest: it says which files count
        return [damage for damage in self.damaged if damage.table in asked]

    def _linked(self, name: str, files: Sequence[Path]) -> list[Path]:
        """Links to those that can be read. A file without a note, in a crawl of an older version, is known by its ends alone."""
        left_out = {damage.file for damage in self.damaged}
        links: list[Path] = []
        for path in files:
            file = f"{TABLES}/{path.parent.name}/{path.name}"
            if file in left_out:
                continue
            if not is_parquet(path):
                self.damaged.append(Damage(file, "is not a complete Parquet file"))
                continue
            links.append(linked(self.folder, f"{name}-{len(links)}", path))
            self._names[path.name] = self._names[str(links[-1])] = file
            self._allowed.append(path.resolve())
        return links

    # -- questions

    def item_views(self) -> list[str]:
        """Make the views of items, `item.KIND`, where they are not made yet; returns their names."""
        if self._item_views is None:
            self._make_latest()
            with _told(self._names):
                self._item_views = make_item_views(self._connection)
        return self._item_views

    def ask(self, sql: str, values: Sequence[object] = ()) -> "Rows":
        """The answer to one question; the next question ends it. A `?` stands for a value, since strangers' words are no part of
        a question. Raises UsageError: it is not one statement that asks, or DuckDB refuses it; says why. Raises
        CrawlDirectoryError: a file is damaged in a way that shows only now; names it."""
        self._settle(sql)
        with _told(self._names, self.tables):
            return Rows(self._connection.execute(sql, list(values)), self._names)

    def keep(self, name: str, sql: str) -> None:
        """Keep the answer to a question of ours under a name, for the questions that follow.
        Raises UsageError: as :meth:`ask`."""
        self._settle(sql)
        with _told(self._names):
            self._connection.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS {sql}')

    def arrays(self, sql: str) -> "dict[str, Any]":
        """The answer to a question of ours, by column, as NumPy arrays. Raises UsageError: as :meth:`ask`."""
        self._settle(sql)
        with _told(self._names):
            found: dict[str, Any] = self._connection.execute(sql).fetchnumpy()
            return found

    def lend(self, name: str, columns: "Mapping[str, Any]") -> None:
        """Let questions of ours read NumPy arrays of one length as a table."""
        self._connection.register(name, dict(columns))

    def write_parquet(self, sql: str, target: Path) -> None:
        """The answer as a Parquet file, whole or not at all. Raises UsageError: as :meth:`ask`."""
        self._settle(sql)
        with _told(self._names, self.tables):
            # The end of a line ends a comment that the question may end with.
            self._connection.execute(f"COPY ({sql.rstrip().rstrip(';')}\n) TO '{self.folder}/answer' (FORMAT parquet)")
        target.parent.mkdir(parents=True, exist_ok=True)
        with in_place_of(target) as fresh:
            shutil.move(self.folder / "answer", fresh)


_ASKING = frozenset({StatementType.SELECT, StatementType.EXPLAIN})


class Rows:
    """Rows of an answer, read bit by bit."""

    def __init__(self, connection: Connection, names: Mapping[str, str]) -> None:
        self._connection = connection
        self._names = names
        self.columns: list[str] = [column[0] for column in connection.description or ()]
        self.types: list[str] = [str(column[1]) for column in connection.description or ()]
        """DuckDB's names of the columns' types, as `VARCHAR` or `JSON`."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while True:
            with _told(self._names):
                rows = self._connection.fetchmany(ROWS_AT_ONCE)
            if not rows:
                return
            yield from rows


@contextlib.contextmanager
def _told(names: Mapping[str, str], tables: Sequence[str] = ()) -> Iterator[None]:
    """DuckDB's refusals in one line, as the fault of who asked, or of a file, which is called by its own name."""
    try:
        yield
    except Error as error:
        named = [name for link, name in names.items() if link in str(error)]
        if named:
            text = f"{', '.join(named)} cannot be read: {type(error).__name__}; bring it back from a copy"
            raise CrawlDirectoryError(text) from None
        if "file system operations are disabled" in str(error):  # connect() lets no question open a file
            raise UsageError(
                "a question can read the tables of this crawl, and no file; to ask them together with files of yours, write them "
                "for a tool of your own: gossamer export DIR --to parquet"
            ) from None
        if unknown := _NO_TABLE.search(str(error)):
            raise UsageError(f"there is no table {unknown[1]!r}{nearest(unknown[1], tables)}") from None
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        hint = next((line for line in lines[1:] if line.startswith(("Did you mean", "Candidate"))), "")
        hint = "" if hint.endswith(":") else hint  # a list of signatures would follow
        raise UsageError(" ".join(filter(None, (lines[0] if lines else type(error).__name__, hint)))) from None


def _names_in(question: str, tables: Sequence[str]) -> list[str]:
    """Names of tables that stand in a question, as a word anywhere."""
    return [name for name in tables if re.search(rf"\b{name}\b", question, re.IGNORECASE)]


# Which visits another visit of the same URL came after. Of a crawl whose URLs were all visited once, the tables are the views;
# a note in its directory says so of the Parquet files that there are, since finding it out reads every URL (0.4 s for a million
# pages).

#: Where it is noted that every URL was visited once, by a digest of names, sizes and times of the files of `pages`.
NOTE = "state/visited-once.json"

#: Bytes of tables from which a note is worth a file: below, the question takes some hundredths of a second.
WORTH_A_NOTE = 1 << 22


def find_superseded(connection: Connection) -> bool:
    """Make the tables of visits that others came after; False where there is none."""
    pages = f"pages{EVERY}"
    again = f"SELECT 1 FROM {pages} GROUP BY hash(url) HAVING count(*) > 1 LIMIT 1"
    # Two URLs may have one hash: a row found by it is only worth a closer look.
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
        note = msgspec.json.decode((directory / NOTE).read_bytes(), type=dict[str, str])
    except (OSError, ValueError):
        return False
    return note.get("files") == _digest(files)


def note_once(directory: Path, files: Sequence[Path]) -> None:
    """Keep that for later questions where it is worth it; a directory that cannot be written is asked anew each time."""
    if sum(path.stat().st_size for path in files) < WORTH_A_NOTE:
        return
    with contextlib.suppress(OSError):
        write_kept(directory / NOTE, {"files": _digest(files)})


def _digest(files: Sequence[Path]) -> str:
    told = [(path.name, status.st_size, status.st_mtime_ns) for path in files for status in (path.stat(),)]
    return hashlib.sha256(msgspec.json.encode(sorted(told))).hexdigest()
