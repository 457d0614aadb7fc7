"""The runner: takes a crawler and a source of pages, and yields what comes home (decision 81).

Place in the flow: the command line runs crawlers here at home, and a runtime beside the data. The runner itself opens neither a
file nor a socket. :class:`CrawlerRun` says which URL it wants, in the order of the crawler's traversal, and is told the answer,
so it runs in a process that has nothing but a pipe; :func:`run_crawler` is the loop over a source.
"""

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from gossamer.documents.document import Document
from gossamer.frontier.contract import LEFT, Traversal
from gossamer.frontier.order import BreadthFirst, DepthFirst, HostBreadthFirst
from gossamer.mobile.crawler import (
    ERROR_ROW,
    MAX_SHORT,
    SCHEMES,
    TOLD_ERRORS,
    BroughtPage,
    CrawlerBatch,
    IrrelevantRow,
    JourneySummary,
    MobileCrawler,
    RedirectRow,
    TravelLimits,
)
from gossamer.mobile.judging import Installed, JudgedVisit, PageJudge, brought, headed, size_of, status_of
from gossamer.mobile.wire import BATCH
from gossamer.values.body import sha1_base32
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task, task_of
from gossamer.values.url import canonical, host_of
from gossamer.values.visit import Link, Response, Visit

#: The shipped traversals that never come to a URL twice, by the names that `--strategy` has for them.
TRAVERSALS: dict[str, type[BreadthFirst | DepthFirst]] = {
    "breadth": BreadthFirst,
    "depth": DepthFirst,
    "host-breadth": HostBreadthFirst,
}

#: In the place of a depth: the URL was handed out, or home knows it.
_DONE = -1


class Itinerary:
    """The URLs of one crawler, each handed out once, on the shortest way that is known when its turn comes."""

    def __init__(self, traversal: str, limits: TravelLimits, known: Iterable[str]) -> None:
        self._traversal: Traversal = TRAVERSALS[traversal]()
        self._limits = limits
        self._depths: dict[str, int] = dict.fromkeys(known, _DONE)
        self._lanes: dict[int, deque[Task]] = {}
        self._levels: list[int] = []
        self.waiting = 0
        """URLs that wait to be handed out."""
        self.discovered = 0
        """URLs that were found, beside those that home knows."""

    def begin(self, seed: str, depth: int = 0) -> None:
        """Add a seed, whether home knows it or not; `seed` is canonical, and `depth` is the one that home has met it at."""
        if self._depths.get(seed, _DONE) == _DONE:
            self._add(Task(seed, host_of(seed), depth))

    def lead(self, source: Task, links: Iterable[Link]) -> dict[str, int]:
        """Add what a page leads to; how many links a limit kept out, by its name (`depth`, `urls`)."""
        depths = self._depths
        # Most links of a page are known, so that a task is made of few.
        tasks = [
            task_of(source, link.url, link.relation)
            for link in links
            if (before := depths.get(link.url)) is None or before > source.depth
        ]
        followed = self._traversal.follow(tasks, source)
        out: dict[str, int] = {LEFT: len(tasks) - len(followed)} if len(followed) < len(tasks) else {}
        for task in followed:
            before = depths.get(task.url)
            if before is not None and before <= task.depth:
                continue
            if self._limits.depth is not None and task.depth > self._limits.depth:
                out["depth"] = out.get("depth", 0) + 1
            elif before is None and self.discovered >= self._limits.urls:
                out["urls"] = out.get("urls", 0) + 1
            else:
                self._add(task)
        return out

    def _add(self, task: Task) -> None:
        if self._depths.get(task.url, _DONE) == _DONE:
            self.waiting += 1
            self.discovered += 1
        self._depths[task.url] = task.depth
        level = self._traversal.level(task, 0)
        if level not in self._lanes:
            self._lanes[level] = deque()
            heapq.heappush(self._levels, level)
        self._lanes[level].append(task)

    def next(self) -> Task | None:
        """The task whose turn it is; None where none waits."""
        while self._levels:
            level = self._levels[0]
            lane = self._lanes[level]
            while lane:
                task = lane.popleft()
                # A shorter way was found: the task for that one stands, or stood, in another place.
                if self._depths[task.url] == task.depth:
                    self._depths[task.url] = _DONE
                    self.waiting -= 1
                    return task
            heapq.heappop(self._levels)
            del self._lanes[level]
        return None


#: Rules of refused links that are counted by name; texts of strangers can make more of them, which are one.
MAX_RULES = 200
_OTHER = "other"
#: About as many bytes as an external URL and a row take in a batch beside their texts.
_ENTRY = 20

