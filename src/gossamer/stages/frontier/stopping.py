"""What a crawl has come to, and whether that is where it stops: limits of the user's, and hosts that nobody can reach.

Place in the flow: the frontier counts here what was committed, and asks before each hand-out. :mod:`limits` has the rules.
"""

import shutil
from collections.abc import Mapping
from math import inf

from gossamer.model.outcome import ANSWERED, Outcome
from gossamer.model.task import Answer, Committed
from gossamer.model.url import host_of, site_of
from gossamer.stages.frontier import limits
from gossamer.stages.frontier.limits import CrawlLimits, Progress

#: Seconds between two looks at the free disk.
DISK_LOOK = 1.0

#: Outcomes after which nobody has said anything: a crawl whose seeds all end so has nothing to wait for (design question 7).
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

_NO_LIMITS = CrawlLimits()


class Stopping:
    """Sums of a crawl, all its runs together but for `max_time`."""

    def __init__(self, rules: CrawlLimits, directory: str) -> None:
        self.rules = rules
        self.reached = ""
        """The limit that ended the crawl, by its setting's name; empty while none has."""
        self.goal = ""
        """The URL that the crawl was to end at, where that ended it."""
        self._directory = directory
        self._pages = 0
        self._bytes = 0
        self._began = self._run_began = 0.0
        self._disk_at = -inf
        self._free_disk: int | None = None
        self._answered = 0
        self._seed_sites: set[str] = set()
        self._failed_sites: set[str] = set()
        self._missed_hosts: set[str] = set()

    def __repr__(self) -> str:
        return f"<Stopping {self._pages} pages, {self.reached or 'no limit'} reached>"

    def begin(self, counters: Mapping[str, int], now: float) -> None:
        """Go on from what the ledger counted; `now` is monotonic."""
        self._pages, self._bytes = counters.get("pages", 0), counters.get("bytes", 0)
        self._answered = counters.get("fetched", 0)
        self._run_began = now
        self._began = now - counters.get("elapsed_ms", 0) / 1000

    def sown(self, url: str) -> None:
        """This is a seed."""
        self._seed_sites.add(site_of(url))

    def missed(self, host: str) -> None:
        """The name of this host has no address."""
        if not self._answered:
            self._missed_hosts.add(host)

    def answered(self, answer: Answer) -> None:
        """A request has ended."""
        if answer.outcome in UNANSWERED and not self._answered:
            self._failed_sites.add(site_of(answer.url))

    def committed(self, committed: Committed) -> None:
        """A visit was kept."""
        self._pages += committed.is_page
        self._bytes += committed.bytes
        self._answered += committed.outcome in ANSWERED and not committed.site
        if committed.is_goal and not self.reached:
            self.reached, self.goal = "until", committed.task.url

    @property
    def is_unserved(self) -> bool:
        """Whether nobody has ever answered, and every endpoint of a seed has failed."""
        return not self._answered and all(
            site in self._failed_sites or host_of(site) in self._missed_hosts for site in self._seed_sites
        )

    def allows(self, in_flight: int, has_work: bool, now: float) -> bool:
        """Whether one more request may begin; what is reached while there is work left is remembered."""
        if self.rules == _NO_LIMITS:
            return True
        elapsed, total = (
            _since(self._run_began, now, self.rules.max_time),
            _since(self._began, now, self.rules.total_time),
        )
        progress = Progress(self._pages, in_flight, elapsed, self._bytes, self._disk(now), total)
        if has_work:
            self.reached = self.reached or limits.reached(self.rules, progress)
        return limits.may_hand_out(self.rules, progress)

    def room(self, reserved: int) -> int | None:
        """How many more pages may be promised, with so many promised already; None where there is no limit."""
        bounds = [bound for bound in (self.rules.max_pages, self.rules.page_share) if bound is not None]
        return max(0, min(bounds) - self._pages - reserved) if bounds else None

    def is_short_of_pages(self, in_flight: int) -> bool:
        """Whether the share of pages is too small for so many requests in flight."""
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

    def _disk(self, now: float) -> int | None:
        if self.rules.min_free_disk is not None and now >= self._disk_at:
            self._disk_at = now + DISK_LOOK
            self._free_disk = shutil.disk_usage(self._directory).free
        return self._free_disk


def _since(began: float, now: float, limit: float | None) -> float:
    """Seconds since then. A limit is reached at its instant, though the difference may be a rounding short of it."""
    return limit if limit is not None and now >= began + limit else now - began
