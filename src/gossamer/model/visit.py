"""The visit: one envelope for everything that a page causes, enriched stage by stage, committed once (DESIGN 1).

Every stage takes a visit and hands on a copy with its own part filled in; none writes on another's part.
A stage therefore may stand in another process, and the commit stays atomic.
"""

import base64
import hashlib

import msgspec

from gossamer.model.outcome import Outcome
from gossamer.model.task import Task


class Response(msgspec.Struct, frozen=True):
    """What came of one request, successful or not. Everything in it was written by a stranger."""

    outcome: Outcome
    status: int = 0
    request_head: bytes = b""
    """The request as sent: request line and header fields, each ended by CR LF, then an empty line."""
    response_head: bytes = b""
    """Status line and header fields as received, in the same form (HTTP/2 is rendered as 1.1)."""
    headers: tuple[tuple[str, str], ...] = ()
    """Header fields in order, names in lower case."""
    body: bytes = b""
    """The body as it came, with its content coding, without chunk framing (DESIGN 9.10)."""
    decoded: bytes | None = None
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
    """What failed, in the words of the library or system; empty where nothing did."""

    def header(self, name: str) -> str:
        """The first field of this (lower-case) name, or an empty string."""
        for field, value in self.headers:
            if field == name:
                return value
        return ""

    @property
    def content(self) -> bytes:
        """The document's bytes, without content coding."""
        return self.body if self.decoded is None else self.decoded

    @property
    def mime(self) -> str:
        """The media type that the server claims, in lower case without parameters; empty where it claims none."""
        return self.header("content-type").partition(";")[0].strip().lower()


class Found(msgspec.Struct, frozen=True, gc=False):
    """A link as a processor found it: not yet resolved, perhaps not a URL at all."""

    href: str
    relation: str = "a href"
    """Tag and attribute, as `a href`."""
    anchor: str = ""
    nofollow: bool = False


class Link(msgspec.Struct, frozen=True, gc=False):
    """A link resolved to a canonical URL."""

    url: str
    relation: str = "a href"
    anchor: str = ""
    nofollow: bool = False


class Item(msgspec.Struct, frozen=True):
    """What a user's processor takes out of a page."""

    kind: str
    url: str
    value: object = None


class Visit(msgspec.Struct, frozen=True):
    """One page's envelope. Stages fill it from top to bottom."""

    task: Task
    response: Response

    digest: str = ""
    """SHA-1 of the body as archived, base32 (content-seen)."""
    duplicate_of: str = ""
    """URL of the first document with the same bytes (content-seen)."""

    mime: str = ""
    """The media type that the bytes show (process); empty before that."""
    title: str = ""
    base: str = ""
    """What relative links are resolved against (process): the page's URL unless the page says otherwise."""
    charset: str = ""
    directives: tuple[str, ...] = ()
    """What the page itself says to robots (process): words of its meta tags and header fields, as `noarchive`, `nofollow`."""
    canonical: str = ""
    """The URL that the page says is its own (`rel=canonical`), resolved (process)."""
    language: str = ""
    """Language of the text, ISO 639-1 (process, where it is asked for)."""
    simhash: int = 0
    """Fingerprint of the text, 64 bits; 0 where there is none (process, where it is asked for)."""
    near_duplicate_of: str = ""
    """URL of an earlier page whose fingerprint differs in few bits (near-duplicates)."""
    discarded: str = ""
    """Why the page is not wanted after all, as `language:de` (process, near-duplicates): no record, no links; counted."""
    found: tuple[Found, ...] = ()
    items: tuple[Item, ...] = ()
    trouble: str = ""
    """What went wrong while processing, if anything did: the page is kept, and says so."""

    links: tuple[Link, ...] = ()
    """Resolved, each URL once, in document order (links); after the filter only those that passed."""
    rejected: dict[str, int] = {}
    """How many links each rule refused, by the rule's name (links, filter)."""

    new: tuple[Task, ...] = ()
    """Tasks that the URL-seen test had not seen (url-seen); the committer's check-and-put decides."""

    @property
    def url(self) -> str:
        """The canonical URL that was fetched."""
        return self.task.url

    @property
    def is_page(self) -> bool:
        """A successful HTML document, whole or cut at the cap, that is wanted."""
        if self.response.outcome not in (Outcome.OK, Outcome.TRUNCATED) or self.discarded:
            return False
        return self.media_type in HTML_TYPES

    @property
    def media_type(self) -> str:
        """What kind of document it is: by its bytes where they were looked at, otherwise by its server."""
        return self.mime or self.response.mime

    @property
    def is_kept(self) -> bool:
        """There is an answer, and the archive may have it."""
        return self.is_answered and not self.discarded

    @property
    def is_answered(self) -> bool:
        """A server's head came in, whole or with a body that broke off: there is something to archive."""
        return bool(self.response.response_head)


class Location(msgspec.Struct, frozen=True, gc=False):
    """Where the archive keeps a record."""

    file: str
    offset: int
    length: int


class Record(msgspec.Struct, frozen=True):
    """A committed visit, as subscribers see it: the page and where it is kept."""

    visit: Visit
    location: Location | None = None


#: Media types that are HTML documents (WHATWG HTML, and XHTML served under its own name).
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


def sha1_base32(data: bytes) -> str:
    """The digest that WARC and CDX tools compare, without the `sha1:` label (WARC/1.1, section 5.8)."""
    return base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()
