"""DuckDB as this package uses it: how it is opened, how row logs and Parquet are named to it, and how tables are written.

It is imported as `_duckdb`, the module that all of it is in: `duckdb` around it adds data frames and other guests, for 60 ms of
CPU at the end of every crawl.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

import _duckdb

from gossamer.engine.files import scratch, too_little_memory
from gossamer.query.schema import empty, select_from_log
from gossamer.storage.tables.contract import TableSpec
from gossamer.storage.tables.places import INDEX_DIRECTORY, TRIPLES, has_rows
from gossamer.values.errors import UsageError

Connection = _duckdb.DuckDBPyConnection
Error = _duckdb.Error
StatementType = _duckdb.StatementType

#: What DuckDB may take while it converts; beyond, it spills to the disk.
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
        table: None where nobody said what it is; its columns are those of its files then.
        files: Parquet files, at least one where `table` is None.
        logs: row logs.
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
        """A name for a file or directory that SQL can hold."""
        self._links += 1
        link = self._folder / f"link-{self._links}{path.suffix}"
        link.symlink_to(path.resolve())
        return link

    def view(self, name: str, sql: str) -> None:
        """Give an answer a name for what is written later."""
        self._connection.execute(f'CREATE VIEW "{name}" AS {sql}')

    def write(self, sql: str, target: Path) -> None:
        """The answer as the file `target`."""
        self.prepare(sql, target).replace(target)

    def prepare(self, sql: str, target: Path) -> Path:
        """The answer beside the file `target`, under the name that is returned: whoever calls puts it into its place."""
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f"{target.name}.new")
        self._connection.execute(f"COPY ({sql}) TO '{self.link(target.parent) / fresh.name}' ({PARQUET})")
        return fresh


# Which derived stores a crawl has, by the names of its files: no library of such a store is loaded to say so.
#
# Place in the flow: commands, the processes that answer, and the dashboard ask here before they open the index or the triples.

#: The file beside those of tantivy that notes the format of an index.
INDEX_FORMAT_FILE = "gossamer.json"


def index_path(directory: Path) -> Path:
    """Where the index of a crawl lies."""
    return directory / INDEX_DIRECTORY


def has_index(directory: Path) -> bool:
    """Whether a crawl has an index, of whatever version."""
    return (index_path(directory) / INDEX_FORMAT_FILE).exists()


def check_index(directory: Path) -> None:
    """Refuse a crawl that keeps no index.

    Raises:
        UsageError: it does not.
    """
    if not has_index(directory):
        raise UsageError(f"{directory} has no index; make one with: gossamer index {directory}")


def check_triples(directory: Path) -> None:
    """Refuse a crawl that keeps no triples.

    Raises:
        UsageError: it does not.
    """
    if not ((directory / TRIPLES).is_dir() or has_rows(directory, "triples")):
        raise UsageError(
            f"{directory} keeps no triples; crawl with --rdf, or make them of what it archived: "
            f"gossamer reprocess {directory} --rdf"
        )


# The forms in which a crawl is exported: their names, and how files of them end.
#
# Place in the flow: `gossamer export` and the dashboard's form take these and no others.

#: Forms of the triples of a crawl (`--rdf`), and how their files end.
TRIPLE_FORMS = {"nquads": ".nq", "turtle": ".ttl", "jsonld": ".jsonld", "rdfxml": ".rdf"}

#: Forms that write one table.
TABLE_FORMS = {"csv": ".csv", "jsonl": ".jsonl", "parquet": ".parquet"}

#: The copy to browse, which is a folder.
FOLDER_FORM = "folder"

#: Forms of words (:mod:`gossamer.words`); Markdown is a folder.
WORDS_FORMS = {"markdown": "", "chunks": ".jsonl"}

#: All of them, and how their files end.
EXPORT_FORMS = {
    "wacz": ".wacz",
    **TABLE_FORMS,
    "cdxj": ".cdxj",
    "urls": ".txt",
    FOLDER_FORM: "",
    **WORDS_FORMS,
    **TRIPLE_FORMS,
}
