"""The part that Ray runs: a datasource with one read task for each piece of the archive, and the task, which makes Arrow tables.

Place in the flow: :mod:`gossamer.ray.dataset` knows which documents there are. Each task gets its rows of the tables as an Arrow
table, out of Ray's object store, which spills to disk, and the names of its archive files. It reads records by their places with
the reader of every command (:class:`~gossamer.query.archive.ArchiveReader`), and words with that of an export.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow
import ray
from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata

from gossamer.backup.contract import StoreFailed
from gossamer.backup.elsewhere import is_store, read_here
from gossamer.documents.document import Document
from gossamer.engine.files import scratch
from gossamer.query.archive import ArchiveReader, archived_visit
from gossamer.ray.dataset import COLUMNS, DocumentsTask
from gossamer.storage.archive.reading import ArchivedRecord
from gossamer.storage.archive.warc import WARC_DIRECTORY
from gossamer.storage.recovery import in_store
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.visit import Location, Visit
from gossamer.words.options import TYPES
from gossamer.words.pdf import PdfReading
from gossamer.words.reading import words_of

#: Bytes of bodies and words, and rows, after which a table is handed on: Ray puts them together as it likes.
_TABLE_BYTES, _TABLE_ROWS = 16 << 20, 4_096

_ITEM = pyarrow.struct([("kind", pyarrow.string()), ("data", pyarrow.string())])
_TYPES = {
    "time": pyarrow.timestamp("us", tz="UTC"),
    "status": pyarrow.int32(),
    "body": pyarrow.binary(),
    "items": pyarrow.list_(_ITEM),
}

#: Fields of a row that :func:`archived_visit` is told beside those that are read here.
_UNTOLD: dict[str, Any] = {
    "depth": 0, "discovered_from": "", "relation": "", "attempt": 1, "duplicate_of": "", "ip": "", "elapsed_ms": 0.0, "error": "",
    "notes": "",
}  # fmt: skip


def schema(columns: Sequence[str]) -> pyarrow.Schema:
    return pyarrow.schema([(name, _TYPES.get(name, pyarrow.string())) for name in columns])


class CrawlDatasource(Datasource):  # type: ignore[misc]  # Ray's types are not where Ray is not installed
    """The documents of a crawl; `place` is its directory or its store. Ray is begun if the program has not done so."""

    def __init__(self, tasks: Iterable[DocumentsTask], columns: Sequence[str], place: str) -> None:
        super().__init__()
        self._schema = schema(columns)
        self._tasks: list[tuple[Callable[[], Iterator[pyarrow.Table]], BlockMetadata]] = []
        for task in tasks:
            rows = ray.put(pyarrow.Table.from_pylist(task.rows))
            reading = partial(read, rows, task.files, tuple(columns), place)
            told = BlockMetadata(
                num_rows=len(task.rows), size_bytes=task.bytes, exec_stats=None, input_files=tuple(task.files)
            )
            self._tasks.append((reading, told))

    def estimate_inmemory_data_size(self) -> int:
        return sum(told.size_bytes for _, told in self._tasks)

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: object = None
    ) -> list[ReadTask]:
        return [ReadTask(read, told, self._schema, per_task_row_limit) for read, told in self._tasks]


# -- a task


def read(
    stored: "ray.ObjectRef[pyarrow.Table]", files: Mapping[str, str], columns: Sequence[str], place: str
) -> Iterator[pyarrow.Table]:
    """The tables of the rows of a task. Raises CrawlDirectoryError: this machine does not reach the archive; UsageError: it misses
    a package; OSError: a body is large, and there is no room for it in the directory for temporary files."""
    form, held, size = schema(columns), list[dict[str, Any]](), 0
    with scratch("gossamer-ray-") as folder, closing(_Reading(Path(folder), files, columns, place)) as reading:
        for row in ray.get(stored).to_pylist():
            made = reading.row(row)
            held.append(made)
            size += sum(len(made.get(name) or "") for name in ("body", "text", "markdown"))
            if size >= _TABLE_BYTES or len(held) == _TABLE_ROWS:
                yield pyarrow.Table.from_pylist(held, form)
                held, size = [], 0
        if held:
            yield pyarrow.Table.from_pylist(held, form)


class _Archive(ArchiveReader):
    """Archive files in a folder of links. The record that another one repeats is where the tables say; where that is not so, as
    after a clock was set back, the index of the crawl is asked."""

    def __init__(self, folder: Path, place: str) -> None:
        super().__init__(folder)
        self._place = place
        self.first: Location | None = None

    def original(self, record: ArchivedRecord, url: str, digest: str = "") -> ArchivedRecord:
        if record.kind != "revisit":
            return record
        if self.first is not None:
            found = self.record(self.first)
            if found.kind != "revisit" and found.fields.get("warc-payload-digest") == f"sha1:{digest}":
                return found
        whole = read_here(self._place)[0] if is_store(self._place) else Path(self._place)
        return ArchiveReader(whole).original(record, url, digest)


class _Reading:
    """Makes rows of a dataset."""

    def __init__(self, folder: Path, files: Mapping[str, str], columns: Sequence[str], place: str) -> None:
        (folder / WARC_DIRECTORY).mkdir()
        for name, target in files.items():
            (folder / name).symlink_to(target)
            if in_store(folder / name) is None and not Path(target).exists():
                raise CrawlDirectoryError(
                    f"{target} is not on this machine; put a crawl that several machines read in a store, or on a disk that all see"
                )
        self._columns = frozenset(columns)
        self._reads = any(COLUMNS[name] for name in columns)
        self._archive = _Archive(folder, place)
        self._pdf = PdfReading()

    def close(self) -> None:
        self._pdf.close()

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of a document."""
        told = {**row, "time": row["fetched_at"].replace(tzinfo=UTC), "items": row.get("items") or []}
        if self._reads:
            visit, told["error"] = self._visit(row)
            if visit is not None:
                told |= self._words(Document(msgspec.structs.replace(visit, mime=row["type"] or "")))
        return {name: told.get(name) for name in self._columns}

    def _visit(self, row: Mapping[str, Any]) -> tuple[Visit | None, str]:
        """The visit with its body, or why the archive does not have it."""
        if row["warc_file"] is None:
            return None, "the crawl kept no archive"
        if row["noarchive"] or row["kept_out"]:
            return None, "the body was kept out of the archive"
        if (first := row["place"]) is not None:
            self._archive.first = Location(first["file"], first["offset"], first["length"])
        else:
            self._archive.first = None
        try:
            visit = archived_visit(self._archive, {**_UNTOLD, **row})
        except StoreFailed:
            raise  # no fault of the record: Ray tries the task again
        except (UsageError, CrawlDirectoryError) as error:
            return None, str(error)
        if row["bytes"] and not visit.response.body:
            return None, "the body is not in the archive any more"
        return visit, ""

    def _words(self, document: Document) -> dict[str, Any]:
        made: dict[str, Any] = {"body": document.content} if "body" in self._columns else {}
        asked = self._columns & {"text", "markdown"}
        if asked and document.mime in TYPES:
            is_page = document.mime in HTML_TYPES
            if "markdown" in asked or not is_page:
                made["markdown"] = made["text"] = words_of(document, document.mime, self._pdf).markdown
            if "text" in asked and is_page:
                made["text"] = document.text
        return made
