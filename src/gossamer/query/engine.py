"""DuckDB as this package uses it: how it is opened, how row logs and Parquet are named to it, and how tables are written.

Place in the flow: everything of this room that asks or writes tables opens its connection here. It is imported as `_duckdb`, the
module that all of it is in: `duckdb` around it adds data frames and other guests, for 60 ms of CPU at the end of every crawl.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

import _duckdb

from gossamer.engine.files import scratch, too_little_memory
from gossamer.query.schema import empty, select_from_log
from gossamer.storage.tables.contract import TableSpec
from gossamer.values.errors import UsageError

Connection = _duckdb.DuckDBPyConnection
Error = _duckdb.Error
StatementType = _duckdb.StatementType

#: Memory that DuckDB may take while it converts; beyond, it spills to the disk.
MEMORY = "256MB"

#: Rows of a Parquet file that are packed together. DuckDB's own 122,880 cost the converter 40 MB more.
ROW_GROUP = 20_480


#: How tables are written.
PARQUET = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP}"


def connect(workspace: str, memory: str = MEMORY, threads: int = 1) -> Connection:
    """A connection in memory that keeps to `memory` and spills into `workspace`. Raises UsageError: the system gives too little."""
    if why := too_little_memory():
        raise UsageError(why)
    connection = _duckdb.connect(config={"memory_limit": memory, "threads": threads, "temp_directory": workspace})
    connection.execute("SET preserve_insertion_order = true")
    return connection


def select_table(table: TableSpec | None, files: Sequence[Path], logs: Sequence[Path] = ()) -> str:
    """SQL that reads a table out of Parquet files and row logs, with the columns that it has to have.

    Args:
        table: None where no declaration says its columns; they are those of its files then.
        files: Parquet files, at least one where `table` is None.
    """
    parts = [empty(table)] if table is not None else []
    if files:
        parts.append(select_from_parquet(files))
    if table is not None and logs:
        parts.append(select_from_log(table, logs))
    return " UNION ALL BY NAME ".join(parts)


def select_from_parquet(files: Sequence[Path]) -> str:
    """SQL that reads Parquet files; their names hold nothing that SQL or a wildcard could mean."""
    names = ", ".join(f"'{path}'" for path in files)
    return f"SELECT * FROM read_parquet([{names}], union_by_name = true)"


def linked(folder: Path, name: str, path: Path) -> Path:
    """A name for a file or directory that SQL can hold."""
    link = folder / f"{name}{path.suffix}"
    link.symlink_to(path.resolve())
    return link


class ParquetWriter:
    """Writes Parquet files, each whole or not at all; a context manager.

    One DuckDB serves for all, and is opened when the first is written: opening takes 20 ms, a small table 2. It sees files
    through links under names of our own, since it would read wildcards into those of the user.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._links = 0

    def __enter__(self) -> "ParquetWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.rest()
        self._stack.close()

    @cached_property
    def _folder(self) -> Path:
        return Path(self._stack.enter_context(scratch()))

    @cached_property
    def _connection(self) -> Connection:
        return connect(str(self._folder))

    def rest(self) -> None:
        """Give back the memory that DuckDB has come to hold. Views are gone; the next table opens DuckDB anew."""
        connection = self.__dict__.pop("_connection", None)
        if connection is not None:
            connection.close()

    def link(self, path: Path) -> Path:
        self._links += 1
        return linked(self._folder, f"link-{self._links}", path)

    def view(self, name: str, sql: str) -> None:
        """Give an answer a name for what is written later."""
        self._connection.execute(f'CREATE VIEW "{name}" AS {sql}')

    def write(self, sql: str, target: Path) -> None:
        """The answer as the file `target`."""
        self.prepare(sql, target).replace(target)

    def prepare(self, sql: str, target: Path) -> Path:
        """The answer beside the file `target`, under the name that is returned: the caller puts it into its place."""
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f"{target.name}.new")
        self._connection.execute(f"COPY ({sql}) TO '{self.link(target.parent) / fresh.name}' ({PARQUET})")
        return fresh
