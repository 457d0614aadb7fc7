"""A simulated web that `--recrawl adaptive` crawls again and again: policy, estimator, schedule and ledger of a real crawl, on a
simulated clock.

Place in the flow: `gossamer bench freshness` and its tests count how fresh such a crawl keeps the web.
"""

import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from gossamer.bench.changing import ChangingPages, WebOfChanges
from gossamer.engine.clock import SystemClock
from gossamer.recrawl.ledger import RevisitLedger
from gossamer.recrawl.policies import GreedyPolicy, RevisitSheet
from gossamer.recrawl.schedule import RevisitSchedule
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.values.change_hints import ChangeHint
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import Response, Visit

#: Mean visits of a page before counting begins, and while it goes on.
WARM_UP, COUNTED = 5, 4

#: Steps of the clock in the time in which the mean page is visited once.
STEPS = 200

#: Visits that are committed in one group.
_GROUP = 256

T = TypeVar("T")


def _groups(several: Iterable[T]) -> Iterator[list[T]]:
    left = iter(several)
    while some := list(islice(left, _GROUP)):
        yield some


class FreshnessFigures(msgspec.Struct, frozen=True):
    """What came of a simulated crawl."""

    freshness: float
    """Mean over the time that counts, weighted by importance."""
    visits: float
    """For each page and mean interval, over the time that counts: 1 where the rate was kept."""
    days: float
    """That went by on the simulated clock."""
    seconds: float
    """CPU seconds that it took."""
    visited: int


class _SteppedClock(SystemClock):
    """Stands where the simulated web stands."""

    def __init__(self, pages: ChangingPages) -> None:
        self._pages = pages

    def steady(self) -> float:
        return self._pages.now


class _Crawl:
    """A ledger with a schedule; one page is fetched in no time, as it is then."""

    def __init__(self, folder: Path, pages: ChangingPages, mean_interval: float) -> None:
        self._pages = pages
        self.store = RocksLedger(LedgerSheet(directory=str(folder)))
        self.store.open()
        self.schedule = RevisitSchedule(
            RevisitSheet(rate=1.0, mean_interval=mean_interval, weighs=True, min_interval=60.0)
        )
        self.schedule.policy = GreedyPolicy()
        self.schedule.ledger = self.schedule.store = self.store
        self.schedule.open()
        self._ledger = RevisitLedger()
        self._ledger.behind, self._ledger.revisits, self._ledger.clock = self.store, self.schedule, _SteppedClock(pages)
        self._queues = LedgerFrontier()
        self._queues.ledger = self.store
        self.visited = 0

    def seed(self, pages: NDArray[np.int64]) -> None:
        """Queue pages that are new."""
        with self.store.group() as group:
            urls = group.offer([self._pages.url(int(page)) for page in pages])
            group.push(Task(url, host_of(url), level=int(self._pages.levels[self._pages.page(url)])) for url in urls)

    def signal(self, said: NDArray[np.int64]) -> None:
        """Hosts say that these changed."""
        now = self._pages.now
        for some in _groups(said.tolist()):
            with self.store.group() as group:
                for page in some:
                    url = self._pages.url(page)
                    self.schedule.told(group, host_of(url), url, ChangeHint(now), now)

    def step(self) -> None:
        """Visit all that is due and may be visited."""
        now = self._pages.now
        while self.schedule.next_due() <= now and self.schedule.wake(now, 0):
            pass
        for some in _groups(self._popped()):
            with self._ledger.group() as group:
                for task in some:
                    self._visit(group, task)

    def _popped(self) -> Iterator[Task]:
        for state in list(self._queues.admit(self._pages.now)):
            while tasks := self._queues.pop(state.host, _GROUP):
                yield from tasks

    def _visit(self, group: object, task: Task) -> None:
        page = self._pages.page(task.url)
        version = int(self._pages.versions[page])
        group.visited(Visit(task, Response(Outcome.OK, 200), digest=str(version)), None)  # type: ignore[attr-defined]
        self._pages.seen[page] = version
        self.visited += 1


@contextmanager
def _crawling(pages: ChangingPages, mean_interval: float) -> Iterator[_Crawl]:
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        crawl = _Crawl(Path(folder), pages, mean_interval)
        try:
            yield crawl
        finally:
            crawl.store.abandon()


def simulated(web: WebOfChanges, budget: float, steps: int = STEPS) -> FreshnessFigures:
    """Crawl a web again and again with `adaptive`, with so many visits for each mean change, in so many steps of the clock to the
    time in which the mean page is visited once."""
    pages, interval = ChangingPages(web), web.mean / budget
    began, count, fresh = time.process_time(), web.pages, list[float]()
    with _crawling(pages, interval) as crawl:
        # New pages are found over one interval, as a crawl finds them.
        found = np.array_split(np.random.default_rng(web.seed).permutation(count), steps)
        step, before = 0, 0
        while step < steps * (WARM_UP + COUNTED):
            said = pages.step(interval / steps)
            if step < steps:
                crawl.seed(found[step])
            if len(said):
                crawl.signal(said)
            if step == steps * WARM_UP:
                before = crawl.visited
            if step >= steps * WARM_UP:
                # Visits come all at once in a step: freshness falls until then, and counts from both sides.
                fresh.append(pages.freshness)
            crawl.step()
            if step >= steps * WARM_UP:
                fresh.append(pages.freshness)
            step += 1
        seconds = time.process_time() - began
        days = step * interval / steps / 86_400
        kept = (crawl.visited - before) / count / COUNTED
        return FreshnessFigures(float(np.mean(fresh)), kept, days, seconds, crawl.visited)
