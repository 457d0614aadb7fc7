"""Links of sitemaps (sitemaps.org, version 0.9): XML, plain text, either of them with gzip, and indexes of sitemaps.

Place in the flow: a processor for XML, for plain text and for gzip; what is no sitemap yields nothing. A sitemap speaks for
its own host, and where the robots.txt of another host names it, for that host, too. An index leads no deeper than to another
index: so an index of itself ends (fault 61). Of a damaged or too long sitemap, the part that can be read counts, and the
document's trouble says so.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Annotated

from gossamer.documents import charset, content_coding
from gossamer.documents.content_coding import Keeping
from gossamer.documents.document import Document
from gossamer.documents.markup import XmlTag, xml_tags
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.values.body import THRESHOLD, Body, beginning
from gossamer.values.change_hints import hint_of
from gossamer.values.errors import ReadApart, UnreadableUrl
from gossamer.values.relations import SITEMAP, SITEMAPS, is_elsewhere, level_of, listed_relation, sitemap_relation
from gossamer.values.task import Task
from gossamer.values.url import canonical, host_of
from gossamer.values.visit import TOO_MANY_LINKS, XML_TYPES, Found

#: Relation of a page that a sitemap lists.
LISTED = "sitemap loc"

#: Where a URL stands; some makers leave `loc` out.
_PLACES = frozenset({"loc", "sitemap", "url"})

#: What begins an entry.
_ENTRIES = frozenset({"url", "sitemap"})

_GZIP_MAGIC = b"\x1f\x8b"

#: How often a sitemap may be packed: some servers pack what lies packed on their disks.
_MOST_PACKED = 2

#: Unpacked bytes that are read where everything else waits: no more than a page may have that is read there. They take 0.7 s at
#: the worst, and all that a sitemap may have takes ten.
_AT_ONCE = 4_000_000

_LONGEST_SCHEME = len("https://")

#: Bytes that are looked at for the first tag.
_START = 1_000


class SitemapSheet(Sheet, frozen=True):
    """Settings of :class:`SitemapLinks`: the limits of the standard."""

    max_urls: Annotated[int, setting("Follow at most this many URLs of a sitemap.", unit="URLs", ge=0, le=50_000)] = (
        50_000
    )
    max_bytes: Annotated[int, setting("Read at most this many unpacked bytes of a sitemap.", unit="bytes", ge=0)] = (
        50_000_000
    )


class SitemapLinks(Provider[SitemapSheet]):
    """Finds the URLs of a sitemap. Contract: `Processor`. Keeps no state."""

    divisible = True

    def process(self, document: Document) -> Iterable[Found]:
        """The sitemap's URLs on the hosts that it speaks for, up to the limit; nothing where the document is no sitemap."""
        task = document.visit.task
        name = document.url.partition("?")[0].rpartition("/")[2]
        # Without a name or a mark of its own, text is no sitemap, and no archive is unpacked to see.
        is_named = task.found_by in SITEMAPS or "sitemap" in name.lower()
        content = document.response.document
        packed = 0
        while packed < _MOST_PACKED and beginning(content, len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
            if not is_named and document.mime not in XML_TYPES:
                return
            content = self._unpacked(content, document)
            packed += 1
        if len(content) > self.sheet.max_bytes:
            _tell(document, f"only its first {self.sheet.max_bytes:,} bytes are read")
        read = beginning(content, self.sheet.max_bytes)[: self.sheet.max_bytes]
        read = charset.to_utf8(read, charset.sniff(read, "" if packed else document.response.content_type))
        is_xml = read[:_START].lstrip().startswith(b"<")
        if not is_xml and not is_named:
            return
        relation, hosts = _spoken_for(task)
        taken = 0
        for found in _xml_urls(read, relation, document) if is_xml else _text_urls(read, document):
            if hosts and not self._is_at_home(found.href, document.url, hosts):
                continue
            if taken >= self.sheet.max_urls:
                document.leave_out(TOO_MANY_LINKS, 1)
                continue
            taken += 1
            yield found

    def _unpacked(self, content: Body, document: Document) -> Body:
        """The unpacked content, up to the limit and as far as it is whole.

        Raises:
            ReadApart: it is so large that reading it would hold up everything else.
        """
        most = min(self.sheet.max_bytes, _AT_ONCE) if document.holds_up else self.sheet.max_bytes
        undone = content_coding.decode(content, ["gzip"], Keeping(most, THRESHOLD))
        if undone.cut and most < self.sheet.max_bytes:
            raise ReadApart
        if undone.error or undone.cut:
            why = undone.cut or f"its gzip is damaged ({undone.error.removeprefix(f'{content_coding.BROKEN}: ')})"
            _tell(document, f"{why}; {len(undone.data):,} unpacked bytes are read")
        return undone.data

    def _is_at_home(self, href: str, base: str, hosts: Collection[str]) -> bool:
        try:
            inside = host_of(canonical(href, base)) in hosts
        except UnreadableUrl:
            return False
        if not inside:
            self.metrics.count("off_host")
        return inside


def _tell(document: Document, trouble: str) -> None:
    document.missed = document.missed or f"sitemap: {trouble}"


def _spoken_for(task: Task) -> tuple[str, Collection[str]]:
    """The relation of a sitemap, and the hosts that it speaks for: none where the scope of the crawl alone says it."""
    own = host_of(task.url)
    source = host_of(task.source) if task.source else own
    if task.found_by not in SITEMAPS or not is_elsewhere(task.found_by, own, source):
        return task.found_by, {own}
    named = sitemap_relation(task.found_by, is_elsewhere=True)
    # Of a sitemap that an index lists, or a further redirect leads to, it is not known any more which site named it.
    is_near = source != own and level_of(task.found_by) == SITEMAP
    return named, {own, source} if is_near else ()


class _Entry:
    """The entry that is being read: a place, and what is said of its changes, in any order."""

    def __init__(self, relation: str) -> None:
        self._relation = relation
        self._place = self._changed_at = self._frequency = ""

    def see(self, event: XmlTag) -> Found | None:
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
        return Found(place, self._relation, said=hint_of(self._changed_at, self._frequency)) if place else None


def _xml_urls(content: bytes, relation: str, document: Document) -> Iterator[Found]:
    """The entries of a `urlset` or `sitemapindex`, each with its claims of changes. One that has no end is trouble of its
    document: entries may be missing."""
    entry: _Entry | None = None
    prefix = root = ""
    for event in xml_tags(content):
        if event.closing:
            root = "" if event.name == root else root
            continue
        if entry is not None:
            if event.prefix == prefix and (found := entry.see(event)) is not None:
                yield found
            continue
        if event.name not in ("urlset", "sitemapindex"):
            return
        prefix, root, found_as = event.prefix, "" if event.attributes.endswith(b"/") else event.name, LISTED
        if event.name == "sitemapindex" and not (found_as := listed_relation(relation)):
            return
        entry = _Entry(found_as)
    if entry is not None and (found := entry.found()) is not None:
        yield found
    if root:
        _tell(document, "it ends too early")


def _text_urls(content: bytes, document: Document) -> Iterator[Found]:
    """One URL a line; other lines are passed over, and so is half a line, where the document was cut."""
    lines = content.decode("utf-8", "replace").splitlines(keepends=True)
    if (document.missed or document.response.cut) and lines and not lines[-1].endswith(("\n", "\r")):
        lines.pop()
    for line in lines:
        url = line.strip()
        if url[:_LONGEST_SCHEME].lower().startswith(("http://", "https://")):
            yield Found(url, LISTED)
