"""Item files: what processors take out of pages, in one file of JSON lines or CSV that grows while the crawl runs.

Place in the flow: a consumer of the feed of `items` (:mod:`gossamer.contracts.feeding`). Beside the crawl lies a note of
how far the file is whole; what a kill leaves behind that is cut off when the file is opened again, and its rows come once
more.
"""

import csv
import hashlib
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.contracts.feeding import FeedBatch, FeedMark
from gossamer.query.places import ITEM_FILE_NOTES
from gossamer.query.printing import csv_cell, json_lines

#: The columns that every CSV file begins with.
_FIXED = ("kind", "url", "visit")

#: The last column of a CSV file: as JSON, what no other column holds.
_REST = "more"

#: Columns that a CSV file has at most: the names come from pages.
_MOST_COLUMNS = 200


class ItemFileNote(msgspec.Struct, frozen=True):
    """How far an item file is whole."""

    file: str
    """Absolute path of the file."""
    end: int = 0
    """Bytes of the file that hold the rows up to the mark."""
    mark: FeedMark = FeedMark()
    fields: tuple[str, ...] | None = None
    """Names of the items' fields that are columns of a CSV file; None before its first row."""


def note_path(directory: Path, file: Path) -> Path:
    """Where the note of an item file lies."""
    name = hashlib.sha256(str(file.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return directory / ITEM_FILE_NOTES / f"{name}.json"


def register(directory: Path, file: Path) -> None:
    """Let an item file follow the crawl from now on; does nothing where it does.

    Raises:
        OSError: the file cannot be made, or the note cannot be written.
    """
    path = note_path(directory, file)
    if path.exists():
        return
    with file.open("wb"):
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, ItemFileNote(str(file.absolute())))


def item_files(directory: Path) -> list["ItemFile"]:
    """The item files that follow the crawl in a directory."""
    notes = (
        msgspec.json.decode(path.read_bytes(), type=ItemFileNote)
        for path in sorted(directory.glob(f"{ITEM_FILE_NOTES}/*.json"))
    )
    return [ItemFile(directory, Path(note.file)) for note in notes]


class ItemFile:
    """One file. Contract: `feeding.FeedConsumer`."""

    table = "items"
    columns: tuple[str, ...] = (*_FIXED, "data")
    rows_at_once = 1_000

    def __init__(self, directory: Path, file: Path) -> None:
        self._path = note_path(directory, file)
        self._file = file
        try:
            self._note = msgspec.json.decode(self._path.read_bytes(), type=ItemFileNote)
        except FileNotFoundError:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._note = ItemFileNote(str(file.absolute()))
        self._cut_back()

    def __repr__(self) -> str:
        return f"<ItemFile {self._file}>"

    def _cut_back(self) -> None:
        """Take off what stands behind the note; a file that was deleted or shortened is made again from its beginning."""
        size = self._file.stat().st_size if self._file.exists() else -1
        if size < self._note.end:
            self._keep(ItemFileNote(self._note.file))
        if size > self._note.end:
            os.truncate(self._file, self._note.end)

    def mark(self) -> FeedMark:
        """See the contract."""
        return self._note.mark

    def rebuild(self, generation: int) -> None:
        """See the contract."""
        self._keep(ItemFileNote(self._note.file, mark=FeedMark(generation)))
        if self._file.exists():
            os.truncate(self._file, 0)

    def take(self, batch: FeedBatch) -> None:
        """See the contract."""
        text, fields = self._text(batch)
        data = text.encode("utf-8", "replace")
        with self._file.open("r+b" if self._note.end else "w+b") as file:
            # What a failed write left is not whole: the note says where to go on. A file that was deleted is made again next time.
            file.truncate(self._note.end)
            file.seek(self._note.end)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self._keep(ItemFileNote(self._note.file, self._note.end + len(data), batch.mark, fields))

    def _keep(self, note: ItemFileNote) -> None:
        _write(self._path, note)
        self._note = note

    def _text(self, batch: FeedBatch) -> tuple[str, tuple[str, ...] | None]:
        """The lines of some rows, and the fields that are columns from now on."""
        rows = [dict(zip(batch.columns, row, strict=True)) for row in batch.rows]
        for row in rows:
            row["data"] = None if row["data"] is None else msgspec.json.decode(row["data"])
        if self._file.suffix != ".csv":
            names = (*_FIXED, "data")
            return "".join(json_lines(names, ([row[name] for name in names] for row in rows))), None
        fields, heading = self._note.fields, not self._note.end
        if fields is None:
            first = rows[0]["data"]
            fields = tuple(first)[:_MOST_COLUMNS] if isinstance(first, dict) else ()
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        if heading:
            writer.writerow([csv_cell(name) for name in (*_FIXED, *(_heading(name) for name in fields), _REST)])
        writer.writerows(_csv_rows(rows, fields))
        return out.getvalue(), fields


def _heading(field: str) -> str:
    """A field of an item that is called as one of the other columns says so."""
    return f"data.{field}" if field in {*_FIXED, _REST} else field


def _csv_rows(rows: Iterable[dict[str, Any]], fields: Sequence[str]) -> Iterable[list[str]]:
    for row in rows:
        data = row["data"]
        known = data if isinstance(data, dict) else {}
        rest = {name: value for name, value in known.items() if name not in fields} if known else data
        cells = [*(row[name] for name in _FIXED), *(known.get(name) for name in fields), rest or None]
        yield [csv_cell(_plain(cell)) for cell in cells]


def _plain(value: object) -> object:
    """What stands in one cell: lists and objects as JSON."""
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else value


def _write(path: Path, note: ItemFileNote) -> None:
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as file:
        file.write(msgspec.json.encode(note))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
