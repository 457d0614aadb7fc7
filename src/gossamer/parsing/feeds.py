"""Links of documents that list pages: feeds (RSS, Atom, JSON Feed) and sitemaps (XML, plain text, either with gzip, and
indexes).

Place in the flow: processors for the types of feeds, for XML, plain text and gzip; what is neither yields nothing. The page of
an entry is found with what is said of its changes.

Feeds: sources are RSS 2.0, RFC 4287 (Atom; `xml:base`, section 2, is obeyed in RSS as well), RFC 5005 (paging), JSON Feed 1.1,
Namespaces in XML 1.0. Elements of other namespaces than the feed's own and Atom's say nothing of links, whatever their names:
`slash:comments` is a number.

Sitemaps (sitemaps.org, version 0.9): one speaks for its own host, and where the robots.txt of another host names it, for that
host, too. An index leads no deeper than to another index: so an index of itself ends (fault 61). Of a damaged or too long
sitemap, the part that can be read counts, and the document's trouble says so.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Annotated, Any

import msgspec

from gossamer.documents import charset, content_coding
from gossamer.documents.content_coding import Keeping
from gossamer.documents.document import Document
from gossamer.documents.markup import XmlTag, attributes, xml_tags
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.values.body import THRESHOLD, Body, beginning
from gossamer.values.errors import ReadApart, UnreadableUrl
from gossamer.values.instants import ChangeHint, hint_of
from gossamer.values.media_type import XML_TYPES
from gossamer.values.patterns import lazy_pattern
from gossamer.values.task import SITEMAP, SITEMAPS, Task, is_elsewhere, listed_relation, redirect_of, sitemap_relation
from gossamer.values.url import canonical, host_of
from gossamer.values.visit import TOO_MANY_LINKS, Found

_RSS, _ATOM = ("rss", "rdf"), ("feed", "entry")

#: Elements that hold one entry, and the links of an entry that lead to its page.
_ITEMS, _OF_PAGE = frozenset({"item", "entry"}), frozenset({"rss link", "rss guid", "atom link"})

#: Elements of RSS whose text is a URL.
_RSS_TEXTS = frozenset({"link", "comments"})

#: Attributes with a URL, by element, in either format.
_ATTRIBUTES = {"enclosure": "url", "source": "url", "content": "src", "link": "href"}

#: Elements of a feed that are followed into each other for what holds in them: none nests deeper, and more would be searched in
#: vain.
MAX_OPEN = 50

#: Namespaces of a feed that are known at once; real ones declare up to thirty.
MAX_NAMESPACES = 100

#: Namespaces whose elements are those of a feed, in lower case: of no namespace, of versions of RSS, of both versions of Atom.
_OWN = frozenset(
    {
        "",
        "http://backend.userland.com/rss",
        "http://backend.userland.com/rss2",
        "http://blogs.law.harvard.edu/tech/rss",
        "http://channel.netscape.com/rdf/simple/0.9/",
        "http://my.netscape.com/rdf/simple/0.9/",
        "http://purl.org/atom/ns#",
        "http://purl.org/net/rss1.1#",
        "http://purl.org/rss/1.0/",
        "http://www.w3.org/2005/atom",
    }
)
#: Dublin Core, whose `date` is the time of an entry of RSS.
_DUBLIN_CORE = frozenset({"http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/"})
#: Prefixes that some feeds use and do not declare.
_USUAL = {"": "", "atom": "http://www.w3.org/2005/atom", "dc": "http://purl.org/dc/elements/1.1/"}

#: Elements of an entry whose text is a time: of RSS, of Dublin Core in RSS, of Atom.
_TIMES = frozenset({"pubdate", "date", "updated", "published"})

#: Links of an entry that are held until its time is known; where there are more, those that are held are handed on without a time.
MAX_HELD = 50


class _Attachment(msgspec.Struct):
    url: Any = ""


class _JsonEntry(msgspec.Struct):
    """Its values may be of any kind: one that is wrong costs the feed nothing."""

    url: Any = ""
    external_url: Any = ""
    date_published: Any = ""
    date_modified: Any = ""
    attachments: list[_Attachment] | None = None


class _JsonFeed(msgspec.Struct):
    home_page_url: Any = ""
    next_url: Any = ""
    items: list[_JsonEntry] = []


class FeedLinks(Provider[NoSettings]):
    """Finds the links of a feed. Contract: `Processor`. Keeps no state."""

    divisible = True

    def process(self, document: Document) -> Iterable[Found]:
        """Links of the feed and of its entries; none where the document is no feed."""
        if document.mime.endswith("json"):
            return _json_links(document.content)
        return _xml_links(document.markup, document.url)


class _Around:
    """The scope of a tag: the base that relative addresses go on from, and the namespaces of prefixes."""

    def __init__(self, url: str) -> None:
        self._open: list[tuple[str, str, Mapping[str, str]]] = [("", url, _USUAL)]
        """Names of what is open, with the base and the namespaces in there."""

    def see(self, event: XmlTag) -> tuple[str, str]:
        """Take the next tag of the feed: its base, empty where it is that of the document, and the namespace of its name."""
        name, (_, base, spaces) = f"{event.prefix}:{event.name}", self._open[-1]
        if event.closing:
            for place in range(len(self._open) - 1, 0, -1):
                if self._open[place][0] == name:
                    del self._open[place:]
                    break
            return "", spaces.get(event.prefix, event.prefix)  # what holds in it
        if b"xml" in event.attributes:
            told = attributes(event.attributes)
            if own := told.get("xml:base"):
                base = _resolved(own, base)
            declared = {
                place[6:]: value.strip().lower() for place, value in told.items() if place[:6] in ("xmlns", "xmlns:")
            }
            if declared and len(spaces) < MAX_NAMESPACES:
                spaces = {**spaces, **dict(islice(declared.items(), MAX_NAMESPACES))}
        if not event.attributes.endswith(b"/") and len(self._open) < MAX_OPEN:
            self._open.append((name, base, spaces))
        return base if base != self._open[0][1] else "", spaces.get(event.prefix, event.prefix)

    def space_of(self, prefix: str) -> str:
        """The namespace of a prefix in what is open; an unknown prefix stands for itself."""
        return self._open[-1][2].get(prefix, prefix)


def _resolved(address: str, base: str) -> str:
    """The address in full; as it is where it is none, so that it is counted with the other links."""
    try:
        return canonical(address, base)
    except UnreadableUrl:
        return address


class _Item:
    """An entry of a feed while it is read: its links wait for the time that it says."""

    def __init__(self) -> None:
        self._held: list[Found] = []
        self._times: list[str] = []
        self._permalink = ""
        self._has_link = False

    def see(self, event: XmlTag, kind: str) -> None:
        """Take what an element says of the entry itself."""
        if kind == "rss" and event.name == "guid":
            # RSS 2.0: it is a URL unless it says `isPermaLink="false"`; most of those that say nothing are none.
            is_url = event.text.lower().startswith(("http://", "https://"))
            self._permalink = event.text * (is_url and event.attribute("ispermalink").strip().lower() != "false")
        elif event.name in _TIMES and event.text:
            self._times.append(event.text)

    def hold(self, found: Found) -> Iterator[Found]:
        """Take a link; those that are too many come out at once."""
        self._has_link = self._has_link or found.relation.endswith(" link")
        self._held.append(found)
        if len(self._held) > MAX_HELD:
            yield from self._held
            self._held.clear()

    def ended(self) -> Iterator[Found]:
        """The links, the page's own with the latest time. An item of RSS that names no other link is found by its identifier."""
        if self._permalink and not self._has_link:
            self._held.append(Found(self._permalink, "rss guid"))
        told = _latest(self._times)
        for found in self._held:
            is_dated = told is not None and found.relation in _OF_PAGE
            yield msgspec.structs.replace(found, said=told) if is_dated else found


