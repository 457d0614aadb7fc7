"""The mobile crawler as one value: program, facts, results. Data throughout: nothing in it is run.

Place in the flow: a person's file (:mod:`gossamer.mobile.reading`) or bytes (:mod:`gossamer.mobile.wire`) become this value,
:func:`check_crawler` judges what types and bounds cannot say before anything is fetched, and :mod:`gossamer.mobile.running` runs
it. Every field has a bound: a value that arrives from elsewhere is no larger than a host expects, whatever its sender says.
"""

import hashlib
from typing import Annotated, Literal

import msgspec
import re2
from msgspec import Meta

from gossamer.engine.errors import UnknownName
from gossamer.expressions.compiling import Expression
from gossamer.expressions.contract import Gate
from gossamer.expressions.syntax import MAX_CHARACTERS, ExpressionError
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.outcome import ERRORS, Outcome
from gossamer.values.url import MAX_URL_BYTES, canonical, host_of

#: Versions of the value that this build reads and writes, the newest last. Version 2 has rows of redirects.
VERSIONS = (1, 2)
VERSION = VERSIONS[-1]

#: Seeds of one crawler: several crawlers share a longer list.
MAX_SEEDS = 10_000
#: URLs, and digests of documents, that home may say it has: about 8 MB of the crawler's bytes before compression.
MAX_KNOWN = 100_000
#: Keyword lists, and words of one list.
MAX_LISTS, MAX_WORDS = 100, 5_000
#: CSS selectors and processors of one program: each costs every relevant page.
MAX_SELECTORS, MAX_PROCESSORS = 20, 20
#: Pages that one crawler may visit.
MAX_PAGES = 10_000_000
#: Bytes of the largest document that is judged: what parsers get of any (`values.body.MAX_READ`).
MAX_DOCUMENT = 16 << 20
#: Pages, external URLs and rows of one batch: its size in bytes is bounded by `wire`.
MAX_IN_BATCH = 1_000_000

#: How the rule of a row begins that tells of an error, and the outcomes that it may name.
ERROR_ROW = "outcome:"
TOLD_ERRORS = ERRORS | {Outcome.CLIENT_ERROR}
#: Outcomes of rows that tell of no document.
WITHOUT_DOCUMENT = TOLD_ERRORS | {Outcome.REDIRECT}

#: Characters of a title, a relation, a rule.
MAX_SHORT = 1_000

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z"
DIGEST_PATTERN = r"^[A-Z2-7]{32}\Z"

Url = Annotated[str, Meta(min_length=1, max_length=MAX_URL_BYTES)]
Word = Annotated[str, Meta(min_length=1, max_length=200)]
WordList = Annotated[tuple[Word, ...], Meta(min_length=1, max_length=MAX_WORDS)]
Parameter = Word | int | float
Name = Annotated[str, Meta(pattern=NAME_PATTERN)]
Digest = Annotated[str, Meta(pattern=DIGEST_PATTERN)]
Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Depth = Annotated[int, Meta(ge=0, le=65_535)]
Bytes = Annotated[int, Meta(ge=1, le=1 << 50)]
Whole = Annotated[str, Meta(max_length=MAX_DOCUMENT)]
Short = Annotated[str, Meta(max_length=MAX_SHORT)]
_Expression = Annotated[str, Meta(max_length=MAX_CHARACTERS)]
_Selector = Annotated[str, Meta(min_length=1, max_length=500)]

BroughtPart = Literal["whole", "text", "links", "items", "fingerprint"]
"""The part of a relevant page that comes home: its bytes, its main text, its links, the items that processors took out of it, the
fingerprint of its text."""


class TravelLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How far a crawler goes. At whichever limit it comes to, it ends and says so."""

    depth: Depth | None = None
    """Links from the nearest seed."""
    pages: Annotated[int, Meta(ge=1, le=MAX_PAGES)] = 100_000
    """Successful HTML documents, relevant or not."""
    urls: Annotated[int, Meta(ge=1, le=MAX_PAGES)] = 1_000_000
    """Different URLs in scope that are kept; more are counted and dropped."""
    external: Annotated[int, Meta(ge=0, le=MAX_PAGES)] = 100_000
    """Different URLs out of scope that are brought home; more are counted and dropped."""
    bytes: Bytes = 10_000_000_000
    """Bytes of all documents that are judged."""
    brought: Bytes = 10_000_000_000
    """Bytes that are brought home, before compression."""
    seconds: Annotated[float, Meta(gt=0, le=30 * 86_400)] = 86_400.0
    """Time from the first to the last request."""


class BringRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The parts that come home of relevant pages, and of irrelevant ones."""

    parts: Annotated[tuple[BroughtPart, ...], Meta(max_length=5)] = ("whole",)
    elements: Annotated[tuple[_Selector, ...], Meta(max_length=MAX_SELECTORS)] = ()
    """CSS selectors; all elements that match one come home, with text and markup."""
    irrelevant: Literal["counts", "rows"] = "counts"
    """Whether irrelevant documents are only counted, or have a row each."""
    errors: bool = False
    """Whether each answer that is an error, and each request without an answer, has a row; in version 2, each redirect, too."""


