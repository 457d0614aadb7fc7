"""The visit: one envelope for everything that a page causes, enriched stage by stage, committed once (ARCHITECTURE.md).

Every stage takes a visit and hands on a copy with its own part filled in; none writes on another's part.
A stage therefore may stand in another process, and the commit stays atomic.
"""

from functools import cached_property
from typing import BinaryIO, Literal

import msgspec

from gossamer.values import body as bodies
from gossamer.values.body import Body, Rendered
from gossamer.values.instants import ChangeHint
from gossamer.values.media_type import HTML_TYPES, of_fields
from gossamer.values.outcome import DOCUMENTS, Comparison, Note, Outcome
from gossamer.values.request_identity import Requested, Way, identity_of
from gossamer.values.task import ANNOUNCED, DONE, ROBOTS, WANT, Answer, RetryDecision, Task

# -- orders of a processor to the crawl: block a host, or slow down its requests (row M4)
# The visit carries them; they take effect with its commit, if the wiring has a keeper that accepts orders.


class Block(msgspec.Struct, frozen=True, tag="block"):
    """Send no more requests to this host and to hosts below it."""

    host: str
    """A host or domain, such as `example.org`."""


class Delay(msgspec.Struct, frozen=True, tag="delay"):
    """Leave at least this time between two requests to a host. The longest requested delay applies, a day at most."""

    host: str
    seconds: float


Order = Block | Delay

#: How a task was found that carries an order to another agent: no link is of this kind.
ORDER = "order"


# -- the way home of a document that a mobile crawler brought, for archive, tables and `why`
# Everything in it but the names that home gave was claimed by a stranger.

BroughtForm = Literal["whole", "text", "elements", "row"]
"""The form of a document: its bytes; its text; the markup of elements; nothing but a row that says that it is not relevant."""

#: Media types of what came, where that is not the document itself.
PART_TYPES: dict[BroughtForm, str] = {"text": "text/plain", "elements": "text/html"}

#: The prefix of digests of parts in ledger and tables: neither a part nor a whole document is the duplicate of the other.
PART_DIGEST = "part:"

#: The relation of URLs out of scope that a crawler met. The page is not known: that would cost more than the URL.
EXTERNAL = "mobile"


class MobileOrigin(msgspec.Struct, frozen=True, gc=False):
    """Facts about a document beside its answer."""

    crawler: str
    """The identity that home gave the crawler's journey."""
    runtime: str
    """Address of the runtime that ran it."""
    program: str
    """SHA-256 of the program, hexadecimal."""
    sequence: int
    """Of the batch."""
    form: BroughtForm = "whole"
    digest: str = ""
    """SHA-1 of the document's bytes (base32), as the runtime claims; home checks it where it has the bytes."""
    size: int = 0
    """Bytes of the document, as the runtime claims."""

    @property
    def is_part(self) -> bool:
        """Whether the body is made of the document, and is not the document."""
        return self.form in PART_TYPES


class Timings(msgspec.Struct, frozen=True, gc=False):
    """The times at which the phases of a fetch ended, in seconds. All but `dns` count from the end of `dns`."""

    dns: float
    """Seconds that it took to find the address."""
    connect: float
    """When TCP was connected; 0 where a connection was used again."""
    tls: float
    """When TLS was agreed; 0 without TLS."""
    first_byte: float
    total: float