def _latest(times: Iterable[str]) -> ChangeHint | None:
    found = [told for text in times if (told := hint_of(text, "")) is not None]
    return max(found, key=lambda told: told.changed_at, default=None)


def _xml_links(content: bytes, url: str) -> Iterator[Found]:
    item: _Item | None = None
    for event, base, kind in _of_feed(content, url):
        if event.name in _ITEMS:
            # At its end, or where the next begins.
            if item is not None:
                yield from item.ended()
            item = None if event.closing else _Item()
        if event.closing:
            continue
        if item is not None:
            item.see(event, kind)
        if not (address := _address(event, kind)):
            continue
        found = Found(_resolved(address, base) if base else address, f"{kind} {event.name}")
        if item is None:
            yield found
        else:
            yield from item.hold(found)
    if item is not None:
        yield from item.ended()


def _of_feed(content: bytes, url: str) -> Iterator[tuple[XmlTag, str, str]]:
    """The tags that are the feed's own, and dates, each with the base of addresses there (empty: the document's) and the kind of
    feed; none where the document is no feed."""
    kind, own, around = "", _OWN, _Around(url)
    for event in xml_tags(content):
        base, space = around.see(event)
        if not kind:
            if event.closing:
                continue
            if event.name not in (*_RSS, *_ATOM):
                return
            kind = "rss" if event.name in _RSS else "atom"
            # That of a root may be any. Elements of no namespace in an Atom feed that has one are none of it.
            own = (own - {""} if kind == "atom" else own) | {space}
            own |= {around.space_of("")} if event.name == "rdf" else set()
        elif space not in own and not (space in _DUBLIN_CORE and event.name in _TIMES):
            continue
        yield event, base, kind


def _address(event: XmlTag, kind: str) -> str:
    """The URL of an element; empty where it has none."""
    if kind == "rss" and event.name in _RSS_TEXTS and event.text:
        return event.text
    place = _ATTRIBUTES.get(event.name)
    return event.attribute(place) if place else ""


