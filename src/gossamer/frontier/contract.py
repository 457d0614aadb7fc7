"""Contracts of the frontier: politeness and its rules, prioritizers, traversals, and flights; and of subjects that it works with:
recrawl (:class:`Revisits`), mobile crawlers (:class:`LentHosts`) and focused crawls (:class:`Relevance`).

Suites: `gossamer.testing.check_politeness_rule`, `check_prioritizer`, `check_traversal`, `check_revisit_policy`, `check_relevance`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from gossamer.storage.contract import Space
from gossamer.storage.ledger.contract import Group
from gossamer.values.page_history import NO_SIGNALS, USUAL, Belief, KnownPage, Signals
from gossamer.values.task import LAST_LEVEL, Answer, RetryDecision, Task
from gossamer.values.visit import Visit


class Politeness(Protocol):
    """Lets requests go out no earlier than host, domain, address and crawl allow, and decides what happens to a page after its
    answer.

    The frontier puts in hosts that have tasks, takes out the host whose turn it is, and reports when a request begins and
    when its answer has come. The committer asks for the ruling on a page, and keeps the notes that must outlive the process.

    Promises:
        1. A host never has more live requests than it is allowed, and the crawl waits for the host's delay after each.
        2. `next` returns only hosts that may be asked now: each of them once for each `put`, and never a blocked one.
        3. Every request that `begin` allowed gets one ruling, whichever caller brings its answer first.
        4. A host that was restored from its note is asked no earlier than it would have been without the restart.
        5. After `missed`, a host waits as it does after a failed request.
    """

    def put(self, host: str, address: str, level: int = 0) -> None:
        """Report that a host has tasks.

        Args:
            level: the level of its next task; 0 is the most urgent.
            address: the address of the host; empty if it is not known.
        """

    def next(self, now: float) -> str | float:
        """Take out and return the host whose turn it is. If there is none, return the monotonic time at which to call again."""

    def begin(self, task: Task, address: str, now: float) -> bool:
        """Report that a request for this task goes out to a host that `next` returned.

        Returns:
            True if the host may have one more request at the same time.
        """

    def answered(self, answer: Answer) -> None:
        """Report that an answer has come or will never come. The host becomes free, or waits. A second call does nothing."""

    def ruling(self, answer: Answer) -> RetryDecision:
        """Decide what happens to the page of this answer, and return the ruling. Call it once for each request."""

    def expected(self, answer: Answer) -> RetryDecision:
        """Return the ruling that `ruling` will give on this answer, and change nothing."""

    def pace(self, host: str, crawl_delay: float) -> float:
        """Set the `Crawl-delay` of a host in seconds (0 if it has none). Return the monotonic time until which the host waits."""

    def hold(self, task: Task, seconds: float) -> None:
        """Do not ask the endpoint of this task for this long, for example because its robots.txt is unreachable."""

    def missed(self, host: str) -> None:
        """Report that the name of a host has no address. The host waits for the next try, although no request was sent to it."""

    def received(self, identity: str, size: int) -> None:
        """Count bytes that a task has received against the bandwidth. Call it before you ask for the ruling."""

    def waits(self, host: str, now: float) -> float:
        """Return the seconds until this host may be asked; infinite while another request must end first."""

    def delay(self, host: str) -> float:
        """Return the seconds that the crawl waits between two requests to this host."""

    def delay_reason(self, host: str) -> str:
        """Return in one word why the host is not asked more often.

        The word is `setting`, `latency`, `robots`, `processor`, `errors` or `refusals`.
        """

    def slowed(self, count: int) -> Sequence[tuple[str, float, str]]:
        """Return the hosts with the longest waits for errors or refusals, each with its name, seconds and reason."""

    def block(self, name: str) -> None:
        """Stop asking this host or domain. The block is not kept, so the caller repeats it in each run.

        Raises:
            UsageError: `name` is not a host name.
        """

    def slow(self, host: str, seconds: float) -> None:
        """Leave at least this many seconds between two requests to a host, a day at most. The longest such time applies."""

    def rule_against(self, host: str) -> str:
        """Return the entry of the blocklist that blocks this host; empty if there is none."""

    def take_blocked(self) -> Sequence[str]:
        """Return the hosts that were removed since the last call because they are blocked."""

    def is_spent(self, host: str) -> bool:
        """Return whether the crawl may end without this host, because the host has used up its chances."""

    def closed(self, task: Task, now: float) -> float:
        """Return the seconds for which a task's endpoint (scheme, host, port) is not asked because it did not answer; 0 if it may
        be asked. Another endpoint of the same host may work."""

    def is_closed(self, host: str, now: float) -> bool:
        """Return whether a host waits because none of its known endpoints answers."""

    def meet(self, host: str, urls: Iterable[str]) -> None:
        """Report that a host has tasks for these URLs. If they name other endpoints than those that did not answer, the host need
        not wait."""

    def retry_wait(self, host: str, now: float) -> float:
        """Return the seconds that a host waits after a failure, a refusal or an unreachable robots.txt; 0 if it does not wait."""

    def at_work(self) -> Iterable[str]:
        """Return the hosts that were put in and whose turn has not come."""

    def note(self, host: str) -> bytes:
        """Return the state of this host that must be kept; empty if there is none."""

    def restore(self, host: str, note: bytes, *, clean: bool) -> None:
        """Restore a host from its :meth:`note`, unless it is known already; `clean` is False after a kill."""

    def hush(self) -> None:
        """Ask no host until the usual delay has passed once. Call it after a kill."""

    def forget(self, host: str) -> bool:
        """Free the memory of this host, whose note has been kept. Returns False while the host is busy."""


#: Levels of urgency: 0 is the most urgent.
LEVELS = 8


class TaskStanding(msgspec.Struct, frozen=True, gc=False):
    """Facts that the frontier knows about a task beside the task itself."""

    site: float = 0.5
    """Importance of the task's site, from 0 to 1; 0.5 if nothing is known about it."""
    in_degree: int = 0
    """Number of links to the task's host from pages of other hosts; 0 for a prioritizer that does not ask for it."""