class Response(msgspec.Struct, frozen=True, dict=True):
    """The result of one request, successful or not. Everything in it was written by a stranger."""

    outcome: Outcome
    status: int = 0
    request_head: bytes = b""
    """The request as sent: request line and header fields, each ended by CR LF, then an empty line."""
    response_head: bytes = b""
    """Status line and header fields as received, in the same form (HTTP/2 is rendered as 1.1); empty for other schemes."""
    headers: tuple[tuple[str, str], ...] = ()
    """Header fields in order, names in lower case. For schemes other than HTTP the module puts here what it knows."""
    body: Body = b""
    """The body as it came, with its content coding, without chunk framing (design question 10); a large one is on disk."""
    decoded: Body | None = None
    """The body without content coding, where it had one."""
    address: str = ""
    """The peer's IP address."""
    started: float = 0.0
    """Seconds since the epoch when the request was sent."""
    elapsed: float = 0.0
    """Seconds from then to the last byte."""
    cut: str = ""
    """Why the body is not whole, as a WARC-Truncated word (`length`, `time`, `disconnect`); empty where it is."""
    error: str = ""
    """The error, in the words of the library or system; empty where nothing failed."""
    timings: Timings | None = None
    """Present where the module was asked for timings."""
    version: str = ""
    """The protocol of the exchange, such as `HTTP/2` (whose heads are rendered as 1.1). Present with timings."""
    is_met: bool = False
    """A server was there: a connection was made for this very request, or a part of an answer came. The failure came
    after that, and not for want of a network of ours. A module that cannot tell leaves it."""
    is_unverified: bool = False
    """It came over TLS from a server whose certificate was not judged, by a setting of the user's: any machine may have sent it."""
    barred: str = ""
    """The rule that refused the body by its head. In that case none of the body was fetched."""
    notes: tuple[Note, ...] = ()
    """Parts of the answer that were read although the standard does not allow them."""
    session: str = ""
    """The session that asked, where a spider keeps sessions."""
    way: Way | None = None
    """Of a redirect: how redirects have led to its target, where cookies are kept."""
    brought: MobileOrigin | None = None
    """How a mobile crawler brought the page; None for an answer to a request of ours."""

    def header(self, name: str) -> str:
        """The first field of this (lower-case) name, or an empty string."""
        for field, value in self.headers:
            if field == name:
                return value
        return ""

    def fields(self, name: str) -> list[str]:
        """The values of all fields of this (lower-case) name, in order."""
        return [value for field, value in self.headers if field == name]

    @property
    def document(self) -> Body:
        """The document without content coding: all of it, in memory or on disk."""
        return self.body if self.decoded is None else self.decoded

    @property
    def content(self) -> bytes:
        """The document's bytes, without content coding; of one on disk the first 16 MiB (`values.body.MAX_READ`)."""
        document = self.document
        return document if type(document) is bytes else bodies.beginning(document)

    def open(self) -> BinaryIO:
        """A new stream over all of the document, from byte 0, without content coding."""
        return bodies.reader(self.document)

    @cached_property
    def mime(self) -> str:
        """The media type that the server claims, in lower case without parameters; empty where it claims none."""
        return self.content_type.partition(";")[0].strip().lower()

    @cached_property
    def content_type(self) -> str:
        """The media type that the server claims, with its parameters: what all `Content-Type` fields come to by the rules of
        the Fetch standard. Empty where no field holds one."""
        return of_fields(self.headers)


#: Rules by which limits cut a page: URLs beyond the limit of links, and tags beyond that of tags that are read.
TOO_MANY_LINKS, UNREAD_TAGS = CUTS_OF_PAGES = ("too_many_links", "unread_tags")


class Found(msgspec.Struct, frozen=True, gc=False):
    """A link as a processor found it: not yet resolved, perhaps not a URL at all."""

    href: str
    relation: str = "a href"
    """Tag and attribute, as `a href`."""
    anchor: str = ""
    nofollow: bool = False
    request: Requested | None = None
    """Details of the request beside the URL, where a user's code gives them."""
    said: ChangeHint | None = None
    """A sitemap's hint at its changes."""


class Link(msgspec.Struct, frozen=True, gc=False):
    """A link resolved to a canonical URL."""

    url: str
    relation: str = "a href"
    anchor: str = ""
    nofollow: bool = False
    request: Requested | None = None
    """Details of the request beside the URL; None for a plain GET."""
    said: ChangeHint | None = None
    """A sitemap's hint at its changes."""

    @property
    def identity(self) -> str:
        """The identity of its task."""
        return self.url if self.request is None else identity_of(self.url, self.request.mark)


