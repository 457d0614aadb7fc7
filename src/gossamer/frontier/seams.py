"""Contracts of subjects that the frontier works with: recrawl (:class:`Revisits`), mobile crawlers (:class:`LentHosts`) and focused
crawls (:class:`Relevance`). Suites: `gossamer.testing.check_revisit_policy`, `check_relevance`.

A recrawl decides when a page is visited again, queues it at that time, and knows its earlier state: when a visit ends, the ledger
of revisits asks a policy for the time of the next one; the frontier asks the ledger which pages are due; the stage `changes` asks
it for the earlier state of a page, and compares texts if the bytes differ.

The URLs of *lent* hosts are fetched by mobile crawlers, and not by the fetchers. The ledger of the stages puts their tasks here,
in the group that found them. The crawler manager takes them, sends crawlers, and says what became of them. *Lent* is a state
beside queued, in flight, owed and done (Agarwal and others, 3.1): a URL is in one of them. A *relevance* scores how well a page
fits the subject of a focused crawl.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from gossamer.storage.contract import Space
from gossamer.storage.ledger.contract import Group
from gossamer.values.page_history import NO_SIGNALS, USUAL, Belief, KnownPage, Signals
from gossamer.values.task import Task
from gossamer.values.visit import Visit

#: URLs of lent hosts, under their host. They wait for a crawler, or a crawler has them with it. The key is that of URL
#: and crawler.
LENT = Space("lent", value_bytes=1 << 20, host_bytes=256 << 20)

#: Crawlers on their way, under no host: the outbox and the inbox of the manager (Agarwal and others, 3.1).
CRAWLERS = Space("crawlers", value_bytes=8 << 20, common_bytes=512 << 20)


class LentTask(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A URL of a lent host."""

    task: Task
    crawler: str = ""
    """The crawler that has the URL; empty while the URL waits for one."""
    is_done: bool = False
    """Whether the page came home as parts without links. A fetch of the host without that crawler begins with it again."""