class PolitenessRule(Protocol):
    """Lets hosts rest for reasons of its own, beside delay, refusals and robots.txt: by night, say, or for as long as a
    site's owner asks.

    A provider of the wiring, named in `rules = { hosts = [...] }` of the politeness provider.

    Promises:
        1. It only makes a host rest longer; it never shortens what the other rules say.
        2. It is asked each time when a host's turn has come, so it answers from memory, within microseconds.
    """

    @property
    def word(self) -> str:
        """One word, as `night`, by which `status` and `why` say that the host waits because of this rule."""

    def rest(self, host: str, wall: float) -> float:
        """Seconds for which the host is not asked from now on; 0 if it may be. `wall` is the time in seconds since the epoch."""


class Prioritizer(Protocol):
    """Chooses a front queue for each task.

    Promises:
        1. It returns one level for each task, in order, from 0 (most urgent) to `LEVELS` - 1.
        2. The level depends on the task and its standing alone, and is the same every time.
        3. It never raises an exception, for any canonical URL and standing.

    The frontier counts links, for `in_degree`, only for a prioritizer whose attribute `wants_in_degree` is true.
    """

    def levels(self, tasks: Sequence[Task], standings: Sequence[TaskStanding]) -> Sequence[int]:
        """Return a level for each of `tasks`; `standings` has their standings, in the same order."""


#: The last level within a host: the ledger keeps a level in one byte.
DEEPEST = LAST_LEVEL

#: The rule that links are counted under which a traversal does not go after.
LEFT = "strategy"


class Traversal(Protocol):
    """Orders tasks within a host, and hosts among each other (Hunyadi 2007, section 2.1). It does not decide when a host may
    be asked: that is politeness.

    Promises:
        1. `follow` returns some of the tasks that it was given, in order, each once.
        2. Levels within a host are from 0 (first) to :data:`DEEPEST`, those of hosts to :data:`LEVELS` - 1.
           They depend on task and urgency alone.
        3. A traversal that uses chance is seeded: the same calls give the same answers.
    """

    def follow(self, tasks: Sequence[Task], source: Task | None) -> Sequence[Task]:
        """Those of the new tasks of one page that are gone after; `source` is None for seeds."""

    def level(self, task: Task, urgency: int) -> int:
        """In which of its host's queues a task waits: the lower ones go first, and within one the oldest task.

        `urgency` is the prioritizer's level. Depth-first needs no stack: the deepest queue goes first.
        """

    def host_level(self, task: Task, urgency: int) -> int:
        """In which front queue a host stands whose next task is `task`."""