def _json_links(content: bytes) -> Iterator[Found]:
    feed = msgspec.json.decode(content, type=_JsonFeed)
    for url in _texts(feed.home_page_url, feed.next_url):
        yield Found(url, "json feed")
    for entry in feed.items:
        told = _latest(_texts(entry.date_published, entry.date_modified))
        attached = [attachment.url for attachment in entry.attachments or ()]
        for url in _texts(entry.url, entry.external_url, *attached):
            yield Found(url, "json item", said=told if url is entry.url else None)


def _texts(*values: Any) -> list[str]:
    return [value for value in values if value and isinstance(value, str)]


#: Relation of a page that a sitemap lists.
LISTED = "sitemap loc"

#: Where a URL stands; some makers leave `loc` out.
_PLACES = frozenset({"loc", "sitemap", "url"})

#: Elements that begin an entry.
_ENTRIES = frozenset({"url", "sitemap"})

_GZIP_MAGIC = b"\x1f\x8b"

#: How often a sitemap may be packed: some servers pack what lies packed on their disks.
_MOST_PACKED = 2

#: Unpacked bytes that are read where everything else waits: no more than a page may have that is read there. They take 0.7 s at
#: the worst, and all that a sitemap may have takes ten.
_AT_ONCE = 4_000_000

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
        read = charset.sitemap_to_utf8(read, "" if packed else document.response.content_type)
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
        """The unpacked content, up to the limit and as far as it is whole. Raises ReadApart: it is so large that reading it
        would hold up everything else."""
        most = min(self.sheet.max_bytes, _AT_ONCE) if document.holds_up else self.sheet.max_bytes
        undone = content_coding.decode(content, ["gzip"], Keeping(most, THRESHOLD))
        if undone.cut and most < self.sheet.max_bytes:
            raise ReadApart
        fault = undone.error.removeprefix(f"{content_coding.BROKEN}: ") or "its check sum is wrong" * undone.is_damaged
        fault = fault or "other bytes follow, and none behind them is read" * undone.has_rest
        if fault or undone.cut:
            why = undone.cut or f"its gzip is damaged ({fault})"
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


#: Relations of sitemaps that the site of their source names.
_NAMED_AT_ONCE = frozenset({SITEMAP, sitemap_relation(SITEMAP, is_elsewhere=True), redirect_of(SITEMAP)})


def _spoken_for(task: Task) -> tuple[str, Collection[str]]:
    """The relation of a sitemap, and the hosts that it speaks for: none where the scope of the crawl alone says it."""
    own = host_of(task.url)
    source = host_of(task.source) if task.source else own
    if task.found_by not in SITEMAPS or not is_elsewhere(task.found_by, own, source):
        return task.found_by, {own}
    named = sitemap_relation(task.found_by, is_elsewhere=True)
    # Of a sitemap that an index lists, or a further redirect leads to, it is not known any more which site named it.
    is_near = source != own and task.found_by in _NAMED_AT_ONCE
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


#: The root of a sitemap, which may stand behind warnings of the program that wrote it.
_ROOT = lazy_pattern(rb"<(?:[\w.-]+:)?(?:urlset|sitemapindex)[\s>]")


def _xml_urls(content: bytes, relation: str, document: Document) -> Iterator[Found]:
    """The entries of a `urlset` or `sitemapindex`, each with its claims of changes. One that has no end, or does not begin the
    document, is trouble of that: entries may be missing."""
    entry: _Entry | None = None
    prefix = root = ""
    is_behind = False
    for event in xml_tags(content):
        if event.closing:
            root = "" if event.name == root else root
            continue
        if entry is not None:
            if event.prefix == prefix and (found := entry.see(event)) is not None:
                yield found
            continue
        if event.name not in ("urlset", "sitemapindex"):
            if not (is_behind := is_behind or _ROOT.search(content) is not None):
                return
            continue
        if is_behind:  # warnings of the program that wrote it, say
            _tell(document, "other elements stand before its root")
        prefix, root, found_as = event.prefix, "" if event.attributes.endswith(b"/") else event.name, LISTED
        if event.name == "sitemapindex" and not (found_as := listed_relation(relation)):
            return
        entry = _Entry(found_as)
    if entry is not None and (found := entry.found()) is not None:
        yield found
    if root:
        _tell(document, "it ends too early")


def _text_urls(content: bytes, document: Document) -> Iterator[Found]:
    """One URL a line; other lines are passed over, and so is half a line, where the document was cut. One that has none is trouble
    of its document, if that was named as a sitemap."""
    lines = content.decode("utf-8", "replace").splitlines(keepends=True)
    if (document.missed or document.response.cut) and lines and not lines[-1].endswith(("\n", "\r")):
        lines.pop()
    urls = [
        url for line in lines if (url := line.strip())[: len("https://")].lower().startswith(("http://", "https://"))
    ]
    if not urls and content.strip() and document.visit.task.found_by in SITEMAPS:
        _tell(document, "it is neither XML nor a list of URLs")
    yield from (Found(url, LISTED) for url in urls)
