"""Archives of other programs: where the record of each URL lies, and the answer that it holds.

Place in the flow: the replay server asks :func:`stored` with the URL of a request. One pass over the files makes the index,
which the next start finds again. Files of gigabytes hold millions of records, so the index is a database (SQLite) in the user's
cache, named after the files and their sizes and times: memory does not follow it.

An answer is status line, header fields and body. Fields that speak of one connection are left out, and the length is that of
the body as it is stored; everything else goes out as it came, content coding included.
"""

import contextlib
import hashlib
import io
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

from gossamer.engine.errors import refusing
from gossamer.engine.files import user_folder
from gossamer.values.errors import UnreadableUrl
from gossamer.values.url import canonical

LAYOUT: Final = 1
"""Part of the name of an index: one of another layout is made anew."""

BATCH: Final = 5_000
"""Records noted in one transaction."""

SERVED: Final = ("response", "resource", "revisit")
"""Kinds of records that are answers."""

_TABLES: Final = """
CREATE TABLE records (url TEXT PRIMARY KEY, file INTEGER, offset INTEGER, date TEXT, revisit TEXT) WITHOUT ROWID;
CREATE TABLE timings (url TEXT PRIMARY KEY, seconds REAL) WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;
"""


class ReplayError(ValueError):
    """A file cannot be served: said in one line, with its name."""


class RecordPlace(NamedTuple):
    """The place of a record."""

    file: Path
    offset: int
    revisit: str
    """Empty, or the URL whose record has the body."""


class ReplayIndex:
    """Knows the last record of each URL. Use as a context manager."""

    def __init__(self, files: Sequence[Path], cache: Path | None = None) -> None:
        """Check WARC or ARC files, compressed by record or not at all; nothing is read yet. The index lies in `cache`, or where
        that of the user is. Raises ReplayError: there is no file, or one cannot be read."""
        if not files:
            raise ReplayError("name at least one WARC file to serve")
        self.files = tuple(files)
        digest = hashlib.sha256(str(LAYOUT).encode())  # the name of the index changes with the files
        for path in files:
            with refusing(ReplayError, f"{path} cannot be read"):
                found = path.stat()
            digest.update(msgspec.json.encode([str(path.resolve()), found.st_size, found.st_mtime_ns]))
        self.path = (cache or user_folder("cache") / "replay") / f"{digest.hexdigest()[:32]}.replay"
        self.unreadable = 0
        """Records without a URL that can be asked for."""
        self._database: sqlite3.Connection

    def __enter__(self) -> "ReplayIndex":
        if not self.path.exists():  # every file is read once; the index has its name only when it is whole
            self.path.parent.mkdir(parents=True, exist_ok=True)
            half = self.path.with_name(f"{self.path.name}.{os.getpid()}")
            half.unlink(missing_ok=True)
            try:
                with contextlib.closing(sqlite3.connect(half)) as database:
                    database.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + _TABLES)
                    unreadable = sum(_noted(database, number, path) for number, path in enumerate(self.files))
                    [urls] = database.execute("SELECT count(*) FROM records").fetchone()
                    facts = [("urls", urls), ("unreadable", unreadable)]
                    database.executemany("INSERT INTO facts VALUES (?, ?)", facts)
                    database.commit()
                half.replace(self.path)
            finally:
                half.unlink(missing_ok=True)
        self._database = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        self.unreadable = self._fact("unreadable")
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def __len__(self) -> int:
        return self._fact("urls")

    def place(self, url: str) -> RecordPlace | None:
        row = self._asked("SELECT file, offset, revisit FROM records WHERE url = ?", url)
        return None if row is None else RecordPlace(self.files[row[0]], row[1], row[2])

    def seconds(self, url: str) -> float:
        row = self._asked("SELECT seconds FROM timings WHERE url = ?", url)
        return 0.0 if row is None else float(row[0])

    def first_urls(self, count: int) -> list[str]:
        """Some URLs of hosts in the index, home pages first: where a crawl may begin."""
        rows = self._database.execute(
            "SELECT url FROM records WHERE url LIKE 'http%' ORDER BY length(url), url LIMIT ?", (count,)
        )
        return [url for (url,) in rows]

    def _asked(self, question: str, name: str) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._database.execute(question, (name,)).fetchone()
        return found

    def _fact(self, name: str) -> int:
        row = self._asked("SELECT value FROM facts WHERE name = ?", name)
        return 0 if row is None else int(row[0])


