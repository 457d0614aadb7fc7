"""The two ends of a crawler's journey: a crawler made of the crawl's own options, and the rest of a batch that came home.

Place in the flow: the manager has URLs that wait, and asks here for the crawler that is to go after them. When the documents of a
batch are committed, it has the rest settled: external URLs, counts and the next sequence, all in one group of the ledger. The
commit's own rules say which links are queued (:mod:`gossamer.storage.commit.queueing`), and the filters of the crawl which are
followed.

The settings of the manager stand here too, and the key and pin of a runtime elsewhere, for which links ask when they are opened.
Neither stands in `crawl.toml`: a key is a secret (design question 19).
"""

import os
import stat
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from gossamer.engine.sheet import Sheet, setting, written
from gossamer.expressions.contract import TaskFilter, UrlFilter
from gossamer.frontier.contract import Prioritizer, Traversal
from gossamer.mobile.crawler import (
    MAX_SEEDS,
    BringRules,
    BroughtPart,
    CrawlerBatch,
    CrawlerFacts,
    JourneySummary,
    MobileCrawler,
    MobileProgram,
    TravelLimits,
)
from gossamer.mobile.manager.lent import CrawlerBook, CrawlerRecord, LentUrls
from gossamer.parsing.filters import judged
from gossamer.storage.commit.queueing import Choosers, CommitSheet, TaskQueueing
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.seen.contract import SeenSet
from gossamer.values.errors import UsageError
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
        """Commit the rest of a batch whose documents are committed."""
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
        tasks: at most `MAX_SEEDS`; their hosts are those that it is granted.
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


# Key and pin of a runtime.

#: Variables of the environment, for crawls with one runtime.
KEY, PIN = "GOSSAMER_RUNTIME_KEY", "GOSSAMER_RUNTIME_PIN"


class RuntimeKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Key and pin of one runtime."""

    key: str
    pin: str = ""


def runtime_key(address: str, file: str) -> RuntimeKey:
    """The key and pin of the runtime at an address.

    Args:
        address: as `--runtime` has it.
        file: TOML, one table for each address; empty: the environment says them.

    Raises:
        UsageError: there is none; says what to do.
    """
    if not file:
        key = os.environ.get(KEY, "")
        if not key:
            raise UsageError(f"runtime {address}: its key is not known; set {KEY}, or name a file: --runtime-keys FILE")
        return RuntimeKey(key, os.environ.get(PIN, ""))
    known = _read(Path(file))
    found = known.get(address) or known.get(address.rstrip("/"))
    if found is None:
        raise UsageError(f'{file}: no key for {address}; add a table ["{address}"] with key = "..."')
    return found


def _read(path: Path) -> dict[str, RuntimeKey]:
    try:
        with path.open("rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise UsageError(f"{path} holds keys, and others can read it; run: chmod 600 {path}")
            plain = tomllib.loads(written(file.read()))
        return msgspec.convert(plain, dict[str, RuntimeKey])
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f'{path}: not keys of runtimes: {error}; write ["https://ADDRESS"] and key = "..."') from None


_AWAY = "crawlers are on their way with it"


class CrawlersSheet(Sheet, frozen=True):
    scope: Annotated[CrawlScope, setting("Keep crawlers within this scope.", restart=_AWAY)] = "host"
    seeds: Annotated[tuple[str, ...], setting("Draw the scope around these URLs.", restart=_AWAY)] = ()
    follow: Annotated[
        str, setting("Let crawlers follow a link only if this expression is true of it.", restart=_AWAY)
    ] = ""
    expand: Annotated[
        str, setting("Let crawlers follow links of a page only if this expression is true of it.", restart=_AWAY)
    ] = ""
    store: Annotated[
        str, setting("Let crawlers bring a document only if this expression is true of it.", restart=_AWAY)
    ] = ""
    traversal: Annotated[
        Literal["breadth", "depth", "host-breadth"], setting("Let crawlers visit pages in this order.", restart=_AWAY)
    ] = "breadth"
    depth: (
        Annotated[
            int, setting("Let crawlers follow at most this many links in a row.", unit="links", restart=_AWAY, ge=0)
        ]
        | None
    ) = None
    urls: Annotated[int, setting("Let crawlers visit at most this many URLs of a host.", unit="URLs", ge=1)] | None = (
        None
    )
    parts: Annotated[
        tuple[BroughtPart, ...], setting("Bring these parts of a relevant document home.", restart=_AWAY)
    ] = ("whole",)
    elements: Annotated[tuple[str, ...], setting("Bring the elements that these selectors find.", restart=_AWAY)] = ()
    irrelevant: Annotated[
        Literal["counts", "rows"],
        setting("Count irrelevant documents (`counts`), or bring a row for each (`rows`).", restart=_AWAY),
    ] = "counts"
    seconds: Annotated[float, setting("Let a crawler work for at most this long.", unit="s", gt=0)] = 86_400.0
    brought: Annotated[
        int, setting("Let a crawler bring home at most this many bytes, before compression.", unit="bytes", ge=1)
    ] = 10_000_000_000
    most: Annotated[int, setting("Keep at most this many crawlers at runtimes at once.", unit="crawlers", ge=1)] = 64
    hosts: Annotated[int, setting("Send one crawler to at most this many hosts of a runtime.", unit="hosts", ge=1)] = 1
    per_host: Annotated[
        int, setting("Divide the URLs of a host among at most this many crawlers.", unit="crawlers", ge=1)
    ] = 1
    gather: Annotated[
        float, setting("Wait this long for more URLs of a host before sending a crawler.", unit="s", gt=0)
    ] = 0.5  # a page names many URLs at once, and a crawler costs as much for one as for a thousand
    lease: Annotated[
        float, setting("Count a crawler as lost if its runtime is silent for this long.", unit="s", gt=0)
    ] = 600.0
    reach: Annotated[
        float,
        setting(
            "Count a crawler as lost if its runtime cannot be reached for this long before the crawler starts.",
            unit="s",
            ge=0,
        ),
    ] = 30.0
    tries: Annotated[
        int, setting("Fetch a host without crawlers after this many crawlers were lost.", unit="crawlers", ge=1)
    ] = 2

    def template(self) -> CrawlerTemplate:
        return CrawlerTemplate(
            scope=self.scope,
            seeds=self.seeds,
            follow=self.follow,
            expand=self.expand,
            store=self.store,
            traversal=self.traversal,
            depth=self.depth,
            urls=self.urls,
            bring=BringRules(self.parts, self.elements, self.irrelevant, errors=True),
            seconds=self.seconds,
            brought=self.brought,
        )

    def __post_init__(self) -> None:
        """Refuse what no crawler can be made of."""
        if not (self.parts or self.elements):
            raise ValueError("setting 'parts': a crawler that brings nothing is sent for nothing")
