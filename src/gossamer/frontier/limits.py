"""Limits of a crawl (pages, time, bytes, a floor of free disk), the totals that they hold for, the failures that it waits for, and
the settings of the frontier.

Place in the flow: the frontier counts here what was committed, and asks before each hand-out. The word that comes back names
the setting, and the summary of the crawl says it. A limit says when a crawl ends, never what it owes: what waits stays
queued, and `resume` asks for it.
"""

import shutil
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Annotated

import msgspec

from gossamer.engine.processes import give_back_memory, resident_with_children
from gossamer.engine.sheet import Sheet, setting
from gossamer.values import settings
from gossamer.values.hosts import forget_remembered
from gossamer.values.outcome import ANSWERED, Outcome
from gossamer.values.task import Answer, Committed
from gossamer.values.url import host_of, site_of

#: Seconds that a crawl waits for retries alone, unless told otherwise: the first retry comes after 10 s.
USUAL = 30.0

#: Failures that are remembered, to be told at the end: far more than a person reads.
_REMEMBERED = 512

#: Outcomes without an answer: a crawl whose seeds all end so has nothing to wait for.
UNANSWERED = frozenset(
    {
        Outcome.DNS_FAILED,
        Outcome.CONNECT_FAILED,
        Outcome.TLS_FAILED,
        Outcome.TIMED_OUT,
        Outcome.TOO_SLOW,
        Outcome.PROTOCOL_FAILED,
    }
)

#: Failures that can be followed by a retry.
_FAILURES = UNANSWERED | {Outcome.SERVER_ERROR, Outcome.RATE_LIMITED, Outcome.ROBOTS_UNREACHABLE}


class RetriesWaiting(msgspec.Struct, frozen=True):
    """Retries that are due later."""

    urls: int
    """URLs that wait; where a crawl ended for another reason than them, those that failed in this run, some hundreds at most."""
    next: str
    """The time of the first: a date and time as RFC 3339 has them, in UTC."""
    hosts: dict[str, str] = {}
    """Why, by endpoint or host, as far as this run has met the reason: outcomes, as `connect_failed`. At most some dozens."""


class Failures:
    """The last failure of URLs that may be tried again; the oldest makes room."""

    def __init__(self) -> None:
        self._failed: OrderedDict[str, Outcome] = OrderedDict()

    def __len__(self) -> int:
        return len(self._failed)

    def answered(self, url: str, outcome: Outcome) -> None:
        if outcome in _FAILURES:
            self._failed[url] = outcome
            self._failed.move_to_end(url)
            if len(self._failed) > _REMEMBERED:
                self._failed.popitem(last=False)
        elif self._failed:
            self._failed.pop(url, None)

    def reasons(self, others: Iterable[str], most: int) -> dict[str, str]:
        """Why retries wait, by endpoint, at most so many; `others` are hosts of which it may not be known in this run."""
        by_site: dict[str, Counter[Outcome]] = {}
        for url, outcome in self._failed.items():
            by_site.setdefault(site_of(url) or url, Counter())[outcome] += 1
        told = {site: ", ".join(outcomes) for site, outcomes in list(by_site.items())[:most]}
        known = {site.partition("://")[2].partition(":")[0] for site in by_site}
        for host in others:
            if len(told) >= most:
                break
            if host not in known:
                told[host] = "an earlier failure"
        return told


#: Seconds between two looks at the free disk, and at the memory in use.
DISK_LOOK, MEMORY_LOOK = 1.0, 0.5

#: The part of the memory that the crawl holds back above: what it takes until the next look fits into the rest.
NEARLY = 0.9


class FrontierSheet(Sheet, frozen=True):
    """How many at once, and when to stop."""

    concurrency: settings.Concurrency = 64
    max_pages: settings.MaxPages = None
    page_share: (
        Annotated[
            int,
            setting(
                "Take this many of the crawl's HTML pages, then wait for more: the part of one agent among several.",
                unit="pages",
                ge=0,
            ),
        ]
        | None
    ) = None
    byte_share: (
        Annotated[
            int,
            setting(
                "Take this many of the crawl's bytes of bodies, then wait for more: the part of one agent among several.",
                unit="bytes",
                ge=0,
            ),
        ]
        | None
    ) = None
    max_agents: settings.MaxAgents = None
    silence: Annotated[
        float,
        setting(
            "With several agents, end an agent or master that has not answered for this time, and start it again. Also wait "
            "this long for the lost ledger of an agent before its part begins again.",
            unit="s",
            gt=0,
        ),
    ] = 60.0
    max_time: settings.MaxTime = None
    total_time: settings.TotalTime = None
    max_bytes: settings.MaxBytes = None
    min_free_disk: settings.MinFreeDisk = None
    memory: settings.Memory = None
    directory: Annotated[
        str, setting("Watch the free disk of this directory.", restart="it is the crawl's directory", names="a folder")
    ] = "."
    linger: settings.Linger = USUAL
    stay: Annotated[
        settings.Linger,
        setting("When only known pages are left to visit again, wait this long for the next, or `forever`."),
    ] = "forever"
    proxied: Annotated[bool, setting("Do not look up host names, because a proxy does.")] = False
    unresolved: Annotated[
        tuple[str, ...], setting("Do not look up hosts of URLs with these schemes, because they name no machine.")
    ] = ()


#: Settings that can end a crawl or have an agent wait; without any of them nothing has to be counted before a hand-out.
_LIMITS = ("max_pages", "max_time", "total_time", "max_bytes", "min_free_disk", "memory", "page_share", "byte_share")