class Item(msgspec.Struct, frozen=True):
    """A value that a user's processor extracts from a page."""

    kind: str
    url: str
    value: object = None


#: Subject, predicate, object, datatype, language: as :mod:`gossamer.rdf.terms` has them.
Triple = tuple[str, str, str, str, str]


class Statements(msgspec.Struct, frozen=True):
    """The triples that a processor of structured data extracts from a page."""

    triples: tuple[Triple, ...]
    counts: dict[str, int] = {}
    """Problems by kind: parts that were not understood, left out or dropped."""


class Raised(msgspec.Struct, frozen=True):
    """An exception of a user's code, as :func:`gossamer.values.items.raised` makes it."""

    who: str
    """The handler or processor."""
    place: str
    """File and line in the user's own code; empty where they are not known."""
    error: str
    """Class and text of the exception."""
    traceback: str = ""


class Visit(msgspec.Struct, frozen=True):
    """One page's envelope. Stages fill it from top to bottom."""

    task: Task
    response: Response

    id: str = ""
    """Identity of the visit (commit): no other visit has it, of this crawl or another. Every row that it causes bears it."""
    digest: str = ""
    """SHA-1 of the body as archived, base32 (content-seen)."""
    duplicate_of: str = ""
    """URL of the first document with the same bytes (content-seen)."""

    mime: str = ""
    """The media type that the bytes show (process); empty before that."""
    title: str = ""
    base: str = ""
    """The base for relative links (process): the page's URL, unless the page names another."""
    charset: str = ""
    directives: tuple[str, ...] = ()
    """The page's own directives for robots (process), from meta tags and header fields, such as `noarchive`, `nofollow`."""
    canonical: str = ""
    """The URL that the page says is its own (`rel=canonical`), resolved (process)."""
    language: str = ""
    """Language of the text, ISO 639-1 (process, where it is asked for)."""
    simhash: int = 0
    """Fingerprint of the text, 64 bits; 0 where there is none (process, where it is asked for)."""
    needs_browser: bool = False
    """It has scripts and hardly anything to read (process): its text, if it has one, would come with a browser."""
    frequency: str = ""
    """The frequency of changes that the page announces, as a word of sitemaps.org (process, where it is asked for)."""
    near_duplicate_of: str = ""
    """URL of an earlier page whose fingerprint differs in few bits (near-duplicates)."""
    compared: Comparison | None = None
    """The changes since the visit before (changes); None at the first visit, or where nothing is compared."""
    discarded: str = ""
    """Why the page is not wanted after all, as `language:de` (process, near-duplicates): its body is not kept, nothing that
    it links to is followed, and it is no page of the crawl."""
    found: tuple[Found, ...] = ()
    items: tuple[Item, ...] = ()
    triples: tuple[Triple, ...] = ()
    """The page's triples from RDFa, JSON-LD and microdata (process, where they are asked for)."""
    orders: tuple[Order, ...] = ()
    """Orders of processors to the crawl: hosts to block, delays to keep (process)."""
    trouble: str = ""
    """The error of processing, if there was one. The page is kept and marked with it."""
    errors: tuple[Raised, ...] = ()
    """Exceptions that processors and handlers raised (process)."""
    again: float | None = None
    """Seconds after which a handler wants the page fetched again (process). Nothing else of this visit counts then."""

    links: tuple[Link, ...] = ()
    """Resolved, each URL once, in document order (links); after the filter only those that passed."""
    refused: tuple[Link, ...] = ()
    """Resolved links that a filter refused (filter): the link table has them too."""
    rejected: dict[str, int] = {}
    """Numbers of refused links by the rule that refused them (links, filter)."""
    said: tuple[tuple[str, ChangeHint], ...] = ()
    """Announcements of a sitemap about changes of pages, known ones too, each with its URL (links)."""

    rendered: Rendered | None = None
    """The page as a browser shows it (render); links, text and duplicates go by it."""

    barred: dict[str, str] = {}
    """Gates that it did not pass, each with the rule that kept it out: `body` (fetch), `parse` (process), `store` (commit)."""

    new: tuple[Task, ...] = ()
    """Tasks that the URL-seen test had not seen (url-seen); the committer's check-and-put decides."""

    @property
    def url(self) -> str:
        """The canonical URL that was fetched."""
        return self.task.url

    @property
    def shown(self) -> Body:
        """The document as readers see it: the rendered page, or the body without its coding."""
        rendered = self.rendered
        return rendered.dom if rendered is not None and rendered.dom else self.response.document

    @property
    def shown_digest(self) -> str:
        """The sign that two documents are the same: the digest of the rendered page, or of the body."""
        rendered = self.rendered
        return rendered.digest if rendered is not None and rendered.dom else self.digest

    @property
    def is_robots(self) -> bool:
        """Whether it is a request for robots.txt, which the crawl sends for itself, and not for a page."""
        return self.task.relation == ROBOTS

    @property
    def is_announcement(self) -> bool:
        """Whether nothing was fetched: the limit of depth rose, and the kept links of this page are announced again."""
        return self.task.relation == ANNOUNCED

    @property
    def is_page(self) -> bool:
        """Whether it is a successful HTML document, whole or cut at the cap, that is wanted."""
        response = self.response  # each stage asks this: its parts are written out
        if response.outcome not in DOCUMENTS or self.discarded or response.barred:
            return False
        relation = self.task.relation
        is_wanted = relation != ROBOTS and not relation.startswith(WANT)
        return is_wanted and (self.mime or response.mime) in HTML_TYPES

    @property
    def media_type(self) -> str:
        """The media type, by the bytes where they were examined, otherwise by the server."""
        return self.mime or self.response.mime

    @property
    def is_answered(self) -> bool:
        """Whether a server's answer came in, whole or with a body that broke off, so that it can be archived."""
        return bool(self.response.response_head or self.response.headers)

    @property
    def is_part(self) -> bool:
        """Whether a mobile crawler brought only a part of the document, which itself stayed at its server."""
        brought = self.response.brought
        return brought is not None and brought.is_part


