"""Tasks and answers: a task goes to the fetchers, an answer says that the host is free again.

Beside them: the decision about a page after an answer, leases between the keeper of a queue and a crawler, and URLs that are
set aside because their part of a host looks like a trap.
"""

from enum import Enum

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import Requested, identity_of

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