class LastCrawler(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The crawler that came home from a host last. It is kept under the host, in the space of crawlers."""

    id: str
    runtime: str


#: Its key.
LAST_CRAWLER = b"last"


class LentHosts(Protocol):
    """The side of a lender that the frontier uses.

    Promise: when `is_out` becomes false, when pages are free again, or tasks are in the queues, the watching frontier is told.
    """

    @property
    def is_out(self) -> bool:
        """Whether URLs wait for a crawler, or crawlers are away. If so, the crawl goes on."""
        ...

    @property
    def pages(self) -> int:
        """Pages within the limit of a crawl that are reserved for crawlers on their way."""
        ...

    def watch(self, told: Callable[[], None], room: Callable[[], int | None]) -> None:
        """Call `told` when there is news; `room` returns how many more pages may be lent, None for any number."""
        ...

    def end(self) -> None:
        """End with the crawl: send and take in nothing more. Crawlers that are away stay so for the next run."""
        ...


class Lender(Protocol):
    """The side of a lender that the ledger in front uses. All changes are staged in a group, and hold with it.

    Promises:
        1. A task stays lent until a crawler brings it, or its crawler has ended, or its host was recalled.
        2. The counter `lent` is the number of lent tasks.
    """

    def lends(self, host: str) -> bool:
        """Return whether crawlers fetch the URLs of this host: a runtime has the host, and it was not recalled."""
        ...

    def lend(self, tasks: Sequence[Task], group: Group) -> None:
        """Stage tasks of lent hosts. If a crawler brings a page, it keeps the tasks of its hosts that the page links to."""
        ...

    def brought(self, task: Task, crawler: str, group: Group, *, knows_links: bool) -> None:
        """Stage the end of a task that came home. A task without its links is kept until the crawler has ended."""
        ...


class Outlook(msgspec.Struct, frozen=True, gc=False):
    """Beliefs about a page beside the results of its visits, and the price of a visit."""

    belief: Belief = USUAL
    """How often the page changes."""
    weight: float = 1.0
    """Importance of the page; 1 is usual."""
    signals: Signals = NO_SIGNALS
    """How reliable the host's announcements of changes have been."""
    price: float = 3_600.0
    """Seconds of freshness of a page of weight 1 that a visit must be worth. It follows the allowed rate of visits."""
    longest: float = 90 * 86_400.0
    """Seconds after which the page is visited in any case."""


class RevisitPolicy(Protocol):
    """Decides how long a page waits for its next visit.

    Promises:
        1. It is pure: it gives the same page with the same outlook the same interval, and remembers nothing between calls.
        2. The interval is a number above 0, in seconds. The user's bounds and politeness take precedence over it.
    """

    @property
    def is_priced(self) -> bool:
        """Whether the interval grows with the price. If so, the schedule sets the price, and asks again when a page is due."""
        ...

    def interval(self, page: KnownPage, outlook: Outlook) -> float:
        """Return the seconds from this visit, which `page` includes, to the next."""
        ...


class KnownPages(Protocol):
    """Knows the results of earlier visits."""

    def known(self, task: Task) -> KnownPage | None:
        """Return the state of a task's page before its visit; None if it was never visited, or is not visited again."""
        ...


class PageTexts(Protocol):
    """Makes fingerprints of the texts of pages, to compare two versions of a page.

    Promises:
        1. The same text has the same fingerprint, and similar texts have fingerprints that differ in few bits.
        2. The fingerprint is 0 if the text is too short or cannot be read. Only the first mebibytes of a page are read.
    """

    def of_visit(self, visit: Visit) -> int:
        """Return the fingerprint of a page that was just fetched."""
        ...

    def of_known(self, url: str, page: KnownPage) -> int:
        """Return the fingerprint of a page as the archive keeps it."""
        ...


class Revisits(Protocol):
    """Keeps the known pages, each with the time of its next visit. Until then they count neither as queued nor as discovered.

    Promises:
        1. The first `wake` at or after a page's time that has room queues the page. It never queues the page earlier, and
           queues it once for each visit.
        2. After a kill no page is forgotten, and none comes twice.
        3. Memory is bounded, for any number of pages.
    """

    def next_due(self) -> float:
        """Return when `wake` will find a page, in seconds since the epoch; infinite if no page is visited again."""
        ...

    def wake(self, now: float, waiting: int) -> int:
        """Queue some of the pages that are due, in a group of their own.

        Args:
            now: wall time, in seconds since the epoch.
            waiting: tasks in the queues.

        Returns:
            The number of pages that were queued.
        """
        ...


#: Most characters of a page's text, and of the text around a link, that a relevance gets.
MOST_TEXT, MOST_AROUND = 50_000, 200

#: Counters of the ledger: pages that were judged, and those of them that are relevant.
JUDGED, RELEVANT = "focus:judged", "focus:relevant"


class PageWords(msgspec.Struct, frozen=True):
    """The parts of a page that its relevance can depend on."""

    url: str
    title: str = ""
    text: str = ""
    """The prose of the page, :data:`MOST_TEXT` characters at most."""
    language: str = ""


class LinkWords(msgspec.Struct, frozen=True):
    """The parts of a link that its relevance can depend on."""

    url: str
    anchor: str = ""
    """The text of the link itself."""
    around: str = ""
    """The text before and after the link on the page, :data:`MOST_AROUND` characters at most."""


class Relevance(Protocol):
    """Scores pages and links.

    Promises:
        1. A score is a number from 0 (not relevant) to 1. Links get one score each, in order.
        2. Its time is linear in the text and its memory is bounded, for every page.
        3. It never raises an exception, for any page and link.
    """

    def page(self, page: PageWords) -> float:
        """Return how relevant a fetched page is."""
        ...

    def links(self, links: Sequence[LinkWords], source: PageWords, score: float) -> Sequence[float]:
        """Return how relevant the pages that `source` links to are likely to be.

        Args:
            links: links of `source`.
            source: the page with the links.
            score: the score of `source`, reduced by the cost of tunnelling.
        """
        ...
