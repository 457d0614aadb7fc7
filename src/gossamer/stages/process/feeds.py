"""Links of feeds: RSS, Atom and JSON Feed.

Place in the flow: a processor for the types of feeds, and for XML, where it looks at the root element first. Sources: RSS
2.0, RFC 4287 (Atom; `xml:base`, section 2, is obeyed in RSS as well), RFC 5005 (paging), JSON Feed 1.1.
"""

from collections.abc import Iterable, Iterator

import msgspec

from gossamer.flow.sheet import NoSettings
from gossamer.flow.unit import Provider
from gossamer.model.errors import UnreadableUrl
from gossamer.model.url import canonical
from gossamer.model.visit import Found
from gossamer.reading import xml
from gossamer.reading.document import Document

_RSS, _ATOM = ("rss", "rdf"), ("feed", "entry")

#: Elements of RSS whose text is a URL.
_RSS_TEXTS = frozenset({"link", "comments"})

#: Attributes with a URL, by element, in either format.
_ATTRIBUTES = {"enclosure": "url", "source": "url", "content": "src", "link": "href"}

#: Elements of a feed that are followed into each other for their bases: none nests deeper, and more would be searched in vain.
MAX_OPEN = 50


class _Attachment(msgspec.Struct):
    url: str = ""


class _Entry(msgspec.Struct):
    url: str = ""
    external_url: str = ""
    attachments: list[_Attachment] = []


class _JsonFeed(msgspec.Struct):
    home_page_url: str = ""
    next_url: str = ""
    items: list[_Entry] = []


class FeedLinks(Provider[NoSettings]):
    """Finds the links of a feed. Contract: `processing.Processor`. Keeps no state."""

    divisible = True

    def process(self, document: Document) -> Iterable[Found]:
        """Links of the feed and of its entries; none where the document is no feed."""
        if document.mime.endswith("json"):
            return _json_links(document.content)
        return _xml_links(document.markup, document.url)


class _Bases:
    """What relative addresses go on from: the nearest `xml:base` around them, each resolved against the one around it."""

    def __init__(self, url: str) -> None:
        self._open: list[tuple[str, str]] = [("", url)]
        """Names of what is open, with the base in there."""

    def see(self, event: xml.XmlTag) -> str:
        """The base of this tag, which is the next of the feed; empty where that of the document does."""
        name, (_, base) = f"{event.prefix}:{event.name}", self._open[-1]
        if event.closing:
            self._close(name)
            return ""
        own = event.attribute("xml:base") if b"xml:base" in event.attributes else ""
        base = _resolved(own, base) if own else base
        if not event.attributes.endswith(b"/") and len(self._open) < MAX_OPEN:
            self._open.append((name, base))
        return base if base != self._open[0][1] else ""

    def _close(self, name: str) -> None:
        for place in range(len(self._open) - 1, 0, -1):
            if self._open[place][0] == name:
                del self._open[place:]
                return


def _resolved(address: str, base: str) -> str:
    """The address in full; as it is where it is none, so that it is counted with the other links."""
    try:
        return canonical(address, base)
    except UnreadableUrl:
        return address


def _xml_links(content: bytes, url: str) -> Iterator[Found]:
    kind = ""
    bases = _Bases(url) if b"xml:base" in content else None
    permalink, has_link = "", False
    for event in xml.events(content):
        base = bases.see(event) if bases is not None else ""
        if event.name == "item" and kind == "rss":
            # At its end, or where the next begins: an item that names no other link is found by its identifier.
            if permalink and not has_link:
                yield Found(permalink, "rss guid")
            permalink, has_link = "", False
        if event.closing:
            continue
        if not kind:
            if event.name not in (*_RSS, *_ATOM):
                return
            kind = "rss" if event.name in _RSS else "atom"
        address, relation = "", f"{kind} {event.name}"
        if kind == "rss" and event.name in _RSS_TEXTS and event.text:
            address = event.text
        elif kind == "rss" and event.name == "guid":
            permalink = _permalink(event)
        elif place := _ATTRIBUTES.get(event.name):
            address = event.attribute(place)
        if address:
            has_link = has_link or event.name == "link"
            yield Found(_resolved(address, base) if base else address, relation)
    if permalink and not has_link:
        yield Found(permalink, "rss guid")


def _permalink(guid: xml.XmlTag) -> str:
    """The URL that an identifier is (RSS 2.0: unless it says `isPermaLink="false"`); most of those that say nothing are none."""
    is_url = guid.text.lower().startswith(("http://", "https://"))
    return guid.text if is_url and guid.attribute("ispermalink").strip().lower() != "false" else ""


def _json_links(content: bytes) -> Iterator[Found]:
    feed = msgspec.json.decode(content, type=_JsonFeed)
    for url in (feed.home_page_url, feed.next_url):
        if url:
            yield Found(url, "json feed")
    for entry in feed.items:
        for url in (entry.url, entry.external_url, *(attachment.url for attachment in entry.attachments)):
            if url:
                yield Found(url, "json item")
