"""WACZ 1.1.1: archive, index and page list of a crawl in one ZIP file that replays in a browser.

https://specs.webrecorder.net/wacz/1.1.1/ . WARC files and the compressed index are stored as they are, so that a player
reads single records of a remote file; each is copied up to the last record that the index knows, since a crawl that still
runs may be in the middle of the next. Memory holds a block of the index at most.
"""

import datetime
import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from gossamer._version import __version__
from gossamer.engine.files import in_place_of, pieces_of
from gossamer.query.database import Database
from gossamer.query.printing import json_lines
from gossamer.storage.archive.cdxj import IndexEntry, instant_of, read_line
from gossamer.storage.archive.reading import Gap, gaps, opened
from gossamer.storage.archive.warc import WARC_DIRECTORY
from gossamer.storage.recovery import in_store
from gossamer.values.errors import CrawlDirectoryError

VERSION = "1.1.1"

#: Lines of the index in one compressed block: what a player loads to find one capture (as cdxj-indexer).
BLOCK_LINES = 3_000

#: HTML pages that can be shown, seeds first.
_PAGES = """
SELECT url, title, fetched_at AS ts, depth FROM pages
WHERE outcome IN ('ok', 'truncated') AND mime IN ('text/html', 'application/xhtml+xml')
      AND warc_file IS NOT NULL AND NOT noarchive AND kept_out IS NULL
ORDER BY depth, fetched_at
"""


class Wacz:
    def __init__(self, made: zipfile.ZipFile) -> None:
        self._zip = made
        self._resources: list[dict[str, Any]] = []
        self._date = datetime.datetime.now(datetime.UTC)

    def add(self, name: str, pieces: Iterable[bytes], *, packed: bool = False) -> None:
        """A file of the package; `packed`: compress it, which what is read in part must not be."""
        info = zipfile.ZipInfo(name, self._date.timetuple()[:6])
        info.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
        digest, size = hashlib.sha256(), 0
        with self._zip.open(info, "w", force_zip64=True) as out:
            for piece in pieces:
                out.write(piece)
                digest.update(piece)
                size += len(piece)
        told = {"name": Path(name).name.lower(), "path": name, "hash": f"sha256:{digest.hexdigest()}", "bytes": size}
        self._resources.append(told)

    def describe(self, **told: str) -> None:
        """Write the package's description, and the digest of that."""
        package = {
            "profile": "data-package",
            "wacz_version": VERSION,
            "created": self._date.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "software": f"Gossamer/{__version__}",
            **{name: value for name, value in told.items() if value},
            "resources": list(self._resources),
        }
        text = json.dumps(package, indent=2).encode()
        self.add("datapackage.json", [text], packed=True)
        digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(text).hexdigest()}"}
        self.add("datapackage-digest.json", [json.dumps(digest, indent=2).encode()], packed=True)


def write_wacz(directory: Path, database: Database, index: Path, target: Path) -> None:
    """Write the crawl in `directory` to `target`, whole or not at all.
    Raises CrawlDirectoryError: a record cannot be read; names file and URLs, and writes nothing."""
    ends: dict[str, int] = {}  # WARC file -> the end of the last record that the index knows in it
    for entry in _entries(index):
        ends[entry.filename] = max(ends.get(entry.filename, 0), int(entry.offset) + int(entry.length))
    _check_archive(directory, index, ends)
    with in_place_of(target) as fresh, zipfile.ZipFile(fresh, "w", allowZip64=True) as made:
        wacz = Wacz(made)
        for name, end in sorted(ends.items()):
            with opened(directory / WARC_DIRECTORY / name) as file:
                wacz.add(f"archive/{name}", pieces_of(file, end))
        blocks: list[str] = []
        with index.open("rb") as lines:
            wacz.add("indexes/index.cdx.gz", _blocks(lines, blocks))
        wacz.add("indexes/index.idx", (line.encode() for line in blocks), packed=True)
        wacz.add("pages/pages.jsonl", _page_list(database, seeds=True), packed=True)
        wacz.add("pages/extraPages.jsonl", _page_list(database, seeds=False), packed=True)
        first = next(iter(database.ask(f"{_PAGES} LIMIT 1")), None)
        main = {"mainPageUrl": first[0], "mainPageDate": first[2].isoformat(timespec="seconds") + "Z"} if first else {}
        wacz.describe(title=f"Crawl {directory.resolve().name}", **main)


#: Damaged records that are named.
_NAMED = 5


def _check_archive(directory: Path, index: Path, ends: Mapping[str, int]) -> None:
    holes: dict[str, list[Gap]] = {}
    for name, end in ends.items():
        path = directory / WARC_DIRECTORY / name
        try:
            found = gaps(path, end)
            size = far.size if (far := in_store(path)) else path.stat().st_size
        except FileNotFoundError:
            found, size = [], 0
        if size < end:
            found.append(Gap(size, end - size))
        if found:
            holes[name] = found
    if not holes:
        return
    urls = []
    for entry in _entries(index):
        start, end = int(entry.offset), int(entry.offset) + int(entry.length)
        if any(start < gap.end and gap.offset < end for gap in holes.get(entry.filename, ())):
            urls.append(entry.url)
    told = ", ".join(urls[:_NAMED]) + (f" and {len(urls) - _NAMED} more" if len(urls) > _NAMED else "")
    files = ", ".join(f"{WARC_DIRECTORY}/{name} at byte {found[0].offset}" for name, found in sorted(holes.items()))
    raise CrawlDirectoryError(
        f"the archive is damaged: {files}"
        + (f", where it has {told}" if told else "")
        + "; bring it back from a copy, or "
        f"fetch the lost documents again: gossamer resume {directory} --accept-loss"
    )


def _entries(index: Path) -> Iterator[IndexEntry]:
    with index.open("rb") as lines:
        for line in lines:
            yield read_line(line).entry


def _blocks(lines: Iterable[bytes], directory: list[str]) -> Iterator[bytes]:
    """The index as gzip members of some lines each; the index by which a player finds them goes into `directory`."""
    directory.append('!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}\n')
    offset, rest = 0, iter(lines)
    while block := list(islice(rest, BLOCK_LINES)):
        packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
        packed = packer.compress(b"".join(block)) + packer.flush()
        place = {"offset": offset, "length": len(packed), "digest": f"sha256:{hashlib.sha256(packed).hexdigest()}"}
        key = instant_of(block[0]).decode().rstrip()
        directory.append(f"{key} {json.dumps(place)}\n")
        offset += len(packed)
        yield packed


def _page_list(database: Database, *, seeds: bool) -> Iterator[bytes]:
    """`pages.jsonl` has the seeds, `extraPages.jsonl` the rest, as Browsertrix does: players show the first at once."""
    name, title = ("pages", "Seeds") if seeds else ("extra-pages", "Other pages")
    yield json.dumps({"format": "json-pages-1.0", "id": name, "title": title, "hasText": False}).encode() + b"\n"
    # Validators read this as a table with the columns of its first line: a page without a title would be a blank row.
    answer = database.ask(
        "SELECT url, strftime(ts, '%Y-%m-%dT%H:%M:%SZ') AS ts, coalesce(nullif(title, ''), url) AS title "
        f"FROM ({_PAGES}) WHERE (depth = 0) = {seeds}"
    )
    for line in json_lines(answer.columns, answer):
        yield line.encode()
