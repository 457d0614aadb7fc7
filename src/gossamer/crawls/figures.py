"""The figures of one run: its summary at any moment and at its end, its pulse, and what is worth a look.

Place in the flow: the counters are the ledger's, the limits the frontier's; :mod:`crawl` asks here at the end, and
:mod:`~gossamer.crawls.control.at_work` while the crawl runs.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from gossamer.crawls.control.waits import sizes_of, walked_sizes
from gossamer.crawls.pulse import WATCHED, Counts, Pulse
from gossamer.crawls.summary import (
    Summary,
    counted,
    cpu_seconds,
    cuts_of,
    has_documents,
    peak_rss,
    urls_elsewhere,
)
from gossamer.engine.errors import WiringError
from gossamer.engine.running import RunningGraph
from gossamer.engine.unit import SystemClock
from gossamer.fetcher.contract import ProxyHealth
from gossamer.fetcher.http import HttpModule
from gossamer.frontier.frontier import Frontier
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.traps.watch import LearntTraps
from gossamer.parsing.contract import SessionsStanding, SessionsTold
from gossamer.storage.commit.commit_stage import Tally
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.seen.memory import MemoryFlights
from gossamer.values.outcome import Outcome

if TYPE_CHECKING:
    from gossamer.crawls.work import CrawlWork

# The units of a crawl that work in its own process, found by what they are.

U = TypeVar("U")


class UnitsAtWork:
    """Components and providers of a running graph."""

    def __init__(self, running: RunningGraph) -> None:
        self.running = running
        """The graph."""

    @property
    def frontier(self) -> Frontier:
        """The component that hands out. Raises WiringError: the wiring has none."""
        for component in self.components(Frontier):
            return component
        raise WiringError("the wiring has no component of class Frontier; a crawl needs one")

    @property
    def ledger(self) -> RocksLedger:
        """The part that keeps everything that the crawl must not forget. Raises WiringError: the wiring has none."""
        for ledger in self.providers(RocksLedger):
            return ledger
        raise WiringError("the wiring has no ledger; a crawl needs one")

    def providers(self, kind: type[U]) -> list[U]:
        return [unit for unit in self.running.providers.values() if isinstance(unit, kind)]

    def components(self, kind: type[U]) -> list[U]:
        found = (runner.component for runner in self.running.runners.values())
        return [component for component in found if isinstance(component, kind)]


#: What one agent of several has, as the catalog calls it: it keeps what the others get.
_OUTBOXES = frozenset({"outbox", "mass-mail", "file-outbox"})


class RunFigures:
    """The figures of a run, and how it stands."""

    def __init__(self, directory: Path, units: UnitsAtWork, work: "CrawlWork", began: float) -> None:
        """`began` is a monotonic instant."""
        self._directory = directory
        self._units = units
        self._work = work
        self._began = began
        self.pages_before = 0
        """Pages of earlier runs."""
        self.pulse = Pulse(self._count, lambda: sizes_of(units.ledger), lambda: walked_sizes(directory), SystemClock())
        """The last seconds of the crawl; by the machine's clock, since people look at it."""

    def begin(self, pages_before: int | None = None) -> None:
        """The run begins, or goes on with what had so many pages before it."""
        self.pages_before = self._counters().get("pages", 0) if pages_before is None else pages_before

    def summary(self) -> Summary:
        counters, frontier, cut_by = self._counters(), self._units.frontier, self._work.cut_by
        queued = len(frontier.queues) + urls_elsewhere(counters)
        limit = frontier.totals.reached or cut_by
        state = self._state(counters, queued, limit)
        ended_by = f"limit:{limit}" if limit else "stopped" if state == "stopped" else ""
        # A trap that a person has confirmed is refused, and is no guess any more.
        confirmed = [family for unit in self._units.providers(LearntTraps) for family in unit.confirmed]
        set_aside = counters.get("set_aside", 0) - sum(self._units.ledger.set_aside(one).count for one in confirmed)
        seconds = time.monotonic() - self._began
        here = counters.get("pages", 0) - self.pages_before
        return Summary(
            crawl=str(self._directory),
            state=state,
            **counted(counters),
            queued=queued,
            seconds=round(seconds, 3),
            pages_per_second=round(here / seconds, 2) if seconds else 0.0,
            cpu_seconds=cpu_seconds(),
            peak_rss_bytes=peak_rss(),
            set_aside=set_aside,
            cuts=cuts_of(counters, ended_by, queued, set_aside),
            limit=limit if state == "limit" else "",
            goal=frontier.totals.goal if state == "limit" else "",
        )

    def last_summary(self) -> Summary:
        """The summary of the end: it also says what waits, which takes a look at every host that has tasks."""
        summary = self.summary()
        counters = self._counters()
        if summary.state == "limit" and not (has_documents(counters) or self._had_no_part(counters, summary.queued)):
            summary = msgspec.structs.replace(summary, state="incomplete")
        return msgspec.structs.replace(
            summary, waiting=self._units.frontier.termination.waiting() if summary.queued else None
        )

    def _state(self, counters: Mapping[str, int], queued: int, limit: str) -> str:
        if self._work.is_stopping:
            return "stopped"
        if limit:
            return "limit"
        if self._had_no_part(counters, queued):
            return "finished"
        lost = queued or counters.get(f"outcome:{Outcome.GONE_AFTER_RETRIES}") or not has_documents(counters)
        return "incomplete" if lost else "finished"

    def _had_no_part(self, counters: Mapping[str, int], queued: int) -> bool:
        """Whether this is one agent of several, and nothing of what is known so far is its part."""
        uses = {plan.use for plan in self._units.running.whole.wiring.providers.values()}
        return not (queued or counters.get("fetched") or uses.isdisjoint(_OUTBOXES))

    def _counters(self) -> Mapping[str, int]:
        return self._units.ledger.counters()

    def _count(self) -> Counts:
        counters = self._counters()
        flights = [url for unit in self._units.providers(MemoryFlights) for url in unit.oldest(WATCHED)]
        return Counts(counters.get("pages", 0), counters.get("fetched", 0), flights, time.process_time())

    # -- what is worth a look

    @property
    def troubled(self) -> int:
        return self._counters().get("troubled", 0)

    def slowest_hosts(self, count: int) -> list[tuple[str, float]]:
        tallies = self._units.components(Tally)
        return sorted((pair for tally in tallies for pair in tally.slowest.items()), key=lambda pair: -pair[1])[:count]

    def proxies(self) -> list[ProxyHealth]:
        return [one for unit in self._units.providers(HttpModule) for one in unit.proxies()]

    def sessions(self, count: int) -> SessionsStanding | None:
        for unit in self._units.running.providers.values():
            if isinstance(unit, SessionsTold) and (told := unit.sessions_standing(count)):
                return told
        return None

    def slowed_hosts(self, count: int) -> list[tuple[str, float, str]]:
        """The hosts that are left alone for longest because of their errors or refusals: name, seconds, reason."""
        return [one for unit in self._units.providers(HostPoliteness) for one in unit.slowed(count)][:count]
