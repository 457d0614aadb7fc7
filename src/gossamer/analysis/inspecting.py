"""Documents without a crawl: the process and link stages, put together to read one document.

Place in the flow: `gossamer inspect` and `gossamer rdf` read files and fetched pages here, as a crawl with every detail on would.
"""

from collections.abc import Collection, Sequence
from typing import Self

import msgspec

from gossamer.documents.document import Document
from gossamer.parsing.component import Process, ProcessSheet
from gossamer.parsing.contract import Processor
from gossamer.parsing.feeds import FeedLinks, SitemapLinks
from gossamer.parsing.html import HtmlLinks, HtmlLinksSheet
from gossamer.parsing.links import LinkResolver
from gossamer.parsing.other_links import CssLinks, CssLinksSheet
from gossamer.rdf.filtering import DROPPED
from gossamer.rdf.names import MetaItem
from gossamer.rdf.page import StructuredData, Thing, structured_data, told
from gossamer.values import body as bodies
from gossamer.values.media_type import sniff_media_type
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import HTML_TYPES, Response, Visit, sha1_base32


class LinkSeen(msgspec.Struct, frozen=True):
    url: str
    relation: str
    anchor: str
    nofollow: bool


class DocumentFingerprints(msgspec.Struct, frozen=True):
    """By what a document is found again."""

    sha1: str
    """Of the body as an archive would keep it, base32."""
    sha256: str
    simhash: str
    """Of the text, 16 hexadecimal digits; empty for a short text."""


class Inspection(msgspec.Struct, frozen=True):
    """The output of `gossamer inspect` for one document, in this order."""

    url: str
    outcome: str
    """How the fetch ended; `ok` for a file."""
    status: int
    """Of the answer; 0 for a file."""
    mime: str
    """As its bytes show."""
    claimed: str
    """As its server, or the person, says."""
    charset: str
    title: str
    language: str
    robots: tuple[str, ...]
    """Directives of the page to robots, in meta tags and header fields."""
    canonical: str
    base: str
    links: list[LinkSeen]
    rejected: dict[str, int]
    """Links that cannot be followed, by rule."""
    text_length: int
    """Characters of its prose."""
    fingerprints: DocumentFingerprints
    structured_data: list[MetaItem | Thing]
    """Data of `meta` elements, then of RDFa, JSON-LD and microdata by subject."""
    structured_data_left_out: dict[str, int]
    """Pieces of it that were not understood, were over a limit, or were dropped by the filter, by kind."""
    trouble: str
    error: str


class Inspecting:
    """Reads documents as a crawl with every detail on would. A context manager."""

    def __init__(self, agent: str = "Gossamer", *, requisites: bool = False) -> None:
        """`agent` is the token that pages may speak to; with `requisites` what they show counts as a link too."""
        html = HtmlLinks(HtmlLinksSheet(anchors=True, requisites=requisites))
        feeds, sitemaps = FeedLinks(), SitemapLinks()
        table: dict[str, Sequence[Processor]] = dict.fromkeys(HTML_TYPES, (html,))
        table |= {"text/css": (CssLinks(CssLinksSheet(requisites=requisites)),), "text/plain": (sitemaps,)}
        table |= dict.fromkeys(("application/gzip", "application/x-gzip"), (sitemaps,))
        table |= dict.fromkeys(("application/xml", "text/xml"), (feeds, sitemaps))
        table |= dict.fromkeys(("application/rss+xml", "application/atom+xml", "application/feed+json"), (feeds,))
        self._process = Process(ProcessSheet(details="full", agent=agent))
        self._process.processors, self._process.gates = table, {}
        self._links = LinkResolver()

    async def __aenter__(self) -> Self:
        await self._process.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._process.stop()

    async def inspect(self, url: str, response: Response, base: str = "") -> Inspection:
        """Read an answer, or :func:`answer_of` a file. Relative links are resolved against `base` instead of `url`, where it is
        given; a `base` element wins over both."""
        visit = await self._processed(url, response, base)
        [visit] = self._links.filter(visit)
        document = Document(visit)
        prose = document.text if visit.mime in HTML_TYPES else ""
        data = structured_data(Document(visit)) if visit.mime in HTML_TYPES else None
        return Inspection(
            url=url,
            outcome=response.outcome,
            status=response.status,
            mime=visit.media_type,
            claimed=response.mime,
            charset=visit.charset,
            title=visit.title,
            language=visit.language,
            robots=visit.directives,
            canonical=visit.canonical,
            base=visit.base,
            links=[LinkSeen(link.url, link.relation, link.anchor, link.nofollow) for link in visit.links],
            rejected=visit.rejected,
            text_length=len(prose),
            fingerprints=DocumentFingerprints(
                sha1_base32(response.body) if response.body else "",
                bodies.sha256(response.body) if response.body else "",
                f"{visit.simhash:016x}" if visit.simhash else "",
            ),
            structured_data=told(data) if data else [],
            structured_data_left_out=dict(data.counts) | {"filtered": data.dropped.total()} if data else {},
            trouble=visit.trouble or document.missed,
            error=response.error,
        )

    async def structured(
        self, url: str, response: Response, base: str = "", *, rules: Collection[str] = DROPPED, expanding: bool = False
    ) -> StructuredData | None:
        """The triples and items of an answer, by the parameters of :func:`~gossamer.rdf.page.structured_data`; none where it is
        no HTML."""
        visit = await self._processed(url, response, base)
        if visit.mime not in HTML_TYPES:
            return None
        return structured_data(Document(visit), rules=rules, expanding=expanding)

    async def _processed(self, url: str, response: Response, base: str) -> Visit:
        [visit] = await self._process.filter_many([Visit(Task(base or url, host_of(base or url)), response)])
        return visit


def answer_of(content: bytes, content_type: str) -> Response:
    """A file as if a server had sent it."""
    headers = (("content-type", content_type),) if content_type else ()
    return Response(Outcome.OK, headers=headers, body=content)


def looks_like_urls(content: bytes) -> bool:
    """Whether a text is a list of URLs, one on each line, rather than a document."""
    if sniff_media_type(content, "") != "text/plain":
        return False
    lines = content[:65_536].split()
    return bool(lines) and all(line.startswith((b"http://", b"https://")) for line in lines)
