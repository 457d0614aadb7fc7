"""The crawler manager: a component that sends crawlers to the data, and lets what they bring join the crawl's own stream of visits.

    what is lent ──► crawler ──► outbox (ledger) ──► runtime
                                                        │
    visits ──► content-seen ──► ... ──► commit ◄──── batch ◄┘      then, in one group: sequence, counts, external URLs

Place in the flow: it stands beside the fetchers. Tasks of lent hosts wait in the ledger (:mod:`gossamer.mobile.manager.lent`); what
comes home goes the way of every visit, so that archive, tables and all who follow them learn of it as of any page. A batch is
acknowledged when all of it is committed: after a kill it comes again, and what was committed of it is left out.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from gossamer.documents.charset import media_type_of
from gossamer.engine.component import Producer
from gossamer.engine.ends import Out, Uses, UsesMany
from gossamer.engine.gate import Receipt, current
from gossamer.expressions.contract import TaskFilter, UrlFilter
from gossamer.frontier.contract import Flights, LentTask, Politeness, Prioritizer, Traversal
from gossamer.mobile.crawler import MAX_SEEDS, VERSION, WITHOUT_DOCUMENT, CrawlerBatch, JourneySummary, MobileCrawler
from gossamer.mobile.manager.away import (
    AwayCrawler,
    BatchRefused,
    CrawlerEnd,
    KnownAtHome,
    check_batch,
    is_worth_sending,
    visits_of,
)
from gossamer.mobile.manager.lent import CrawlerBook, CrawlerRecord, LentUrls
from gossamer.mobile.manager.links import ConfiguredRuntimes
from gossamer.mobile.manager.making import CrawlersSheet, crawler_for
from gossamer.mobile.wire import from_bytes, to_bytes
from gossamer.parsing.filters import judged
from gossamer.storage.commit.queueing import Choosers, CommitSheet, TaskQueueing
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.seen.contract import ContentIndex, SeenSet
from gossamer.values.instants import VisitIds
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import EXTERNAL, Link, Response, Visit

#: Outcomes at the runtime that are counted by name: texts of strangers can make more of them.
_MAX_OUTCOMES = 50

#: Batches that wait to join the stream of visits: each is some 8 MB of pages.
_WAITING = 2


class _Delivery(msgspec.Struct):
    """Visits of one batch, on their way to the commit."""

    visits: Sequence[Visit]
    landed: asyncio.Event


class Crawlers(Producer[CrawlersSheet]):
    """Sends mobile crawlers to runtimes, and takes in the pages that they bring."""

    outbox: Out[Visit]
    lent: Uses[LentUrls]
    links: Uses[ConfiguredRuntimes]
    ledger: Uses[Ledger]
    flights: Uses[Flights]
    seen: Uses[SeenSet]
    contents: Uses[ContentIndex]
    politeness: Uses[Politeness]
    traversal: Uses[Traversal]
    prioritizer: Uses[Prioritizer]
    filters: UsesMany[UrlFilter]
    task_gates: UsesMany[TaskFilter]

    lasts = "it knows which crawlers are away"

    def __init__(self, sheet: CrawlersSheet | None = None) -> None:
        super().__init__(sheet)
        self._deliveries: asyncio.Queue[_Delivery] = asyncio.Queue(_WAITING)
        self._away: dict[str, AwayCrawler] = {}
        self._journeys: dict[str, asyncio.Task[None]] = {}
        self._coming: dict[str, str] = {}
        """URL -> crawler, of documents on their way to the commit."""
        self._lost: dict[str, int] = {}
        """Crawlers that were lost in a row, by host."""
        self._versions: dict[str, int] = {}
        """The newest version of crawlers that a runtime may know, where it has refused newer ones."""
        self._ids = VisitIds(0)
        self._failed: asyncio.Future[None]
        self.metrics.gauge("away", lambda: len(self._away))
        self.metrics.gauge("coming", lambda: len(self._coming))

    @property
    def book(self) -> CrawlerBook:
        return CrawlerBook(self.ledger)

    # -- life

    async def produce(self) -> AsyncIterator[Visit]:
        self._failed = asyncio.get_running_loop().create_future()
        self._ids = VisitIds(self.clock.now())
        self.lent.knower = self._knower
        for record in self.book.away():
            self._set_out(record, from_bytes(record.data))
        sending = self._watched(self._keep_sending())
        try:
            while not self.drained and (delivery := await self._delivered()) is not None:
                receipt = Receipt(delivery.landed.set)
                token = current.set(receipt)
                try:
                    for visit in delivery.visits:
                        self.flights.depart(visit.task.identity)
                        yield visit
                finally:
                    current.reset(token)
                receipt.release()
        finally:
            tasks = [sending, *self._journeys.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _delivered(self) -> _Delivery | None:
        """The next batch; None where the crawl has ended. An error of a journey is an error of ours."""
        waiting: set[asyncio.Future[Any]] = {
            asyncio.ensure_future(self._deliveries.get()),
            asyncio.ensure_future(self.lent.ended.wait()),
            self._failed,
        }
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                if isinstance(found := one.result(), _Delivery):
                    return found
            return None
        finally:
            for one in waiting - {self._failed}:
                one.cancel()

    def _watched(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Work of the manager's own: if it fails, so does the manager."""

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None and not self._failed.done():
                self._failed.set_exception(error)

        task = asyncio.create_task(work)
        task.add_done_callback(ended)
        return task

    # -- out

    async def _keep_sending(self) -> None:
        while not self.lent.ended.is_set():
            await self.clock.sleep(self.sheet.gather)
            self._send_what_waits()

    def _send_what_waits(self) -> None:
        """Make crawlers of the URLs that wait, as many as may be on their way."""
        busy = {host for away in self._away.values() for host in away.record.hosts}
        by_runtime: dict[str, list[str]] = {}
        for host in sorted(self.lent.waiting - busy):
            is_open = not self.politeness.rule_against(host)
            by_runtime.setdefault(self.lent.runtime_of(host) if is_open else "", []).append(host)
        # Hosts that have no runtime any more, or are blocked: the frontier knows what becomes of these.
        for host in by_runtime.pop("", ()):
            self._bring_back(host)
        for runtime, hosts in by_runtime.items():
            size = self.sheet.hosts
            for start in range(0, len(hosts), size):
                if len(self._away) >= self.sheet.most:
                    return
                self._make(runtime, hosts[start : start + size])

    def _make(self, runtime: str, hosts: Sequence[str]) -> None:
        waiting = [one for host in hosts for one in self.lent.of_host(host) if not one.crawler]
        if not waiting:
            self.lent.waiting.difference_update(hosts)
            return
        number = min(self.sheet.per_host, len(waiting))
        for part in range(number):
            tasks = list(islice(waiting, part, None, number))[:MAX_SEEDS]
            if not self._made(runtime, hosts, tasks):
                return

    def _made(self, runtime: str, hosts: Sequence[str], tasks: Sequence[LentTask]) -> bool:
        """Put a crawler into the outbox and let it set out; False where it has to wait, or its hosts are fetched instead."""
        room = self.lent.room()
        if room == 0:
            return False
        share = None if room is None else max(1, room // max(1, len(self.lent.waiting)))
        walked = sum(map(self.book.walked, hosts))
        identity = self._ids.next()
        pages = None if share is None else share + walked
        version = self._versions.get(runtime, VERSION)
        crawler = crawler_for(self.sheet, [one.task for one in tasks], identity, pages, version)
        data = to_bytes(crawler)
        # How many pages a crawler of these hosts can bring; None where that is unknown.
        urls = None if self.sheet.urls is None else self.sheet.urls * len(hosts)
        bounds = [bound for bound in (share, urls) if bound is not None]
        if self.sheet.depth == 0 or self.sheet.scope == "page":
            bounds.append(sum(not one.crawler for host in hosts for one in self.lent.of_host(host)))
        if not is_worth_sending(len(data), min(bounds) if bounds else None):
            for host in hosts:
                self._bring_back(host)
            return False
        now = self.clock.steady()
        ends = now + crawler.program.limits.seconds + self.sheet.lease
        record = CrawlerRecord(
            identity, runtime, tuple(hosts), data, now, now + self.sheet.reach, ends, share=share or 0
        )
        with self.ledger.group() as group:
            if not self.book.put(record, group):
                return False
            self.lent.assign(tasks, identity, group)
        self.metrics.count("sent_bytes", len(data))
        self._set_out(record, crawler)
        return True

    def _set_out(self, record: CrawlerRecord, crawler: MobileCrawler) -> None:
        link = self.links.link(record.runtime, record.hosts[0])
        away = AwayCrawler(record, crawler, link, self.clock, self.sheet.lease, partial(self._take, crawler))
        self._away[record.id] = away
        self.lent.pages += record.share - min(record.pages, record.share)
        self._journeys[record.id] = self._watched(self._travel(away))

    async def _travel(self, away: AwayCrawler) -> None:
        end = await away.travel()
        self.lent.pages -= away.record.share - min(away.record.pages, away.record.share)
        del self._away[away.record.id]
        del self._journeys[away.record.id]
        if end.fate != "home":
            older = away.crawler.program.version - 1 if end.is_too_new else 0
            if older:
                self._versions[away.record.runtime] = older
            self._give_up(away.record, end, is_older_sent=bool(older))
            self.lent.tell()
            await away.cancel()
        else:
            for host in away.record.hosts:
                self._lost.pop(host, None)
        self.lent.tell()

    # -- in

    async def _take(
        self, crawler: MobileCrawler, record: CrawlerRecord, batch: CrawlerBatch, size: int
    ) -> CrawlerRecord:
        """Commit a batch: its documents as visits, then the rest of it.
        Raises BatchRefused: nothing of it is committed."""
        check_batch(batch, crawler, record, size)
        known = KnownAtHome(lambda url, host: self.lent.task_of(url, host, record.id), self.contents.first)
        visits = list(self._wanted(visits_of(batch, crawler, record, known, self.clock.now())))
        pages = sum(
            (visit.mime or media_type_of(visit.response)) in HTML_TYPES
            for visit in visits
            if visit.response.outcome not in WITHOUT_DOCUMENT
        )
        if record.share and record.pages + pages > record.share:
            raise BatchRefused("too_much", f"more than the {record.share} pages that it may bring")
        self._coming.update((visit.url, record.id) for visit in visits)
        try:
            if visits:
                delivery = _Delivery(visits, asyncio.Event())
                await self._deliveries.put(delivery)
                await delivery.landed.wait()
        finally:
            for visit in visits:
                self._coming.pop(visit.url, None)
        moved = msgspec.structs.replace(
            record,
            next=record.next + 1,
            pages=record.pages + pages,
            bytes=record.bytes + size,
            external=record.external + len(batch.external),
        )
        # Its documents are committed; the rest of it is in one group: external URLs, counts, the next sequence.
        with self.ledger.group() as group:
            if batch.external:
                self._queue_external(crawler, batch, group)
            if batch.summary is None:
                self.book.put(moved, group)
            else:
                self._settle_end(moved, crawler, batch.summary, group)
        await self.ledger.settle()
        self.lent.pages -= min(moved.pages, record.share) - min(record.pages, record.share)
        self.metrics.count("batches")
        self.lent.tell()
        return moved

    def _queue_external(self, crawler: MobileCrawler, batch: CrawlerBatch, group: Group) -> None:
        """Queue external URLs, as far as filters and the rules of the commit say so."""
        seed = crawler.program.seeds[0]
        links = tuple(Link(url, EXTERNAL) for url in batch.external)
        page = Visit(Task(seed, host_of(seed)), Response(Outcome.OK), links=links)
        passed = judged(page, (), self.filters.get("follow", ()), self.metrics.count)
        depths = dict(zip(batch.external, batch.depths, strict=False))
        tasks = [Task(link.url, host_of(link.url), depths.get(link.url, 1), seed, EXTERNAL) for link in passed.links]
        gates = self.task_gates.get("schedule", ())
        choosers = Choosers(self.seen, self.traversal, self.prioritizer, gates, self.ledger.depths.limit)
        new = TaskQueueing(CommitSheet(), choosers, group).received(tasks)
        group.count("crawlers:external", len(batch.external))
        group.count("crawlers:external_new", new)

    def _settle_end(self, record: CrawlerRecord, crawler: MobileCrawler, summary: JourneySummary, group: Group) -> None:
        """A crawler is home: its results and its rest are settled, unless a limit has ended it before."""
        if crawler.program.bring.irrelevant == "counts" and summary.irrelevant:
            group.count(f"outcome:{Outcome.IRRELEVANT}", summary.irrelevant)
        group.count("crawlers:fetched", summary.fetched)
        group.count("crawlers:bytes", summary.bytes)
        for name, number in list(summary.outcomes.items())[:_MAX_OUTCOMES]:
            if name in Outcome.__members__.values():
                group.count(f"crawlers:outcome:{name}", number)
        tasks = self._tasks_of(record)
        if summary.ended == "limit" and summary.limit == "pages" and record.share:
            # The limit of the whole crawl ended it: if there is room again, another one goes on.
            self.lent.assign(tasks, "", group)
            for host in record.hosts:
                self.book.has_walked(host, min(summary.pages, crawler.program.limits.pages), group)
        else:
            if summary.ended == "limit":
                group.count(f"cut:crawler:{summary.limit[:20]}", summary.queued)
            self.lent.settle(tasks, group)
        self.book.end(record, "cut" if summary.ended == "limit" else "home", group)

    def _wanted(self, visits: Iterable[Visit]) -> Iterable[Visit]:
        """Those that no other crawler has brought, or will: the first commit wins. None of a host that is blocked by now."""
        for visit in visits:
            url, host = visit.url, visit.task.host
            record = visit.response.brought
            assert record is not None
            if self.politeness.rule_against(host):
                self.metrics.count("blocked")
            elif url in self._coming or self.ledger.document(url) is not None:
                self.metrics.count("repeated")
            elif self.lent.task_of(url, host, record.crawler) is None and not self.seen.unseen([url]):
                # It waits in our own queues, or another crawler has it.
                self.metrics.count("not_wanted")
            else:
                yield visit

    def _knower(self, task: Task) -> str:
        """The crawler that brings the page on which a task was found, where the task is of its hosts."""
        away = self._away.get(self._coming.get(task.source, ""))
        return away.record.id if away is not None and task.host in away.record.hosts else ""

    # -- what goes wrong

    def _give_up(self, record: CrawlerRecord, end: CrawlerEnd, *, is_older_sent: bool) -> None:
        """A crawler will not come home: its URLs wait for another one, or are fetched from here."""
        tasks = self._tasks_of(record)
        with self.ledger.group() as group:
            self.book.end(record, end.fate, group)
            self.lent.assign(tasks, "", group)
        for host in record.hosts:
            self._lost[host] = self._lost.get(host, 0) + (not is_older_sent)
        names = ", ".join(record.hosts[:3])
        is_over = not is_older_sent and (end.fate == "refused" or self._lost[record.hosts[0]] >= self.sheet.tries)
        another = f"another one, of version {self._versions[record.runtime]}," if is_older_sent else "another one"
        then = "the hosts are fetched from here" if is_over else f"{another} is sent"
        self.report(f"the crawler for {names} at {record.runtime} is {end.fate}: {end.why}; {then}")
        if is_over:
            for host in record.hosts:
                self._bring_back(host)

    def _tasks_of(self, record: CrawlerRecord) -> list[LentTask]:
        return [one for host in record.hosts for one in self.lent.of_host(host) if one.crawler == record.id]

    def _bring_back(self, host: str) -> None:
        """A host is fetched from here, for the rest of this run."""
        with self.ledger.group() as group:
            self.lent.recall(host, list(self.lent.of_host(host)), group)
        self.metrics.count("fetched_instead")
        self.lent.tell()
