"""Item files: the items that processors take out of pages, in a file beside the crawl.

Place in the flow: a consumer of the feed of `items` (:mod:`gossamer.storage.tables.contract`). A note in the crawl directory says
how far the file is whole; bytes behind that, which a kill left, are cut off when it is opened again, and their rows come once more.
JSON lines and CSV grow while the crawl runs. Of the other forms the rows are kept beside the note, and the file is written when
the crawl stops. A small database beside the note has the keys of items that no two rows may share.

An item is its fields; three more values say where it comes from. :mod:`gossamer.query.item_tables` writes Parquet and
spreadsheets by the same columns.
"""

import dataclasses
import hashlib
import io
import os
import sqlite3
import typing
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from gossamer.engine.files import replace_file
from gossamer.query.printing import csv_cell, csv_line, json_line
from gossamer.storage.tables.contract import FeedBatch, FeedMark
from gossamer.storage.tables.places import ITEM_FILE_NOTES
from gossamer.values.errors import UsageError

#: Columns of every row beside the item's fields, and their names where the item has a field of that name.
ORIGIN = {"kind": "item_kind", "url": "page_url", "visit": "item_visit"}

#: The last column of a file whose columns are settled: as JSON, the fields that no other column holds.
_REST, _REST_ELSE = "more", "more_fields"

#: The field of an item that has none, such as a number.
VALUE = "value"

#: Columns that a file has at most: the names come from pages.
MOST_COLUMNS = 200

#: Characters of a column's name, at most. Longer ones are no fields that an author meant.
_LONGEST_NAME = 200


class ItemLayout(msgspec.Struct, frozen=True):
    """The items and fields that are written. It belongs to the file, and stays as it is when a crawl goes on."""

    kind: str = ""
    """Only items of this kind; empty for all."""
    columns: tuple[str, ...] = ()
    """Only these fields, in this order; empty for all."""
    key: tuple[str, ...] = ()
    """Fields that no two items of a kind share; empty where they may."""
    is_raw: bool = False
    """Leave cells as they are that a spreadsheet takes for a formula."""


class ItemValues(msgspec.Struct, frozen=True, array_like=True):
    """One row of the table `items`."""

    kind: str
    url: str
    visit: str
    data: Any

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the item; a value that has none is a field itself."""
        if isinstance(self.data, dict):
            return self.data
        return {} if self.data is None else {VALUE: self.data}

    @property
    def origin(self) -> tuple[str, str, str]:
        """Kind, URL and visit, in the order of :data:`ORIGIN`."""
        return (self.kind, self.url, self.visit)


def items_of(columns: Sequence[str], rows: Iterable[Sequence[Any]], layout: ItemLayout) -> list[ItemValues]:
    at = {name: number for number, name in enumerate(columns)}
    found = []
    for row in rows:
        kind, data = row[at["kind"]], row[at["data"]]
        if layout.kind in ("", kind):
            value = None if data is None else msgspec.json.decode(data)
            found.append(ItemValues(kind, row[at["url"]], row[at["visit"]], value))
    return found


def fields_in(items: Iterable[ItemValues]) -> tuple[str, ...]:
    """The names of the items' fields as they are met, no more than :data:`MOST_COLUMNS`."""
    found = dict[str, None]()
    for item in items:
        if len(found) >= MOST_COLUMNS:
            break
        found |= dict.fromkeys(name for name in item.fields if 0 < len(name) <= _LONGEST_NAME and name.isprintable())
    return tuple(found)[:MOST_COLUMNS]


def headings(layout: ItemLayout, fields: Sequence[str]) -> tuple[str, ...]:
    if layout.columns:
        return layout.columns
    rest = _REST_ELSE if _REST in fields else _REST
    return (*fields, *(other if name in fields else name for name, other in ORIGIN.items()), rest)


def cells(item: ItemValues, layout: ItemLayout, fields: Sequence[str]) -> list[Any]:
    """The values of a row under :func:`headings`; values without a column are an object in the last."""
    if layout.columns:
        known = _named(item)
        return [known.get(name) for name in layout.columns]
    held = item.fields
    rest = {name: value for name, value in held.items() if name not in fields}
    return [*(held.get(name) for name in fields), *item.origin, rest or None]


def _named(item: ItemValues) -> dict[str, Any]:
    """The item as one object: its fields, and behind them where it comes from."""
    held = item.fields
    origin = zip(ORIGIN.items(), item.origin, strict=True)
    return held | {other if name in held else name: value for (name, other), value in origin}


def as_object(item: ItemValues, layout: ItemLayout) -> dict[str, Any]:
    known = _named(item)
    return {name: known.get(name) for name in layout.columns} if layout.columns else known