def _noted(database: sqlite3.Connection, number: int, path: Path) -> int:
    """Note the records of one file; returns how many have no URL that can be asked for. Raises ReplayError: it is no archive, or
    is compressed as a whole."""
    rows: list[tuple[str, int, int, str, str]] = []
    timings: list[tuple[str, float]] = []
    unreadable = 0

    def write() -> None:
        # The record of the last date stays: a crawl that came again is served as it was then.
        database.executemany(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?) ON CONFLICT(url) DO UPDATE SET file = excluded.file, "
            "offset = excluded.offset, date = excluded.date, revisit = excluded.revisit WHERE excluded.date >= date",
            rows,
        )
        database.executemany("INSERT OR REPLACE INTO timings VALUES (?, ?)", timings)
        database.commit()
        rows.clear()
        timings.clear()

    for record, offset_of in records_of(path):
        field = record.rec_headers.get_header
        try:
            url = canonical(field("WARC-Target-URI") or "")
        except UnreadableUrl:
            unreadable += record.rec_type in SERVED
            continue
        if record.rec_type == "metadata":
            if seconds := _seconds(record.raw_stream.read(65_536)):
                timings.append((url, seconds))
            continue
        again = field("WARC-Refers-To-Target-URI") or ""
        revisit = "" if record.rec_type != "revisit" else canonical(again) if urlsplit(again).scheme else url
        # A revisit of the same URL leaves the record in place that has the body.
        if not (record.rec_type == "revisit" and revisit == url):
            rows.append((url, number, offset_of(), field("WARC-Date") or "", revisit))
        if len(rows) >= BATCH:
            write()
    write()
    return unreadable


def records_of(path: Path) -> Iterator[tuple[Any, Callable[[], int]]]:
    """The records of a file that matter here, each with a function that tells its offset and ends reading it. Raises ReplayError:
    it is no archive, or is compressed as a whole."""
    # The reader tells a terminal of what it forgives; here only what cannot be served counts.
    with path.open("rb") as file, contextlib.redirect_stderr(io.StringIO()):
        records = ArchiveIterator(file, arc2warc=True)
        try:
            for record in records:
                if record.rec_type in (*SERVED, "metadata"):
                    yield record, records.get_record_offset
        except ArchiveLoadFailed as error:
            reason = " ".join(str(error).split())[:160]
            raise ReplayError(f"{path} cannot be served: {reason}") from None


def _seconds(block: bytes) -> float:
    """The time of a fetch in a metadata record, as Heritrix and Gossamer note it."""
    for line in block.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower() == "fetchtimems" and value.strip().isdecimal():
            return min(int(value), 3_600_000) / 1000
    return 0.0


MOST: Final = 1 << 30
"""Bytes of a body that are served; a larger one is cut."""

HOPS: Final = 3
"""Revisits of revisits that are followed to a body."""

_OF_A_CONNECTION: Final = frozenset(
    ("connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
)


class Stored(NamedTuple):
    """An answer as it was recorded."""

    status: bytes
    """Code and reason, as `200 OK`."""
    fields: list[tuple[bytes, bytes]]
    body: bytes
    seconds: float
    """The time that it took when it was recorded."""


def stored(index: ReplayIndex, url: str, most: int = MOST) -> Stored | None:
    """The recorded answer to a canonical URL, with at most this many bytes of its body; None where there is none, or its record
    cannot be read."""
    place = index.place(url)
    answer = None if place is None else _read(place, most)
    if place is None or answer is None:
        return None
    hops, whole = 0, place
    while whole.revisit and hops < HOPS:
        original = index.place(whole.revisit)
        if original is None:
            return None
        whole, hops = original, hops + 1
    origin = answer if whole is place else _read(whole, most)
    return None if origin is None else answer._replace(body=origin.body, seconds=index.seconds(url))


def _read(place: RecordPlace, most: int) -> Stored | None:
    with place.file.open("rb") as file, contextlib.redirect_stderr(io.StringIO()):
        file.seek(place.offset)
        try:
            record = next(iter(ArchiveIterator(file, arc2warc=True)), None)
            if record is None:
                return None
            body = record.raw_stream.read(most)
        except (ArchiveLoadFailed, OSError):
            return None
    if record.http_headers is None:
        kind = (record.rec_headers.get_header("Content-Type") or "application/octet-stream").encode(
            "latin-1", "replace"
        )
        return Stored(b"200 OK", [(b"Content-Type", kind)], body, 0.0)
    fields = [(name.strip(), value.strip()) for name, value in record.http_headers.headers]
    if any(name.lower() == "transfer-encoding" and "chunked" in value.lower() for name, value in fields):
        body = _without_chunks(body)
    kept = [
        (name.encode("latin-1", "replace"), value.encode("latin-1", "replace").replace(b"\r", b"").replace(b"\n", b" "))
        for name, value in fields
        if name.lower() not in _OF_A_CONNECTION
    ]
    status = record.http_headers.statusline.encode("latin-1", "replace")
    return Stored(status if status[:3].isdigit() else b"200 OK", kept, body, 0.0)


def _without_chunks(body: bytes) -> bytes:
    """A chunked body put together; one that is not in chunks after all, as it is (some archives take them out)."""
    found: list[bytes] = []
    at = 0
    while True:
        end = body.find(b"\r\n", at, at + 32)
        size = body[at:end].split(b";")[0].strip() if end >= 0 else b""
        try:
            length = int(size, 16)
        except ValueError:
            return b"".join(found) if found else body
        if length <= 0:
            return b"".join(found)
        found.append(body[end + 2 : end + 2 + length])
        at = end + 2 + length + 2
