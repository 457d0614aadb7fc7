"""Links of feeds: RSS, Atom and JSON Feed.

Place in the flow: a processor for the types of feeds, and for XML, where it looks at the root element first. Sources: RSS
2.0, RFC 4287 (Atom), RFC 5005 (paging), JSON Feed 1.1.
"""

from collections.abc import Iterable, Iterator

import msgspec

from gossamer.flow.sheet import NoSettings
from gossamer.flow.unit import Provider
from gossamer.model import xml
from gossamer.model.document import Document
from gossamer.model.visit import Found

_RSS, _ATOM = ("rss", "rdf"), ("feed", "entry")

#: Elements of RSS whose text is a URL.
_RSS_TEXTS = frozenset({"link", "comments"})

#: Attributes with a URL, by element, in either format.
_ATTRIBUTES = {"enclosure": "url", "source": "url", "content": "src", "link": "href"}


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
        return _xml_links(document.markup)


def _xml_links(content: bytes) -> Iterator[Found]:
    kind = ""
    for event in xml.events(content):
        if event.closing:
            continue
        if not kind:
            if event.name not in (*_RSS, *_ATOM):
                return
            kind = "rss" if event.name in _RSS else "atom"
        if kind == "rss" and event.name in _RSS_TEXTS and event.text:
            yield Found(event.text, f"rss {event.name}")
        elif (place := _ATTRIBUTES.get(event.name)) and (url := event.attribute(place)):
            yield Found(url, f"{kind} {event.name}")


def _json_links(content: bytes) -> Iterator[Found]:
    feed = msgspec.json.decode(content, type=_JsonFeed)
    for url in (feed.home_page_url, feed.next_url):
        if url:
            yield Found(url, "json feed")
    for entry in feed.items:
        for url in (entry.url, entry.external_url, *(attachment.url for attachment in entry.attachments)):
            if url:
                yield Found(url, "json item")
