"""The rest of a batch, when its documents are committed: external URLs, counts, the next sequence, all in one group of the ledger.

Place in the flow: the manager calls it once for each batch. The commit's own rules say what is queued
(:mod:`gossamer.stages.commit.queueing`), and the filters of the crawl what is followed.
"""

from collections.abc import Callable, Sequence

import msgspec

from gossamer.contracts.filtering import TaskFilter, UrlFilter
from gossamer.contracts.ledger import Group, Ledger
from gossamer.contracts.prioritizing import Prioritizer
from gossamer.contracts.seen import SeenSet
from gossamer.contracts.traversal import Traversal
from gossamer.mobile.crawler import CrawlerBatch, JourneySummary, MobileCrawler
from gossamer.mobile.managing.book import CrawlerBook, CrawlerRecord
from gossamer.model.brought import EXTERNAL
from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.url import host_of
from gossamer.model.visit import Link, Visit
from gossamer.model.visit import Response as _Response
from gossamer.stages.commit.queueing import Choosers, TaskQueueing
from gossamer.stages.commit.sheet import CommitSheet
from gossamer.stages.url_filter.judging import judged
from gossamer.stores.lending.lent import LentUrls

#: Outcomes at the runtime that are counted by name: what strangers write can make more of them.
_MAX_OUTCOMES = 50


class External(msgspec.Struct, frozen=True):
    """Who has a say in external URLs."""

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

    def __repr__(self) -> str:
        return "<Settling>"

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
