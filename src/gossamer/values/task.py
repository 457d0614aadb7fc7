"""Tasks and answers: a task goes to the fetchers, an answer says that the host is free again.

Beside them: relations, which say how a link was found, and the task that it becomes; the decision about a page after an answer,
leases between the keeper of a queue and a crawler, and URLs that are set aside because their part of a host looks like a trap.

Processors find requisites, which a browser fetches by itself to show a page, and sitemaps; the filters let both off the scope,
requisites with `--page-requisites`, sitemaps where a site's robots.txt names one of another host. Url-seen, the commit and
:mod:`gossamer.storage.ledger.contract` make tasks of links by :func:`task_of`, so that a limit of depth or of redirects means the
same in each.
"""

from collections.abc import Callable
from enum import Enum

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import Requested, identity_of
from gossamer.values.url import host_of

#: The last level of a host's queues: the ledger keeps a level in one byte.
LAST_LEVEL = 255

#: The relation of tasks that fetch a robots.txt; their source is the site that they are fetched for.
ROBOTS = "robots"

#: The prefix of relations of requests that a page makes while a browser renders it, as `render script`. They are kept
#: nowhere before they are sent: a page that is rendered again makes them again.
WANT = "render "

#: The relation of visited pages that are not fetched again: the commit only announces their links once more.
ANNOUNCED = "announced"

#: The relation of tasks that fetch a page that was fetched before, to see whether it changed. Behind it stands how the page was
#: found, where it is read by that: `revisit sitemap`.
REVISIT = "revisit"


class Task(msgspec.Struct, frozen=True, gc=False):
    """One URL to be fetched. At any instant an identity is in flight at most once, so it names the task."""

    url: str
    host: str
    """Politeness key: the host name without port (design question 5), or what stands for it:
    :func:`gossamer.values.url.host_of`."""
    depth: int = 0
    """Links from the nearest seed; a redirect's target keeps the depth of its source (design question 4)."""
    source: str = ""
    """The URL that it was found on; empty for seeds."""
    relation: str = "seed"
    """How it was found: `seed`, `redirect`, or tag and attribute, as `a href`."""
    attempt: int = 1
    level: int = 0
    """In which of its host's queues it waits, 0 the most urgent; the traversal decides."""
    hops: int = 0
    """Redirects in a row that led here."""
    etag: str = ""
    """Validators of the copy that we have (RFC 9110, 8.8): asked with them, a server says `not_modified`."""
    last_modified: str = ""
    request: Requested | None = None
    """The request beside the URL; None for a plain GET."""

    @property
    def identity(self) -> str:
        """Its key in seen sets, queues and flights: the URL of a plain GET (design question 25)."""
        request = self.request
        return self.url if request is None else identity_of(self.url, request.mark)

    @property
    def is_revisit(self) -> bool:
        """It fetches what was fetched before."""
        return self.relation.partition(" ")[0] == REVISIT

    @property
    def found_by(self) -> str:
        """How its document is read: its relation, of a revisit the one by which it was found."""
        return self.relation.removeprefix(f"{REVISIT} ")

    @property
    def is_want(self) -> bool:
        """A page asks for it while a browser renders it."""
        return self.relation.startswith(WANT)

    @property
    def is_marked(self) -> bool:
        """It is known by more than its URL: its answer is no document of that URL, and no duplicate of any."""
        return self.request is not None and bool(self.request.mark)

    @property
    def is_safe(self) -> bool:
        """It may be sent again, though its fate before is unknown."""
        return self.request is None or self.request.is_safe


def sooner(task: Task, level: int) -> int:
    """The level at which a task waits that would wait at this one, had its request no priority."""
    return level if task.request is None else min(max(level - task.request.priority, 0), LAST_LEVEL)


def with_level(task: Task, level: int) -> Task:
    """The task in another of its host's queues."""
    return task if task.level == level else msgspec.structs.replace(task, level=level)


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A fetch has ended: the host is free again, or waits. Sent at the response, long before the visit is committed."""

    url: str
    host: str
    outcome: Outcome
    elapsed: float
    """Seconds from the request to the last byte: adaptive politeness goes by it."""
    retry_after: str = ""
    """The server's own `Retry-After` field, as sent."""
    is_met: bool = False
    """A server was there: see :attr:`gossamer.values.visit.Response.is_met`."""
    is_errand: bool = False
    """It answers a request for robots.txt, which says little of how quick the pages of its host are."""
    mark: str = ""
    """Of the request, as in its task."""

    @property
    def identity(self) -> str:
        return identity_of(self.url, self.mark) if self.mark else self.url


class Committed(msgspec.Struct, frozen=True, gc=False):
    """A visit's consequences are safe: its slot is free, and what it pushed is in its hosts' queues."""

    task: Task
    outcome: Outcome
    is_page: bool = False
    """A successful HTML document: what `--max-pages` counts."""
    bytes: int = 0
    is_kept: bool = False
    """The task goes back to its host: the host's trouble is no reason to spend a try."""
    site: str = ""
    """Of a robots.txt request: the site that can be judged by it now."""
    is_goal: bool = False
    """It is the page at which the crawl ends."""
    is_brought: bool = False
    """A mobile crawler brought it: it was never handed out, and had no slot."""


