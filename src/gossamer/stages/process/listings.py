"""Listings as links: directories of ftp, menus of gopher, and lists of URLs (`text/uri-list`), which file directories are.

Beside :mod:`gossamer.stages.process.html`; the protocol modules of these schemes name the media types.
"""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote_from_bytes

from gossamer.flow.sheet import NoSettings
from gossamer.flow.unit import Provider
from gossamer.model.visit import Found
from gossamer.reading.document import Document

#: Lines of a listing that are read: more than there are links kept of one, whatever else stands between.
MOST_LINES = 100_000

#: A line as `ls -l` writes it: mode, links, owner, perhaps group, size, month, day, time or year, name.
_UNIX = re.compile(
    rb"(?P<kind>[-dl])[-rwxsStTlL]{9}\S?\s+\d+\s+\S+\s+(?:\S+\s+)?\d+\s+\S{3,9}\s+\d{1,2}\s+[\d:]{4,5}\s(?P<name>.+)\Z"
)
#: A line as `dir` of DOS writes it: date, time, size or `<DIR>`, name.
_DOS = re.compile(
    rb"\d\d-\d\d-\d\d(?:\d\d)?\s+\d\d:\d\d(?:[AP]M)?\s+(?:(?P<folder><DIR>)|\d+)\s+(?P<name>.+)\Z", re.IGNORECASE
)

#: Menu entries that are nothing to fetch: notes, errors, telnet sessions, other servers for the same.
_NO_DOCUMENT = frozenset(b"i3T82+")


def _lines(document: Document) -> Iterator[bytes]:
    for line in document.content.split(b"\n", MOST_LINES)[:MOST_LINES]:
        yield line.rstrip(b"\r")


class FtpListing(Provider[NoSettings]):
    """Finds links to the entries of an ftp directory. Contract: `processing.Processor`."""

    divisible = True

    def process(self, document: Document) -> Iterable[Found]:
        """Lines of the two forms that servers use; others are not guessed at."""
        for line in _lines(document):
            entry = _UNIX.match(line[:4096]) or _DOS.match(line[:4096])
            if entry is None:
                continue
            parts = entry.groupdict()
            name, folder = parts["name"], parts.get("folder") or parts.get("kind") == b"d"
            if parts.get("kind") == b"l":
                name = name.partition(b" -> ")[0]
            if name in (b".", b"..") or b"/" in name:
                continue
            # `./`: a name may look like a scheme.
            yield Found(
                f"./{quote_from_bytes(name)}{'/' if folder else ''}", "ftp entry", name.decode("utf-8", "replace")
            )


class GopherMenu(Provider[NoSettings]):
    """Finds links to the entries of a gopher menu (RFC 1436, 3.8). Contract: `processing.Processor`."""

    divisible = True

    def process(self, document: Document) -> Iterable[Found]:
        """Type and text, selector, host and port of each line, parted by tabs."""
        for line in _lines(document):
            if line == b".":
                return
            parts = line.split(b"\t")
            if len(parts) < 4 or not line or line[0] in _NO_DOCUMENT:
                continue
            text, selector, host, port = parts[:4]
            anchor = text[1:].decode("utf-8", "replace")
            if text[:1] == b"h" and selector.startswith((b"URL:", b"/URL:")):
                yield Found(selector.partition(b"URL:")[2].decode("latin-1"), "gopher entry", anchor)
            elif port.strip().isdigit():
                place = f"{host.decode('latin-1').strip()}:{port.decode('latin-1').strip()}"
                yield Found(f"gopher://{place}/{chr(line[0])}{quote_from_bytes(selector)}", "gopher entry", anchor)


class UriList(Provider[NoSettings]):
    """Finds the links of a list of URLs (RFC 2483, section 5). Contract: `processing.Processor`."""

    divisible = True

    def process(self, document: Document) -> Iterable[Found]:
        """Every line that is no comment."""
        for line in _lines(document):
            if line and not line.startswith(b"#"):
                yield Found(line.decode("utf-8", "replace"), "uri list")
