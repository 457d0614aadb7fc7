"""Parts of a crawl without its ring: the process and link stages read one document, and the robots gate judges single URLs.

Place in the flow: `gossamer inspect` and `gossamer rdf` read files and fetched pages here, as a crawl with every detail on would.
`gossamer robots` asks :class:`RobotsAsking`, whose gate and protocol module reach the verdict that a crawl would reach.
"""

from collections.abc import Collection, Sequence
from typing import Any, Self

import msgspec

from gossamer.documents.document import Document
from gossamer.engine.unit import Clock, SystemClock
from gossamer.fetcher.dns import ResolverSheet, SystemResolver
from gossamer.fetcher.http import HttpModule
from gossamer.fetcher.request import HttpSheet
from gossamer.frontier.robots.contract import RobotsRuling, RobotsVerdict
from gossamer.frontier.robots.provider import ObeyRobots, RobotsSheet
from gossamer.frontier.robots.rules import MAX_BYTES
from gossamer.parsing.contract import Processor
from gossamer.parsing.feeds import FeedLinks, SitemapLinks
from gossamer.parsing.html import HtmlLinks, HtmlLinksSheet
from gossamer.parsing.links import LinkResolver
from gossamer.parsing.other_links import CssLinks, CssLinksSheet
from gossamer.parsing.process_stage import Process, ProcessSheet
from gossamer.rdf.page import DROPPED, StructuredData, structured_data, told
from gossamer.values import body as bodies
from gossamer.values.addresses import place_of
from gossamer.values.body import sha1_base32
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.media_type import HTML_TYPES, sniff_media_type
from gossamer.values.outcome import Outcome
from gossamer.values.task import ROBOTS, Task
from gossamer.values.url import canonical, endpoint_of, host_of, scheme_of, site_of
from gossamer.values.visit import Response, Visit


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

    async def inspect(self, url: str, response: Response, base: str = "") -> dict[str, Any]:
        """Read an answer, or :func:`answer_of` a file; returns what `gossamer inspect` prints. Relative links are resolved against
        `base` instead of `url`, where it is given; a `base` element wins over both."""
        visit = await self._processed(url, response, base)
        [visit] = self._links.filter(visit)
        document = Document(visit)
        is_html, body = visit.mime in HTML_TYPES, response.body
        data = structured_data(Document(visit)) if is_html else None
        return {
            "url": url,
            "outcome": response.outcome,  # how the fetch ended; `ok` for a file
            "status": response.status,  # of the answer; 0 for a file
            "mime": visit.media_type,  # as its bytes show
            "claimed": response.mime,  # as its server, or the person, says
            "charset": visit.charset,
            "title": visit.title,
            "language": visit.language,
            "robots": visit.directives,  # of the page to robots, in meta tags and header fields
            "canonical": visit.canonical,
            "base": visit.base,
            "links": [
                {"url": link.url, "relation": link.relation, "anchor": link.anchor, "nofollow": link.nofollow}
                for link in visit.links
            ],
            "rejected": visit.rejected,  # links that cannot be followed, by rule
            "text_length": len(document.text) if is_html else 0,  # characters of its prose
            "fingerprints": {
                "sha1": sha1_base32(body) if body else "",  # of the body as an archive would keep it, base32
                "sha256": bodies.sha256(body) if body else "",
                "simhash": f"{visit.simhash:016x}" if visit.simhash else "",  # of the text; empty for a short one
            },
            # Data of `meta` elements, then of RDFa, JSON-LD and microdata by subject; and pieces of it that were not
            # understood, were over a limit, or were dropped by the filter, by kind.
            "structured_data": told(data) if data else [],
            "structured_data_left_out": dict(data.counts) | {"filtered": data.dropped.total()} if data else {},
            "trouble": visit.trouble or document.missed,
            "error": response.error,
        }

    async def structured(
        self, url: str, response: Response, *, rules: Collection[str] = DROPPED, expanding: bool = False
    ) -> StructuredData | None:
        """The triples and items of an answer, by the parameters of :func:`~gossamer.rdf.page.structured_data`; none where it is
        no HTML."""
        visit = await self._processed(url, response)
        if visit.mime not in HTML_TYPES:
            return None
        return structured_data(Document(visit), rules=rules, expanding=expanding)

    async def _processed(self, url: str, response: Response, base: str = "") -> Visit:
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


#: Seconds of waiting between two requests to a site that are made at once when a person waits for the answer: the
#: pause before the second round. A longer wait is an answer.
_PATIENCE = 5.0


class RobotsAsking:
    """Asks each site for its robots.txt once, as a crawl would, and says what a crawl would do with a URL."""

    def __init__(self, agent: str, resolve: Sequence[str] = (), contact: str = "") -> None:
        """Nothing is opened yet. Without `contact`, only hosts of this machine are asked; `resolve` is of
        `PATTERN=ADDRESS[:PORT]` entries."""
        self._clock: Clock = SystemClock()
        self._robots = ObeyRobots(RobotsSheet(agent=agent))
        self._resolver = SystemResolver(ResolverSheet(resolve=tuple(resolve), only_loopback=not contact))
        self._http = HttpModule(HttpSheet(max_body=MAX_BYTES + 1, contact=contact))
        self._http.resolver = self._resolver

    async def __aenter__(self) -> Self:
        await self._http.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.stop()
        await self._resolver.stop()

    async def judge(self, url: str) -> RobotsVerdict:
        """The verdict on a canonical URL that a person gave; a site that cannot be asked now gives `wait`.
        Raises UsageError: the site's address is not one that may be asked; says why."""
        # Hosts that a person gives may be loopback (design question 8).
        seed = place_of(*endpoint_of(url))
        before = self._resolver.sheet
        if seed not in before.seed_hosts:
            self._resolver.sheet = msgspec.structs.replace(before, seed_hosts=(*before.seed_hosts, seed))
            self._resolver.changed(before)
        task = Task(url, host_of(url))
        while True:
            verdict = self._robots.judge(task, self._clock.now())
            if verdict.ruling is RobotsRuling.WAIT and verdict.until - self._clock.now() <= _PATIENCE:
                await self._clock.sleep(max(0.0, verdict.until - self._clock.now()))
            elif verdict.ruling is RobotsRuling.FETCH_FIRST:
                site = site_of(url)
                response = await self._http.fetch(Task(verdict.url, host_of(verdict.url), source=site, relation=ROBOTS))
                if response.outcome is Outcome.ADDRESS_REFUSED and site_of(verdict.url) == site:
                    raise UsageError(
                        f"{verdict.url} is not asked for ({response.error}); requests beyond this machine have to name a contact "
                        "for site owners: give --contact URL_OR_MAIL, or set GOSSAMER_CONTACT, or judge by a --file"
                    )
                self._robots.learned(site, response, self._clock.now())
            else:
                return verdict


def url_of_site(text: str) -> str:
    """The canonical form of a URL whose site can have a robots.txt. Raises UsageError: it is no URL, or one of another scheme."""
    try:
        url = canonical(text)
    except UnreadableUrl as error:
        hint = f"; did you mean http://{text}?" if "://" not in text else ""
        raise UsageError(f"{error}{hint}") from None
    if scheme_of(url) not in ("http", "https"):
        raise UsageError(f"{text[:200]!r}: robots.txt is asked for at http and https URLs only")
    return url