class CrawlTotals:
    """Sums of a crawl, all its runs together but for `max_time`."""

    def __init__(self, sheet: FrontierSheet, used: Callable[[], int] = resident_with_children) -> None:
        """`used` gives the bytes of memory that count for `memory`."""
        self.limit(sheet)
        self._used = used
        self._memory_at = -inf
        self.memory = 0
        """Bytes in use, when that was last looked at."""
        self.is_over_memory = False
        """Whether they were nearly the limit of memory, or more."""
        self.reached = ""
        """The limit that ended the crawl, by its setting's name; empty while none has."""
        self.goal = ""
        """The URL that the crawl was to end at, where that ended it."""
        self._pages = 0
        self._bytes = 0
        self._began = self._run_began = 0.0
        self._disk_at = -inf
        self._free_disk = 0
        self._answered, self._is_served = 0, False
        self._seed_sites: set[str] = set()
        self._failed_sites: set[str] = set()
        self._missed_hosts: set[str] = set()

    def limit(self, sheet: FrontierSheet) -> None:
        """Go by these limits from now on."""
        self.rules = sheet
        self.is_limited = any(getattr(sheet, name) is not None for name in _LIMITS)

    def begin(self, counters: Mapping[str, int], now: float) -> None:
        self._pages, self._bytes = counters.get("pages", 0), counters.get("bytes", 0)
        self._answered = counters.get("fetched", 0)
        self._run_began = now
        self._began = now - counters.get("elapsed_ms", 0) / 1000

    def sown(self, url: str) -> None:
        self._seed_sites.add(site_of(url))

    def missed(self, host: str) -> None:
        if not self._answered:
            self._missed_hosts.add(host)

    def answered(self, answer: Answer) -> None:
        self._is_served |= answer.outcome in ANSWERED
        if answer.outcome in UNANSWERED and not self._answered:
            self._failed_sites.add(site_of(answer.url))

    def committed(self, committed: Committed) -> None:
        self._pages += committed.is_page
        self._bytes += committed.bytes
        self._answered += committed.outcome in ANSWERED and not committed.site
        if committed.is_goal and not self.reached:
            self.reached, self.goal = "until", committed.task.url

    @property
    def is_unserved(self) -> bool:
        """Whether no server has ever answered, not even for a robots.txt, and every endpoint of a seed has failed."""
        return not (self._answered or self._is_served) and all(
            site in self._failed_sites or host_of(site) in self._missed_hosts for site in self._seed_sites
        )

    def allows(self, in_flight: int, has_work: bool, now: float) -> bool:
        """Whether one more request may begin; a limit that is reached while there is work left is remembered. Each request in
        flight reserves a page, so `max_pages` is never exceeded. Close to the limit of memory one may be in flight: what it takes
        is little, and a crawl that waited for memory to become free might wait for ever."""
        rules, reached = self.rules, self._limit_at(now)
        if has_work:
            self.reached = self.reached or reached
        if reached or (rules.byte_share is not None and self._bytes >= rules.byte_share):
            return False
        if rules.memory is not None and in_flight and self._needs_memory(rules.memory, now):
            return False
        bounds = (rules.max_pages, rules.page_share)
        return all(bound is None or self._pages + in_flight < bound for bound in bounds)

    def _limit_at(self, now: float) -> str:
        """The limit that ends the crawl, by its setting's name; empty while none does."""
        rules = self.rules
        if rules.max_pages is not None and self._pages >= rules.max_pages:
            return "max_pages"
        # A limit of time is reached at its instant: a difference of instants may be a rounding short of it.
        if rules.max_time is not None and now >= self._run_began + rules.max_time:
            return "max_time"
        if rules.total_time is not None and now >= self._began + rules.total_time:
            return "total_time"
        if rules.max_bytes is not None and self._bytes >= rules.max_bytes:
            return "max_bytes"
        if rules.min_free_disk is None:
            return ""
        if now >= self._disk_at:
            self._disk_at = now + DISK_LOOK
            self._free_disk = shutil.disk_usage(self.rules.directory).free
        return "min_free_disk" if self._free_disk < rules.min_free_disk else ""

    def _needs_memory(self, most: int, now: float) -> bool:
        if now >= self._memory_at:
            self._memory_at = now + MEMORY_LOOK
            self.memory = self._used()
            self.is_over_memory = self.memory > most * NEARLY
            if self.is_over_memory:
                forget_remembered()
                give_back_memory()
        return self.is_over_memory

    def room(self, reserved: int) -> int | None:
        """How many more pages may be promised, with so many promised already; None where there is no limit."""
        bounds = [bound for bound in (self.rules.max_pages, self.rules.page_share) if bound is not None]
        return max(0, min(bounds) - self._pages - reserved) if bounds else None

    def is_short_of_pages(self, in_flight: int) -> bool:
        share = self.rules.page_share
        return share is not None and self._pages + in_flight >= share

    def is_short_of_bytes(self, in_flight: int) -> bool:
        """Whether the share of bytes is too small for so many requests in flight, each of which brings what others brought."""
        share = self.rules.byte_share
        return share is not None and self._bytes + in_flight * self._bytes // max(1, self._answered) >= share

    @property
    def time_limit(self) -> str:
        """The limit of time that is reached first, by its setting's name; empty where there is none."""
        if self.rules.max_time is not None and self._run_began + self.rules.max_time == self.ends_at():
            return "max_time"
        return "" if self.rules.total_time is None else "total_time"

    def ends_at(self) -> float:
        """The monotonic instant at which the time is up; infinite where there is no limit."""
        run = inf if self.rules.max_time is None else self._run_began + self.rules.max_time
        return run if self.rules.total_time is None else min(run, self._began + self.rules.total_time)