class NamedProcessor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A processor that has to be installed where the crawler runs. No code travels."""

    name: Name
    version: Annotated[str, Meta(min_length=1, max_length=64)]


class MobileProgram(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The program of a crawler: its start, the links that it follows, the pages that are relevant, the parts that it brings."""

    seeds: Annotated[tuple[Url, ...], Meta(min_length=1, max_length=MAX_SEEDS)]
    name: Name = "crawler"
    scope: Literal["page", "prefix", "host", "domain"] = "host"
    """As `--scope` of a crawl; a crawler has no business everywhere."""
    around: Annotated[tuple[Url, ...], Meta(max_length=MAX_SEEDS)] = ()
    """Draw the scope around these URLs; empty: around the seeds."""
    traversal: Literal["breadth", "depth", "host-breadth"] = "breadth"
    follow: _Expression = ""
    """Follow a link only if this is true of it; empty: every link in scope."""
    expand: _Expression = ""
    """Follow links of a page only if this is true of it; empty: of every page."""
    store: _Expression = ""
    """A document is relevant if this is true of it; empty: every document is."""
    limits: TravelLimits = TravelLimits()
    bring: BringRules = BringRules()
    processors: Annotated[tuple[NamedProcessor, ...], Meta(max_length=MAX_PROCESSORS)] = ()
    version: int = 1
    """Of this value: it is part of the digest. Where it is left out, it is the first one, for that is how that one was written."""

    @property
    def digest(self) -> str:
        """SHA-256 of the program, in hexadecimal: equal for equal programs, however they were written down."""
        return hashlib.sha256(msgspec.msgpack.encode(self, order="deterministic")).hexdigest()


class CrawlerFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The knowledge of a crawler when it starts."""

    depths: Annotated[tuple[Depth, ...], Meta(max_length=MAX_SEEDS)] = ()
    """Of each seed, counted as home counts; 0 where none is given."""
    known: Annotated[tuple[Url, ...], Meta(max_length=MAX_KNOWN)] = ()
    """URLs that home knows: the crawler does not ask for them."""
    fingerprints: Annotated[tuple[Digest, ...], Meta(max_length=MAX_KNOWN)] = ()
    """Digests (SHA-1, base32) of documents that home has: their bytes are not brought again."""
    keywords: Annotated[dict[Name, WordList], Meta(max_length=MAX_LISTS)] = {}
    """Lists that expressions name, as `keywords($health)`."""
    parameters: Annotated[dict[Name, Parameter], Meta(max_length=MAX_LISTS)] = {}
    """Single values that expressions name, as `links >= $least`."""

    def given(self) -> dict[str, tuple[str, ...]]:
        return {**self.keywords, **{name: (str(value),) for name, value in self.parameters.items()}}


class BroughtElement(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An element of a page, by a CSS selector of the program."""

    selector: Annotated[str, Meta(max_length=500)]
    text: Whole
    markup: Whole