def key_of(item: ItemValues, layout: ItemLayout) -> bytes | None:
    """The key that no two items of a file share; None for an item that lacks one of its fields, and for a file without a key."""
    if not layout.key:
        return None
    known = _named(item)
    if any(known.get(name) is None for name in layout.key):
        return None
    return msgspec.json.encode([item.kind, *(known[name] for name in layout.key)], order="deterministic")


def csv_text(items: Iterable[ItemValues], layout: ItemLayout, fields: Sequence[str], *, heading: bool) -> str:
    """Lines of CSV (RFC 4180), with the names of the columns in front where the file begins."""
    out = io.StringIO()
    raw = layout.is_raw
    if heading:
        out.write(csv_line([csv_cell(name, raw) for name in headings(layout, fields)]))
    for item in items:
        out.write(csv_line([csv_cell(plain(cell), raw) for cell in cells(item, layout, fields)]))
    return out.getvalue()


def plain(value: Any) -> Any:
    """The value of one cell: lists and objects as JSON."""
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else value


def columns_of(kind: Any) -> tuple[str, ...]:
    """The names of the fields of a type: a dataclass, a msgspec or attrs class, a pydantic model, a TypedDict.
    Raises UsageError: it is a type without declared fields."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return tuple(field.encode_name for field in msgspec.structs.fields(kind))
    for attribute in ("model_fields", "__attrs_attrs__"):
        found = getattr(kind, attribute, None)
        if found:
            return tuple(found) if isinstance(found, dict) else tuple(field.name for field in found)
    if typing.is_typeddict(kind) or (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return tuple(typing.get_type_hints(kind))
    name = getattr(kind, "__name__", repr(kind))
    raise UsageError(f"item_columns: {name} declares no fields; give a dataclass, or a list of names")


# Keys are kept with the place in the file where their batch ends. Keys of a batch that a kill cut short lie behind the end
# that the note says, and are dropped.

#: Bytes of a key's digest: two different keys among a billion share one with a chance of 1 : 10^20.
_DIGEST = 16


class ItemKeys:
    def __init__(self, path: Path) -> None:
        self._path = path

    def drop_behind(self, end: int) -> None:
        if self._path.exists():
            with closing(self._open()) as database, database:
                database.execute("DELETE FROM keys WHERE until > ?", (end,))

    def known(self, keys: Iterable[bytes]) -> set[bytes]:
        with closing(self._open()) as database:
            sql = "SELECT 1 FROM keys WHERE digest = ?"
            return {key for key in keys if database.execute(sql, (_digest(key),)).fetchone() is not None}

    def add(self, keys: Iterable[bytes], end: int) -> None:
        """Keep the keys of a batch after which the file ends here: all of them, or none where the process is killed."""
        with closing(self._open()) as database, database:
            database.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?)", ((_digest(key), end) for key in keys))

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path)
        database.execute("CREATE TABLE IF NOT EXISTS keys (digest BLOB PRIMARY KEY, until INTEGER) WITHOUT ROWID")
        return database


def _digest(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=_DIGEST).digest()


#: How files end that grow.
GROWING = (".jsonl", ".csv")

#: The way in which rows are written. A file that was written in another is made again from its beginning.
_VERSION = 1


class ItemFileNote(msgspec.Struct, frozen=True):
    """How far an item file is whole."""

    file: str
    """Absolute path of the file."""
    end: int = 0
    """Bytes of its rows up to the mark: in the file itself where it grows."""
    mark: FeedMark = FeedMark()
    fields: tuple[str, ...] | None = None
    """Names of the items' fields that are columns of a CSV file; None before its first row."""
    layout: ItemLayout = ItemLayout()
    """The items and fields that are written."""
    doubles: int = 0
    """Items that were left out, since an earlier one has their key."""
    version: int = 0
    """How the rows are written."""