class Arrived(msgspec.Struct, frozen=True, gc=False):
    """URLs that other agents found are in their hosts' queues: the frontier may find work where there was none."""

    new: int
    """How many of them were new here."""


# -- relations: page requisites, sitemaps, redirects

#: `rel` tokens of `link` elements that lead to parts of the page itself. They win over all others: `alternate
#: stylesheet` is a style sheet. Their relation is `link` and the token, as `link stylesheet`.
_TYPES = "apple-touch-icon apple-touch-icon-precomposed icon manifest mask-icon modulepreload preload stylesheet"
LINK_TYPES = frozenset(_TYPES.split())

#: Elements that may have a picture behind them (HTML, 15.3.3 and 15.3.8).
BACKGROUNDS = ("body", "table", "thead", "tbody", "tfoot", "tr", "td", "th")

#: Relations of URLs in a style sheet; those in a page's own `style` elements and attributes count the same.
CSS_IMPORT, CSS_URL = "css import", "css url"

#: Relations of what a page shows. `iframe` and `frame` are documents, not requisites.
RELATIONS = frozenset(
    {
        *(f"link {token}" for token in LINK_TYPES),
        *(f"{tag} {name}" for tag in ("img", "source") for name in ("src", "srcset", "data-src", "data-srcset")),
        *(f"{tag} data-src" for tag in ("video", "audio")),
        *(f"video {name}" for name in ("src", "poster")),
        *("audio src", "track src", "embed src", "object data", "script src", "input src"),
        *(f"{tag} background" for tag in BACKGROUNDS),
        "link imagesrcset",
        *(f"{tag} {name}" for tag in ("image", "use", "feimage", "script") for name in ("href", "xlink:href")),
        *(CSS_IMPORT, CSS_URL),
    }
)

#: Relations of sitemaps: of `Sitemap:` lines of robots.txt, of what an index lists, and of what a listed index lists.
SITEMAP, *INDEXED = ("sitemap", "sitemap index", "sitemap index index")
#: The same where a site's robots.txt names a sitemap of another host (sitemaps.org, "Sitemaps & Cross Submits").
_ELSEWHERE = " elsewhere"
SITEMAPS_ELSEWHERE = frozenset(relation + _ELSEWHERE for relation in (SITEMAP, *INDEXED))

_PREFIX = "redirect "

#: All of them, and what they redirect to.
SITEMAPS = frozenset(
    prefix + relation for relation in (SITEMAP, *INDEXED, *SITEMAPS_ELSEWHERE) for prefix in ("", _PREFIX)
)

#: Relations of what a redirect leads to: one that moved a requisite or a sitemap says which kind, as `redirect img src`, so that
#: its target is one too.
REDIRECTS = frozenset({"redirect", *(_PREFIX + relation.removeprefix(_PREFIX) for relation in RELATIONS | SITEMAPS)})


def redirect_of(relation: str) -> str:
    """The relation of where something that was found by `relation` redirects to."""
    kind = relation.removeprefix(_PREFIX)
    return _PREFIX + kind if kind in RELATIONS or kind in SITEMAPS else "redirect"


def sitemap_relation(relation: str, *, is_elsewhere: bool) -> str:
    """The relation of a sitemap; `is_elsewhere`: it lies on another host than the robots.txt that led to it."""
    return relation.removesuffix(_ELSEWHERE) + _ELSEWHERE if is_elsewhere else relation


def level_of(relation: str) -> str:
    """How deep in indexes a sitemap of this relation stands, in the words of one on its own site."""
    return relation.removeprefix(_PREFIX).removesuffix(_ELSEWHERE)


def is_elsewhere(relation: str, at: str, source: str) -> bool:
    """Whether the site whose robots.txt led to a sitemap is not the host that it lies on (`at`); `source` is the host of the
    document that it was found on, by this relation."""
    return relation.endswith(_ELSEWHERE) or (relation.startswith(_PREFIX) and at != source)


def listed_relation(relation: str) -> str:
    """The relation of the sitemaps that an index lists which was itself found by `relation`; empty where they are too deep."""
    level = level_of(relation)
    if level == INDEXED[-1]:
        return ""
    return sitemap_relation(
        INDEXED[-1] if level == INDEXED[0] else INDEXED[0], is_elsewhere=relation.endswith(_ELSEWHERE)
    )


def leads_beside(relation: str, is_same_host: bool) -> bool:
    """Whether something that a sitemap leads to is fetched off scope, as the site wants it whose robots.txt led there: what the
    sitemap redirects to, and further sitemaps on its own host."""
    if relation.startswith(_PREFIX):
        return relation in SITEMAPS
    return is_same_host and relation in SITEMAPS_ELSEWHERE


