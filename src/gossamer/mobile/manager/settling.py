"""The two ends of a crawler's journey: a crawler made of the crawl's own options, and the rest of a batch that came home.

Place in the flow: the manager has URLs that wait, and asks here for the crawler that is to go after them. When the documents of a
batch are committed, it has the rest settled: external URLs, counts and the next sequence, all in one group of the ledger. The
commit's own rules say which links are queued (:mod:`gossamer.storage.commit.queueing`), and the filters of the crawl which are
followed.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from gossamer.expressions.contract import TaskFilter, UrlFilter
from gossamer.frontier.contract import Prioritizer, Traversal
from gossamer.mobile.crawler import (
    MAX_SEEDS,
    BringRules,
    CrawlerBatch,
    CrawlerFacts,
    JourneySummary,
    MobileCrawler,
    MobileProgram,
    TravelLimits,
)
from gossamer.mobile.manager.book import CrawlerBook, CrawlerRecord
from gossamer.mobile.manager.lent import LentUrls
from gossamer.parsing.filters import judged
from gossamer.storage.commit.host_states import CommitSheet
from gossamer.storage.commit.queueing import Choosers, TaskQueueing
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.seen.contract import SeenSet
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import EXTERNAL, Link, Visit
from gossamer.values.visit import Response as _Response

#: Outcomes at the runtime that are counted by name: what strangers write can make more of them.
_MAX_OUTCOMES = 50


class External(msgspec.Struct, frozen=True):
    """The parts that have a say in external URLs."""

    filters: Sequence[UrlFilter]
    gates: Sequence[TaskFilter]
    count: Callable[[str], None]


class Settling:
    """Commits what a batch brings beside documents."""

    def __init__(
        self,
        ledger: Ledger,
        book: CrawlerBook,
        lent: LentUrls,
        external: External,
        choosers: tuple[SeenSet, Traversal, Prioritizer],
    ) -> None:
        self._ledger = ledger
        self._book = book
        self._lent = lent
        self._external = external
        self._choosers = choosers

    def settle(self, record: CrawlerRecord, crawler: MobileCrawler, batch: CrawlerBatch) -> None:
        """Commit the rest of a batch whose documents are committed.

        Args:
            record: moved on behind the batch.
            crawler: as it was sent.
            batch: checked.
        """
        with self._ledger.group() as group:
            self._queue(crawler, batch, group)
            if batch.summary is None:
                self._book.put(record, group)
            else:
                self._end(record, crawler, batch.summary, group)

    def _queue(self, crawler: MobileCrawler, batch: CrawlerBatch, group: Group) -> None:
        """External URLs become tasks, as far as the crawl follows them."""
        if not batch.external:
            return
        seed = crawler.program.seeds[0]
        links = tuple(Link(url, EXTERNAL) for url in batch.external)
        page = Visit(Task(seed, host_of(seed)), _Response(Outcome.OK), links=links)
        passed = judged(page, (), self._external.filters, self._external.count)
        depths = dict(zip(batch.external, batch.depths, strict=False))
        tasks = [Task(link.url, host_of(link.url), depths.get(link.url, 1), seed, EXTERNAL) for link in passed.links]
        seen, traversal, prioritizer = self._choosers
        choosers = Choosers(seen, traversal, prioritizer, self._external.gates, self._ledger.depths.limit)
        new = TaskQueueing(CommitSheet(), choosers, group).received(tasks)
        group.count("crawlers:external", len(batch.external))
        group.count("crawlers:external_new", new)

    def _end(self, record: CrawlerRecord, crawler: MobileCrawler, summary: JourneySummary, group: Group) -> None:
        """A crawler is home: what it had with it is seen to, unless a limit has ended it before."""
        counts = crawler.program.bring.irrelevant == "counts"
        if counts and summary.irrelevant:
            group.count(f"outcome:{Outcome.IRRELEVANT}", summary.irrelevant)
        group.count("crawlers:fetched", summary.fetched)
        group.count("crawlers:bytes", summary.bytes)
        for name, number in list(summary.outcomes.items())[:_MAX_OUTCOMES]:
            if name in Outcome.__members__.values():
                group.count(f"crawlers:outcome:{name}", number)
        tasks = [one for host in record.hosts for one in self._lent.of_host(host) if one.crawler == record.id]
        if summary.ended == "limit" and summary.limit == "pages" and record.share:
            # The limit of the whole crawl ended it: if there is room again, another one goes on.
            self._lent.assign(tasks, "", group)
            for host in record.hosts:
                self._book.has_walked(host, min(summary.pages, crawler.program.limits.pages), group)
        else:
            if summary.ended == "limit":
                group.count(f"cut:crawler:{summary.limit[:20]}", summary.queued)
            self._lent.settle(tasks, group)
        self._book.end(record, "cut" if summary.ended == "limit" else "home", group)


# Crawlers out of a crawl's options.

CrawlScope = Literal["page", "prefix", "host", "domain", "any"]

#: URLs out of scope that one crawler brings home at most, where the crawl wants them.
MAX_EXTERNAL = 100_000


class CrawlerTemplate(msgspec.Struct, frozen=True):
    """The settings that crawlers of one crawl have in common."""

    scope: CrawlScope = "host"
    seeds: tuple[str, ...] = ()
    """Of the crawl: its scope is around these."""
    follow: str = ""
    expand: str = ""
    store: str = ""
    traversal: Literal["breadth", "depth", "host-breadth"] = "breadth"
    depth: int | None = None
    urls: int | None = None
    """Different URLs of one host."""
    bring: BringRules = BringRules()
    seconds: float = 86_400.0
    brought: int = 10_000_000_000


def crawler_for(
    template: CrawlerTemplate, tasks: Sequence[Task], identity: str, pages: int | None = None
) -> MobileCrawler:
    """The crawler that goes after these tasks, of one runtime's hosts.

    Args:
        template: of the crawl.
        tasks: at most `MAX_SEEDS`; their hosts are those that it is granted.
        identity: of its journey.
        pages: how many it may visit; None where the crawl has no limit.
    """
    hosts = sorted({task.host for task in tasks})
    limits = TravelLimits(
        depth=template.depth,
        external=MAX_EXTERNAL if _leads_out(template, hosts) else 0,
        brought=template.brought,
        seconds=template.seconds,
    )
    if pages is not None:
        limits = msgspec.structs.replace(limits, pages=max(1, pages))
    if template.urls is not None:
        limits = msgspec.structs.replace(limits, urls=min(limits.urls, template.urls * len(hosts)))
    program = MobileProgram(
        tuple(task.url for task in tasks),
        name="gossamer",
        scope=template.scope if template.scope in ("page", "prefix") else "host",
        around=_around(template, hosts),
        traversal=template.traversal,
        follow=template.follow,
        expand=template.expand,
        store=template.store,
        limits=limits,
        bring=template.bring,
    )
    depths = tuple(task.depth for task in tasks)
    return MobileCrawler(program, CrawlerFacts(depths=depths if any(depths) else ()), identity)


def _around(template: CrawlerTemplate, hosts: Sequence[str]) -> tuple[str, ...]:
    """The centre of the program's scope: the seeds of its hosts, or its hosts where the crawl has no seed there."""
    if template.scope in ("page", "prefix"):
        own = frozenset(hosts)
        return tuple(seed for seed in template.seeds if host_of(seed) in own)[:MAX_SEEDS]
    return tuple(f"http://{host}/" for host in hosts)


def _leads_out(template: CrawlerTemplate, hosts: Iterable[str]) -> bool:
    return template.scope in ("any", "domain") or not {host_of(seed) for seed in template.seeds} <= set(hosts)