def note_path(directory: Path, file: Path) -> Path:
    name = hashlib.sha256(str(file.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return directory / ITEM_FILE_NOTES / f"{name}.json"


def known_layout(directory: Path, file: Path) -> ItemLayout | None:
    """The layout of a file that the crawl writes; None where it does not write to it."""
    try:
        return _read(note_path(directory, file)).layout
    except FileNotFoundError:
        return None


def register(directory: Path, file: Path, layout: ItemLayout) -> None:
    """Let an item file follow the crawl from now on; does nothing where it does.
    Raises OSError: the file cannot be made, or the note cannot be written."""
    path = note_path(directory, file)
    if path.exists():
        return
    if file.suffix in GROWING:
        with file.open("wb"):
            pass
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(
        path, msgspec.json.encode(ItemFileNote(str(file.absolute()), layout=layout, version=_VERSION)), sync=True
    )


def item_files(directory: Path) -> list["ItemFile"]:
    notes = (_read(path) for path in sorted(directory.glob(f"{ITEM_FILE_NOTES}/*.json")))
    return [ItemFile(directory, Path(note.file)) for note in notes]


class ItemFile:
    """One file. Contracts: `storage.tables.feeds.FeedConsumer`, `storage.tables.feeds.FinishingConsumer`."""

    table = "items"
    columns: tuple[str, ...] = ("kind", "url", "data", "visit")
    rows_at_once = 1_000

    def __init__(self, directory: Path, file: Path, layout: ItemLayout | None = None) -> None:
        self._path = note_path(directory, file)
        self._file = file
        self._grows = file.suffix in GROWING
        self._rows = file if self._grows else self._path.with_suffix(".rows")
        self._keys = ItemKeys(self._path.with_suffix(".keys"))
        try:
            self._note = _read(self._path)
        except FileNotFoundError:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._note = ItemFileNote(str(file.absolute()), layout=layout or ItemLayout(), version=_VERSION)
        # Bytes behind the end in the note are taken off; a file that was deleted or shortened is made again from its beginning.
        size = self._rows.stat().st_size if self._rows.exists() else -1
        if size < self._note.end or self._note.version != _VERSION:
            self._keep(self._beginning(FeedMark()))
        if size > self._note.end:
            os.truncate(self._rows, self._note.end)
        self._keys.drop_behind(self._note.end)

    def __repr__(self) -> str:
        return f"<ItemFile {self._file}>"

    def _beginning(self, mark: FeedMark) -> ItemFileNote:
        return ItemFileNote(self._note.file, mark=mark, layout=self._note.layout, version=_VERSION)

    def mark(self) -> FeedMark:
        return self._note.mark

    def rebuild(self, generation: int) -> None:
        self._keep(self._beginning(FeedMark(generation)))
        if self._rows.exists():
            os.truncate(self._rows, 0)
        self._keys.drop_behind(0)

    def take(self, batch: FeedBatch) -> None:
        found = items_of(batch.columns, batch.rows, self._note.layout)
        items, keys = self._without_doubles(found)
        fields, layout = self._note.fields, self._note.layout
        if fields is None and items:
            fields = fields_in(items)
        if not self._grows:
            text = "".join(msgspec.json.encode(item).decode() + "\n" for item in items)
        elif self._file.suffix == ".csv":
            text = csv_text(items, layout, fields or (), heading=bool(items) and not self._note.end)
        else:
            text = "".join(json_line(as_object(item, layout)) for item in items)
        data = text.encode("utf-8", "replace")
        end = self._note.end + len(data)
        with self._rows.open("r+b" if self._note.end else "w+b") as file:
            # A failed write leaves broken rows: the note says where to go on. A file that was deleted is made again next time.
            file.truncate(self._note.end)
            file.seek(self._note.end)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if keys:
            self._keys.add(keys, end)
        doubles = self._note.doubles + len(found) - len(items)
        self._keep(msgspec.structs.replace(self._note, end=end, mark=batch.mark, fields=fields, doubles=doubles))

    def _without_doubles(self, items: list[ItemValues]) -> tuple[list[ItemValues], list[bytes]]:
        """The items whose keys no earlier one has, and these keys."""
        layout = self._note.layout
        if not layout.key:
            return items, []
        keyed = [(item, key_of(item, layout)) for item in items]
        taken = self._keys.known(key for _, key in keyed if key is not None)
        left, new = [], []
        for item, key in keyed:
            if key in taken:
                continue
            left.append(item)
            if key is not None:
                taken.add(key)
                new.append(key)
        return left, new

    def finish(self) -> list[str]:
        told = []
        if self._note.doubles:
            key = ", ".join(self._note.layout.key)
            told.append(f"{self._note.doubles} items were left out, since an earlier one has the same {key}")
        if not self._grows:
            from gossamer.query.item_tables import write_whole  # the spreadsheet's library takes a while

            told += write_whole(self._file, self._kept, self._note.layout)
        return [f"{self._file}: {line}" for line in told]

    def _kept(self) -> Iterator[ItemValues]:
        if self._rows.exists():
            with self._rows.open("rb") as lines:
                for line in lines:
                    yield msgspec.json.decode(line, type=ItemValues)

    def _keep(self, note: ItemFileNote) -> None:
        replace_file(self._path, msgspec.json.encode(note), sync=True)
        self._note = note


def _read(path: Path) -> ItemFileNote:
    return msgspec.json.decode(path.read_bytes(), type=ItemFileNote)