class Flights(Protocol):
    """Keeps track of tasks between hand-out and commit, by their identities.

    Frontier and committer share it, in one process. A visit that comes a second time, because a link resent it after a kill,
    has no flight any more and is dropped.

    Promise: for every departure exactly one arrival is accepted.
    """

    def depart(self, identity: str) -> None:
        """Note that this task was handed out."""

    def arrive(self, identity: str) -> bool:
        """Its visit is about to be committed: True the first time after a departure, False otherwise."""


# -- contracts of subjects
# A recrawl decides when a page is visited again, queues it at that time, and knows its earlier state. The URLs of *lent* hosts are
# fetched by mobile crawlers, and not by the fetchers: the ledger of the stages puts their tasks here, in the group that found them;
# the crawler manager takes them, sends crawlers, and says what became of them. *Lent* is a state beside queued, in flight, owed and
# done (Agarwal and others, 3.1): a URL is in one of them.

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

    @property
    def pages(self) -> int:
        """Pages within the limit of a crawl that are reserved for crawlers on their way."""

    def watch(self, told: Callable[[], None], room: Callable[[], int | None]) -> None:
        """Call `told` when there is news; `room` returns how many more pages may be lent, None for any number."""

    def end(self) -> None:
        """End with the crawl: send and take in nothing more. Crawlers that are away stay so for the next run."""


class Lender(Protocol):
    """The side of a lender that the ledger in front uses. All changes are staged in a group, and hold with it.

    Promises:
        1. A task stays lent until a crawler brings it, or its crawler has ended, or its host was recalled.
        2. The counter `lent` is the number of lent tasks.
    """

    def lends(self, host: str) -> bool:
        """Return whether crawlers fetch the URLs of this host: a runtime has the host, and it was not recalled."""

    def lend(self, tasks: Sequence[Task], group: Group) -> None:
        """Stage tasks of lent hosts. If a crawler brings a page, it keeps the tasks of its hosts that the page links to."""

    def brought(self, task: Task, crawler: str, group: Group, *, knows_links: bool) -> None:
        """Stage the end of a task that came home. A task without its links is kept until the crawler has ended."""


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

    def interval(self, page: KnownPage, outlook: Outlook) -> float:
        """Return the seconds from this visit, which `page` includes, to the next."""


class KnownPages(Protocol):
    """Knows the results of earlier visits."""

    def known(self, task: Task) -> KnownPage | None:
        """Return the state of a task's page before its visit; None if it was never visited, or is not visited again."""


class PageTexts(Protocol):
    """Makes fingerprints of the texts of pages, to compare two versions of a page.

    Promises:
        1. The same text has the same fingerprint, and similar texts have fingerprints that differ in few bits.
        2. The fingerprint is 0 if the text is too short or cannot be read. Only the first mebibytes of a page are read.
    """

    def of_visit(self, visit: Visit) -> int:
        """Return the fingerprint of a page that was just fetched."""

    def of_known(self, url: str, page: KnownPage) -> int:
        """Return the fingerprint of a page as the archive keeps it."""


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

    def wake(self, now: float, waiting: int) -> int:
        """Queue some of the pages that are due, in a group of their own.

        Args:
            now: wall time, in seconds since the epoch.
            waiting: tasks in the queues.

        Returns:
            The number of pages that were queued.
        """


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

    def links(self, links: Sequence[LinkWords], source: PageWords, score: float) -> Sequence[float]:
        """Return how relevant the pages that `source` links to are likely to be.

        Args:
            links: links of `source`.
            source: the page with the links.
            score: the score of `source`, reduced by the cost of tunnelling.
        """