class BroughtLink(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A link of a page, resolved."""

    url: Url
    relation: Short
    anchor: Annotated[str, Meta(max_length=10_000)] = ""
    nofollow: bool = False


class BroughtItem(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An item that a processor took out of a page. The value is JSON text, which may be deep: only home decodes it."""

    kind: Short
    url: Annotated[str, Meta(max_length=MAX_URL_BYTES)]
    value: Whole


class BroughtPage(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A relevant document as it comes home. Everything in it was written by strangers, the runtime among them."""

    url: Url
    depth: Depth = 0
    source: Annotated[str, Meta(max_length=MAX_URL_BYTES)] = ""
    relation: Short = "seed"
    status: Annotated[int, Meta(ge=0, le=999)] = 200
    """As the site claims, or as the runtime does in its place."""
    headers: Annotated[
        tuple[tuple[Annotated[str, Meta(max_length=200)], Annotated[str, Meta(max_length=16_384)]], ...],
        Meta(max_length=200),
    ] = ()
    mime: Short = ""
    charset: Short = ""
    language: Short = ""
    title: Short = ""
    truncated: bool = False
    """The document was cut: it was longer than the source hands out, or it broke off."""
    digest: Annotated[str, Meta(max_length=64)] = ""
    """SHA-1 of the bytes, base32."""
    size: Count = 0
    """Bytes of the document, brought or not."""
    duplicate_of: Annotated[str, Meta(max_length=MAX_URL_BYTES)] = ""
    """An earlier relevant URL of this crawler with the same bytes: nothing else of this one is brought."""
    is_known: bool = False
    """Home has these bytes by the crawler's facts: they are not brought again."""
    whole: Annotated[bytes, Meta(max_length=MAX_DOCUMENT)] | None = None
    text: Whole | None = None
    simhash: int = 0
    """Fingerprint of the text, 64 bits; 0 where there is none."""
    is_expanded: bool = True
    """False where `expand` let none of its links be followed."""
    links: Annotated[tuple[BroughtLink, ...], Meta(max_length=10_000)] = ()
    elements: Annotated[tuple[BroughtElement, ...], Meta(max_length=10_000)] = ()
    items: Annotated[tuple[BroughtItem, ...], Meta(max_length=10_000)] = ()
    trouble: Short = ""


class IrrelevantRow(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A document that is not relevant, or an error, where the program asks for rows of these."""

    url: Url
    status: Annotated[int, Meta(ge=0, le=999)]
    mime: Short
    size: Count
    rule: Short
    """The rule by which it is not relevant; of an error, its outcome behind :data:`ERROR_ROW`."""


class RedirectRow(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A redirect, where the program asks for rows of errors: without it, home would not know which links end in one."""

    url: Url
    status: Annotated[int, Meta(ge=300, le=399)]
    target: Annotated[str, Meta(max_length=MAX_URL_BYTES)]
    """Resolved; empty where it leads nowhere."""
    depth: Depth


class JourneySummary(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The work of a crawler, in numbers."""

    ended: Literal["finished", "limit"] = "finished"
    limit: Short = ""
    """The name of the limit that ended it."""
    fetched: Count = 0
    pages: Count = 0
    """Successful HTML documents."""
    relevant: Count = 0
    irrelevant: Count = 0
    not_expanded: Count = 0
    """Pages whose links were not followed, by `expand`."""
    duplicates: Count = 0
    known: Count = 0
    """Documents that home has already."""
    bytes: Count = 0
    """Of all documents that were judged."""
    discovered: Count = 0
    queued: Count = 0
    """URLs that were not asked for when it ended."""
    outcomes: Annotated[dict[Short, Count], Meta(max_length=100)] = {}
    rejected: Annotated[dict[Short, Count], Meta(max_length=1_000)] = {}
    """Links that were not followed, by rule."""
    dropped: Annotated[dict[Short, Count], Meta(max_length=1_000)] = {}
    """The parts that a bound cut off, by name."""
    seconds: Annotated[float, Meta(ge=0)] = 0.0


class CrawlerBatch(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A part of the results that comes home at once: committed once, by crawler and sequence."""

    program: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    """Digest of the program."""
    sequence: Annotated[int, Meta(ge=0, le=1 << 40)]
    """Counted from 0 without a gap."""
    crawler: Annotated[str, Meta(max_length=64)] = ""
    """Identity that home gave the crawler."""
    pages: Annotated[tuple[BroughtPage, ...], Meta(max_length=MAX_IN_BATCH)] = ()
    rows: Annotated[tuple[IrrelevantRow, ...], Meta(max_length=MAX_IN_BATCH)] = ()
    redirects: Annotated[tuple[RedirectRow, ...], Meta(max_length=MAX_IN_BATCH)] = ()
    external: Annotated[tuple[Url, ...], Meta(max_length=MAX_IN_BATCH)] = ()
    """URLs out of scope, each once in the crawler's life."""
    depths: Annotated[tuple[Depth, ...], Meta(max_length=MAX_IN_BATCH)] = ()
    """Of each of these URLs, where the program limits the depth; empty where it does not."""
    summary: JourneySummary | None = None
    """Of the whole journey, in the last batch."""


class MobileCrawler(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Program, facts and results. Home makes one, a runtime runs it, and it returns with results."""

    program: MobileProgram
    facts: CrawlerFacts = CrawlerFacts()
    id: Annotated[str, Meta(max_length=64)] = ""
    """The name of this crawler at home; empty where there is one alone."""
    results: tuple[CrawlerBatch, ...] = ()


#: Schemes of seeds: a crawler visits sites.
SCHEMES = ("http://", "https://")

# A selector of elements: tags, ids, classes and attributes, joined by `>`, and by one space at most. More spaces, `~` and
# functions as `:has()` cost the parser's library time that grows with powers of a page's depth.
_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_-]*"
_VALUE = rf"(?:{_IDENTIFIER}|\"[^\"\\]*\"|'[^'\\]*')"
_MARK = rf"(?:[.#]{_IDENTIFIER}|\[{_IDENTIFIER}(?:[~|^$*]?={_VALUE})?\])"
_COMPOUND = rf"(?:(?:{_IDENTIFIER}|\*){_MARK}*|{_MARK}+)"
_STEPS = rf"{_COMPOUND}(?: *> *{_COMPOUND}){{0,7}}"
_SELECTOR = re2.compile(rf"{_STEPS}(?: +{_STEPS})?")

_GATES: tuple[Gate, ...] = ("follow", "expand", "store")


class CrawlerRefused(UsageError):
    """A crawler that cannot be run: the place in it, and what is wrong there, in one line."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}" if place else reason)
        self.place = place
        """Names and positions, parted by dots, as `limits.depth` or `seeds[0]`; empty for the whole."""
        self.reason = reason


def check_crawler(crawler: MobileCrawler) -> None:
    """Refuse a crawler that could not do what it says.
    Raises CrawlerRefused: says which place is wrong, and what to do."""
    program = crawler.program
    if program.version not in VERSIONS:
        known = ", ".join(map(str, VERSIONS))
        raise CrawlerRefused("version", f"{program.version} is unknown here; this build knows {known}")
    _check_seeds(program.seeds)
    _check_seeds(program.around, "around")
    if len(crawler.facts.depths) not in (0, len(program.seeds)):
        raise CrawlerRefused("facts.depths", "give one for each seed, or none")
    for place, url in enumerate(crawler.facts.known):
        try:
            canonical(url)
        except UnreadableUrl as error:
            raise CrawlerRefused(f"facts.known[{place}]", f"{error}; write it in full") from None
    if shared := sorted(set(crawler.facts.keywords) & set(crawler.facts.parameters)):
        raise CrawlerRefused(f"facts.parameters.{shared[0]}", "a keyword list has the same name; rename one of them")
    for gate in _GATES:
        compiled(crawler, gate)
    if program.traversal == "depth" and program.limits.depth is not None:
        raise CrawlerRefused(
            "limits.depth", 'needs traversal = "breadth": only that meets every URL on its shortest way'
        )
    for place, selector in enumerate(program.bring.elements):
        if _SELECTOR.fullmatch(selector.strip()) is None:
            advice = (
                "write tags, .classes, #ids and [attributes], joined by `>` and by one space at most, as `.menu li > a`"
            )
            raise CrawlerRefused(
                f"bring.elements[{place}]", f"{selector[:100]!r} is not a selector that crawlers know; {advice}"
            )
    if "items" in program.bring.parts and not program.processors:
        raise CrawlerRefused(
            "bring.parts", "`items` come from processors, and the program names none; add [[processors]]"
        )
    if "items" not in program.bring.parts and program.processors:
        raise CrawlerRefused("processors", "their items are not brought home; add `items` to bring.parts")


def compiled(crawler: MobileCrawler, gate: Gate) -> Expression | None:
    """The program's expression for a gate; None where it has none. Raises CrawlerRefused: it cannot be read."""
    source: str = getattr(crawler.program, gate)
    if not source.strip():
        return None
    try:
        return Expression(source, gate, given=crawler.facts.given())
    except ExpressionError as error:
        raise CrawlerRefused(gate, f"{error.reason}, at character {error.position + 1}") from None
    except UnknownName as error:
        raise CrawlerRefused(gate, str(error)) from None


def _check_seeds(seeds: tuple[str, ...], name: str = "seeds") -> None:
    for place, seed in enumerate(seeds):
        try:
            url = canonical(seed)
        except UnreadableUrl as error:
            raise CrawlerRefused(f"{name}[{place}]", f"{error}; write it in full, as https://example.org/") from None
        if not url.startswith(SCHEMES) or not host_of(url):
            raise CrawlerRefused(
                f"{name}[{place}]", f"{url[:100]!r} is not an http or https URL; write https://example.org/"
            )
