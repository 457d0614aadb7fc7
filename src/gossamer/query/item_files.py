"""Item files: the items that processors take out of pages, in a file beside the crawl.

Place in the flow: a consumer of the feed of `items` (:mod:`gossamer.storage.tables.feeds`). A note in the crawl directory says how
far the file is whole; bytes behind that, which a kill left, are cut off when it is opened again, and their rows come once more.
JSON lines and CSV grow while the crawl runs. Of the other forms the rows are kept beside the note, and the file is written when
the crawl stops. A small database beside the note has the keys of items that no two rows may share.
"""

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from gossamer.query.item_rows import ItemLayout, ItemValues, csv_text, fields_in, items_of, json_text, key_of
from gossamer.storage.tables.feeds import FeedBatch, FeedMark
from gossamer.storage.tables.places import ITEM_FILE_NOTES

# Keys are kept with the place in the file where their batch ends. Keys of a batch that a kill cut short lie behind the end
# that the note says, and are dropped.

#: Bytes of a key's digest: two different keys among a billion share one with a chance of 1 : 10^20.
_DIGEST = 16


class ItemKeys:
    """The keys of one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def drop_behind(self, end: int) -> None:
        """Forget the keys of batches that end behind this place of the file."""
        if self._path.exists():
            with closing(self._open()) as database, database:
                database.execute("DELETE FROM keys WHERE until > ?", (end,))

    def known(self, keys: Iterable[bytes]) -> set[bytes]:
        """Those of some keys that the file has."""
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
    """The path of the note of an item file."""
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

    Raises:
        OSError: the file cannot be made, or the note cannot be written.
    """
    path = note_path(directory, file)
    if path.exists():
        return
    if file.suffix in GROWING:
        with file.open("wb"):
            pass
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, ItemFileNote(str(file.absolute()), layout=layout, version=_VERSION))


def item_files(directory: Path) -> list["ItemFile"]:
    """The item files that follow the crawl in a directory."""
    notes = (_read(path) for path in sorted(directory.glob(f"{ITEM_FILE_NOTES}/*.json")))
    return [ItemFile(directory, Path(note.file)) for note in notes]


class ItemFile:
    """One file. Contracts: `feeding.FeedConsumer`, `feeding.FinishingConsumer`."""

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
        self._cut_back()

    def __repr__(self) -> str:
        return f"<ItemFile {self._file}>"

    @property
    def doubles(self) -> int:
        """Items that were left out, since an earlier one has their key."""
        return self._note.doubles

    def _cut_back(self) -> None:
        """Take off what stands behind the note; a file that was deleted or shortened is made again from its beginning."""
        size = self._rows.stat().st_size if self._rows.exists() else -1
        if size < self._note.end or self._note.version != _VERSION:
            self._keep(self._beginning(FeedMark()))
        if size > self._note.end:
            os.truncate(self._rows, self._note.end)
        self._keys.drop_behind(self._note.end)

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
        fields = self._note.fields
        if fields is None and items:
            fields = fields_in(items)
        data = self._text(items, fields or ()).encode("utf-8", "replace")
        end = self._note.end + len(data)
        with self._rows.open("r+b" if self._note.end else "w+b") as file:
            # What a failed write left is not whole: the note says where to go on. A file that was deleted is made again next time.
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

    def _text(self, items: list[ItemValues], fields: tuple[str, ...]) -> str:
        layout = self._note.layout
        if not self._grows:
            return "".join(msgspec.json.encode(item).decode() + "\n" for item in items)
        if self._file.suffix == ".csv":
            return csv_text(items, layout, fields, heading=bool(items) and not self._note.end)
        return json_text(items, layout)

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
        """The rows that are kept for the end."""
        if self._rows.exists():
            with self._rows.open("rb") as lines:
                for line in lines:
                    yield msgspec.json.decode(line, type=ItemValues)

    def _keep(self, note: ItemFileNote) -> None:
        _write(self._path, note)
        self._note = note


def _read(path: Path) -> ItemFileNote:
    return msgspec.json.decode(path.read_bytes(), type=ItemFileNote)


def _write(path: Path, note: ItemFileNote) -> None:
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as file:
        file.write(msgspec.json.encode(note))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