class Location(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The place of a record in the archive."""

    file: str
    offset: int
    length: int
    dom: int = 0
    """Length of the record before it, which holds the rendered page; 0 where there is none."""

    @property
    def rendered(self) -> "Location":
        """The place of that record."""
        return Location(self.file, self.offset - self.dom, self.dom)


class Record(msgspec.Struct, frozen=True):
    """A committed visit, as subscribers see it: the page and where it is kept."""

    visit: Visit
    location: Location | None = None


def given_up(visit: Visit, why: str = "") -> Visit:
    """Return the visit of a page that has used up its tries; `why` is the reason if it is not the outcome."""
    response = visit.response
    error = why or f"{response.outcome} at try {visit.task.attempt}; {response.error}".rstrip("; ")
    gone = msgspec.structs.replace(response, outcome=Outcome.GONE_AFTER_RETRIES, error=error)
    return msgspec.structs.replace(visit, response=gone)


def answer_of(task: Task, response: Response) -> Answer:
    """Return the message about a response that the frontier gets at once."""
    told = (response.outcome, response.elapsed, response.header("retry-after"), response.is_met)
    mark = "" if task.request is None else task.request.mark
    return Answer(task.url, task.host, *told, is_errand=task.relation == ROBOTS, mark=mark)


def of_request(ruling: RetryDecision, task: Task, response: Response) -> RetryDecision:
    """Return the visit after this ruling. A request that may have been carried out and may not be sent twice is not repeated."""
    return DONE if response.is_met and not task.is_safe else ruling