Fetch = Callable[[Task], Response]
"""A source of pages: the answer for `task.url`. It decides what may be read at all; whatever it refuses has an outcome."""

#: Seconds after which what was found goes home, however little it is: a crawler may look through a large site for few pages.
HELD = 10.0


class CrawlerRun:
    """One journey of a crawler. Ask :meth:`next`, answer by :meth:`take`, and :meth:`finish` at the end. Raises CrawlerRefused:
    an expression of the program cannot be read. Raises UsageError: a processor that it names is not installed."""

    def __init__(
        self,
        crawler: MobileCrawler,
        installed: Installed | None = None,
        clock: Callable[[], float] = time.monotonic,
        cuts: Sequence[int] = (),
    ) -> None:
        """Begin a journey of a checked crawler, which may name the installed processors. The clock gives seconds, for the limit
        of time and for the time that a batch waits; `cuts` says of each batch that an earlier run made, after how many answers:
        this run makes the same ones."""
        program = crawler.program
        seeds = tuple(dict.fromkeys(map(canonical, program.seeds)))
        self._crawler = crawler
        self._digest = program.digest
        self._judge = PageJudge(crawler, seeds, installed or {})
        self._itinerary = Itinerary(program.traversal, program.limits, map(canonical, crawler.facts.known))
        depths = dict(zip(map(canonical, program.seeds), crawler.facts.depths, strict=False))
        for seed in sorted(seeds, key=lambda seed: depths.get(seed, 0)):
            self._itinerary.begin(seed, depths.get(seed, 0))
        self._have = frozenset(crawler.facts.fingerprints)
        self._firsts: dict[str, str] = {}
        """Digest of a relevant document -> its first URL."""
        self._clock = clock
        self._began = clock()
        self._cuts = cuts
        self._tells_redirects = program.bring.errors and program.version > 1
        self._external: set[str] = set()
        self._counts = dict.fromkeys(("fetched", "pages", "relevant", "irrelevant", "not_expanded"), 0)
        self._counts |= dict.fromkeys(("duplicates", "known", "bytes", "brought"), 0)
        self._outcomes: dict[str, int] = {}
        self._rejected: dict[str, int] = {}
        self._dropped: dict[str, int] = {}
        self._sequence = 0
        self._limit = ""
        self._begin_batch()

    def _begin_batch(self) -> None:
        self._pages: list[BroughtPage] = []
        self._rows: list[IrrelevantRow] = []
        self._redirects: list[RedirectRow] = []
        self._outside: list[str] = []
        self._outside_depths: list[int] = []
        self._size = 0
        self._batch_began = self._clock()

    # -- what is asked for

    def next(self) -> Task | None:
        """The next URL to fetch; None where the journey is over: everything was asked for, or a limit ends it."""
        if not self._limit and self._itinerary.waiting:
            limits, counts = self._crawler.program.limits, self._counts
            most = {"pages": limits.pages, "bytes": limits.bytes, "brought": limits.brought}
            is_late = self._clock() - self._began >= limits.seconds
            reached = (name for name, number in most.items() if counts[name] >= number)
            self._limit = next(reached, "seconds" if is_late else "")
        return None if self._limit else self._itinerary.next()

    # -- what came of it

    def take(self, task: Task, response: Response) -> CrawlerBatch | None:
        """Judge an answer; the batch that is full with it, if it is."""
        counts = self._counts
        counts["fetched"] += 1
        _count(self._outcomes, str(response.outcome))
        found = self._judge.judge(task, response)
        if found.document is not None:
            counts["bytes"] += len(response.document)
            counts["pages"] += found.visit.is_page
            counts["not_expanded"] += not found.is_expanded
            self._settle(found)
        elif response.outcome in TOLD_ERRORS and self._crawler.program.bring.errors:
            self._add_row(found.visit, 0, f"{ERROR_ROW}{response.outcome}")
        elif response.outcome is Outcome.REDIRECT and self._tells_redirects:
            visit = found.visit
            target = next((link.url for link in (*visit.links, *visit.refused) if link.url.startswith(SCHEMES)), "")
            self._redirects.append(RedirectRow(visit.url, status_of(visit), target, visit.task.depth))
            self._size += _ENTRY + len(visit.url) + len(target)
        self._follow(found)
        return self._batch(None) if self._is_due() else None

    def _is_due(self) -> bool:
        """Whether the batch goes home now: it is full, or has waited for long. A run again goes by answers, as clocks differ."""
        if self._size >= BATCH:
            return True
        if self._sequence < len(self._cuts):
            return self._counts["fetched"] == self._cuts[self._sequence]
        return self._size > 0 and self._clock() - self._batch_began >= HELD

    def finish(self) -> CrawlerBatch:
        """The last batch, with the summary of the journey."""
        counts = {name: number for name, number in self._counts.items() if name != "brought"}
        summary = JourneySummary(
            "limit" if self._limit else "finished",
            self._limit,
            **counts,
            discovered=self._itinerary.discovered,
            queued=self._itinerary.waiting,
            outcomes=dict(self._outcomes),
            rejected=dict(self._rejected),
            dropped={**self._dropped, **self._judge.broken},
            seconds=max(0.0, self._clock() - self._began),
        )
        return self._batch(summary)

    def _batch(self, summary: JourneySummary | None) -> CrawlerBatch:
        taken = tuple(self._pages), tuple(self._rows), tuple(self._redirects)
        outside = tuple(self._outside), tuple(self._outside_depths)
        batch = CrawlerBatch(self._digest, self._sequence, self._crawler.id, *taken, *outside, summary)
        self._sequence += 1
        self._begin_batch()
        return batch

    def _settle(self, found: JudgedVisit) -> None:
        """Take the document along if it is relevant, otherwise count it."""
        visit, document = found.visit, found.document
        assert document is not None
        rule = self._judge.irrelevance(visit)
        if not rule:
            page = self._page(visit, document)
            if not found.is_expanded:
                page = msgspec.structs.replace(page, is_expanded=False)
            self._pages.append(page)
            size = size_of(page)
            self._size += size
            self._counts["brought"] += size
            self._counts["relevant"] += 1
            return
        self._counts["irrelevant"] += 1
        if self._crawler.program.bring.irrelevant == "rows":
            self._add_row(visit, len(visit.response.document), rule[:MAX_SHORT])

    def _add_row(self, visit: Visit, size: int, rule: str) -> None:
        mime = visit.media_type[:MAX_SHORT] if size else ""
        self._rows.append(IrrelevantRow(visit.url, status_of(visit), mime, size, rule))
        self._size += _ENTRY + len(visit.url) + len(mime) + len(rule)

    def _page(self, visit: Visit, document: Document) -> BroughtPage:
        digest = sha1_base32(visit.response.document)
        # A cut document is not the whole one, and an empty one is no duplicate.
        comparable = visit.response.outcome is Outcome.OK and len(visit.response.document) > 0
        first = self._firsts.setdefault(digest, visit.url) if comparable else visit.url
        if first != visit.url:
            self._counts["duplicates"] += 1
            return msgspec.structs.replace(headed(visit, digest, self._drop), duplicate_of=first)
        is_known = digest in self._have
        self._counts["known"] += is_known
        rules = self._crawler.program.bring
        return brought(visit, document, rules, digest, is_known=is_known, count=self._drop)

    def _follow(self, found: JudgedVisit) -> None:
        """Let the itinerary have what passed the filters, and remember what leads out of scope."""
        visit = found.visit
        for rule, number in visit.rejected.items():
            _count(self._rejected, rule, number)
        for name, number in self._itinerary.lead(visit.task, visit.links).items():
            _count(self._rejected, f"limit:{name}", number)
        for link in found.outside:
            if link.nofollow or link.url in self._external:
                continue
            if len(self._external) >= self._crawler.program.limits.external:
                self._drop("external")
                continue
            self._external.add(link.url)
            self._outside.append(link.url)
            if self._crawler.program.limits.depth is not None:
                self._outside_depths.append(task_of(visit.task, link.url, link.relation).depth)
            self._size += _ENTRY + len(link.url)

    def _drop(self, name: str) -> None:
        _count(self._dropped, name)


def run_crawler(
    crawler: MobileCrawler,
    fetch: Fetch,
    installed: Installed | None = None,
    clock: Callable[[], float] = time.monotonic,
    cuts: Sequence[int] = (),
) -> Iterator[CrawlerBatch]:
    """Run a crawler to its end; batches as they fill, the last with the summary.
    Raises CrawlerRefused, UsageError: as :class:`CrawlerRun`."""
    run = CrawlerRun(crawler, installed, clock, cuts)
    while (task := run.next()) is not None:
        batch = run.take(task, fetch(task))
        if batch is not None:
            yield batch
    yield run.finish()


def _count(counts: dict[str, int], name: str, number: int = 1) -> None:
    name = name[:MAX_SHORT]
    if name not in counts and len(counts) >= MAX_RULES:
        name = _OTHER
    counts[name] = counts.get(name, 0) + number