def belongs(relation: str, source_relation: str) -> bool:
    """Whether something found by `relation` on what was itself found by `source_relation` is fetched off scope too.

    One hop from a page; from there on only what style sheets name, and of those only one import deep. So the way ends
    whatever a server says: page, sheet, imported sheet, picture. Redirects are no hops; they have a limit of their own.
    """
    if relation not in RELATIONS:
        return relation.startswith(_PREFIX) and relation.removeprefix(_PREFIX) in RELATIONS
    source_kind = source_relation.removeprefix(_PREFIX)
    if relation == CSS_IMPORT:
        return source_kind != CSS_IMPORT
    return relation == CSS_URL or source_kind not in RELATIONS


# -- from a link to a task: depth, and redirects in a row


def task_of(source: Task, url: str, relation: str, request: Requested | None = None) -> Task:
    """The task for a link that was found on `source` by this relation; `url` is canonical."""
    hops = source.hops + 1 if relation in REDIRECTS else 0
    depth = source.depth if keeps_depth(relation) else source.depth + 1
    return Task(url, host_of(url), depth, source.url, relation, hops=hops, request=request)


def child_depth(depth: int, relation: str) -> int:
    """The depth of what a page at `depth` leads to: a redirect's target keeps the depth of its source, parts of a page too."""
    return depth if keeps_depth(relation) else depth + 1


def parent_depth(depth: int, relation: str) -> int:
    """The depth of the page that leads to what is at `depth`: the other way round."""
    return depth if keeps_depth(relation) else max(0, depth - 1)


#: Whether what is found by a relation is no further from the seeds than what it was found on.
keeps_depth: Callable[[str], bool] = frozenset((*REDIRECTS, *RELATIONS)).__contains__


# -- decisions: done, back to its queue, postponed, tried again later, or given up
# Politeness rules make one when an answer comes in; the commit makes it durable, and the frontier goes by it.


class Disposition(Enum):
    """Decision about a page after an answer."""

    DONE = "done"
    """Its story ends with this outcome."""
    KEEP = "keep"
    """Back to the head of its host's queue; no try is spent."""
    POSTPONE = "postpone"
    """Back to the queue after `wait` seconds, behind other pages; no try is spent."""
    RETRY = "retry"
    """Another try after `wait` seconds; one is spent."""
    GONE = "gone"
    """Its tries are spent: `gone_after_retries`."""


class RetryDecision(msgspec.Struct, frozen=True, gc=False):
    """Decision about a page, and the seconds after which it may be tried again."""

    what: Disposition
    wait: float = 0.0


DONE = RetryDecision(Disposition.DONE)
KEEP = RetryDecision(Disposition.KEEP)
GONE = RetryDecision(Disposition.GONE)


# -- leases
# A *life* is one process of a crawler, from its start to its end. A lease belongs to a life: a crawler that begins a new one has
# forgotten what the old one had in hand, and says so by its name.


class LeasedTask(msgspec.Struct, frozen=True, gc=False):
    """A task for the crawler of one life, and for no other."""

    task: Task
    life: str


class LeaseRenewal(msgspec.Struct, frozen=True, gc=False):
    """The crawler is there: it keeps what it has, and takes more."""

    life: str


# -- set aside: these URLs wait behind everything else, and are not lost

#: Bits of a family's identifier: ten hexadecimal digits, which people can copy.
_BITS = 40


class Family(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """URLs of one owner that are alike. New fields go to the end, with a default: kept ones stay readable."""

    owner: str
    """A host; or a registered domain behind `*.`, for hosts that the domain invents."""
    part: str
    """Which of its URLs, as a person reads it: a path with `#` for numbers, `*` for identifiers, `**` for anything."""
    why: str = ""
    """The trap's name, as `trap:calendar`. It is no part of the identity."""
    skipped: int = 0
    """Directories at the beginning of the path that are not masked in `part`."""

    @property
    def key(self) -> bytes:
        """Its key among those of its owner."""
        text = f"{self.owner} {self.part}".encode("utf-8", "surrogatepass")
        return (xxh3_64_intdigest(text) >> 64 - _BITS).to_bytes(_BITS // 8)

    @property
    def id(self) -> str:
        """Its name for a person."""
        return self.key.hex()

    @property
    def text(self) -> str:
        """Owner and part, as a person reads them: a part is a path, or the name of a shape that URLs of any path have."""
        return f"{self.owner} ({self.part})" if self.part[:1].isalpha() else f"{self.owner}{self.part}"


class SetAside(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A family of which URLs are, or were, set aside. New fields go to the end, with a default."""

    family: Family
    count: int = 0
    """URLs that are set aside."""
    probes: int = 0
    """URLs that were fetched all the same, to see whether there is anything new."""
    last_probes: int = 0
    """Those of them that were fetched when nothing else was left."""
    serial: int = 0
    """The next chunk."""
