"""Links of sitemaps (sitemaps.org, version 0.9): XML, plain text, either of them with gzip, and indexes of sitemaps.

Place in the flow: a processor for XML, for plain text and for gzip; what is no sitemap yields nothing. A sitemap speaks for
its own host alone, and an index leads no deeper than to another index: so an index of itself ends (fault 61).
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Annotated

from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.claims import said
from gossamer.model.errors import UnreadableUrl
from gossamer.model.url import canonical, host_of
from gossamer.model.visit import TOO_MANY_LINKS, Found
from gossamer.reading import charset, xml
from gossamer.reading.document import Document

#: Relation of a page that a sitemap lists.
LISTED = "sitemap loc"

#: Relations of sitemaps that an index lists, and an index that another one listed.
_INDEXED = ("sitemap index", "sitemap index index")

#: Relations by which a document that has no mark of its own, text or gzip, is known to be a sitemap. The first is that of
#: `Sitemap:` lines of robots.txt.
_SITEMAPS = frozenset({"sitemap", *_INDEXED})

#: Where a URL stands; some makers leave `loc` out.
_PLACES = frozenset({"loc", "sitemap", "url"})

#: What begins an entry.
_ENTRIES = frozenset({"url", "sitemap"})

_GZIP = frozenset({"application/gzip", "application/x-gzip"})
_GZIP_MAGIC = b"\x1f\x8b"

#: Types that say nothing of what is in a document.
_MARKLESS = _GZIP | {"text/plain"}


class SitemapSheet(Sheet, frozen=True):
    """Settings of :class:`SitemapLinks`: the limits of the standard."""

    max_urls: Annotated[int, setting("Follow at most this many URLs of a sitemap.", unit="URLs", ge=0, le=50_000)] = (
        50_000
    )
    max_bytes: Annotated[int, setting("Read at most this many unpacked bytes of a sitemap.", unit="bytes", ge=0)] = (
        50_000_000
    )


class SitemapLinks(Provider[SitemapSheet]):
    """Finds the URLs of a sitemap. Contract: `processing.Processor`. Keeps no state."""

    divisible = True

    def process(self, document: Document) -> Iterable[Found]:
        """The sitemap's URLs on its own host, up to the limit; nothing where the document is no sitemap."""
        relation = document.visit.task.relation
        name = document.url.partition("?")[0].rpartition("/")[2]
        is_named = relation in _SITEMAPS or "sitemap" in name.lower()
        content = document.content
        # Servers call a packed sitemap XML, too, and leave `Content-Encoding` out.
        packed = document.mime in _GZIP or content.startswith(_GZIP_MAGIC)
        if not is_named and document.mime in _MARKLESS:
            return
        content = _unpacked(content, self.sheet.max_bytes) if packed else content
        content = charset.to_utf8(content, charset.sniff(content, "" if packed else document.response.content_type))
        is_xml = content[:1000].lstrip().startswith(b"<")
        host, taken = host_of(document.url), 0
        for found in _xml_urls(content, relation) if is_xml else _text_urls(content):
            if not self._is_at_home(found.href, document.url, host):
                continue
            if taken >= self.sheet.max_urls:
                document.leave_out(TOO_MANY_LINKS, 1)
                continue
            taken += 1
            yield found

    def _is_at_home(self, href: str, base: str, host: str) -> bool:
        try:
            inside = host_of(canonical(href, base)) == host
        except UnreadableUrl:
            return False
        if not inside:
            self.metrics.count("off_host")
        return inside


class _Entry:
    """The entry that is being read: a place, and what is said of its changes, in any order."""

    def __init__(self, relation: str) -> None:
        self._relation = relation
        self._place = self._changed_at = self._frequency = ""

    def see(self, event: xml.XmlTag) -> Found | None:
        """One more element of the sitemap's own; the entry before it, where that is over."""
        over = None
        if event.name in _PLACES:
            if event.text or event.name in _ENTRIES:
                over = self.found()
            if event.name in _ENTRIES:
                self._changed_at = self._frequency = ""
            self._place = event.text or self._place
        elif event.name == "lastmod":
            self._changed_at = event.text
        elif event.name == "changefreq":
            self._frequency = event.text
        return over

    def found(self) -> Found | None:
        """The entry as it was read, once."""
        place, self._place = self._place, ""
        return Found(place, self._relation, said=said(self._changed_at, self._frequency)) if place else None


def _xml_urls(content: bytes, relation: str) -> Iterator[Found]:
    """What `urlset` or `sitemapindex` lists, each with what is said of its changes."""
    entry: _Entry | None = None
    prefix = ""
    for event in xml.events(content):
        if event.closing:
            continue
        if entry is not None:
            if event.prefix == prefix and (found := entry.see(event)) is not None:
                yield found
            continue
        if event.name not in ("urlset", "sitemapindex"):
            return
        prefix, found_as = event.prefix, LISTED
        if event.name == "sitemapindex":
            if relation == _INDEXED[1]:
                return
            found_as = _INDEXED[relation == _INDEXED[0]]  # one level further down
        entry = _Entry(found_as)
    if entry is not None and (found := entry.found()) is not None:
        yield found


def _text_urls(content: bytes) -> Iterator[Found]:
    """One URL a line; a line that is none says that this is no sitemap."""
    for line in content.decode("utf-8", "replace").splitlines():
        url = line.strip()
        if url and not url.startswith(("http://", "https://")):
            return
        if url:
            yield Found(url, LISTED)


def _unpacked(content: bytes, limit: int) -> bytes:
    """The beginning of what is packed, up to the limit; what cannot be unpacked ends it."""
    unpacking = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        return unpacking.decompress(content, limit)
    except zlib.error:
        return b""
