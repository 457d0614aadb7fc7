"""A web that changes, on a clock of its own, and a crawl with `--recrawl adaptive` that comes back to it again and again:
pages of known rates, hosts that say what changed and are right or wrong; policy, estimator, schedule and ledger of a real
crawl.

Place in the flow: `gossamer bench freshness` and its tests count how fresh such a crawl keeps the web. Times are in seconds.
"""

import math
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from gossamer.bench.harness import Spent
from gossamer.engine.unit import SystemClock
from gossamer.frontier.contract import LEVELS
from gossamer.recrawl.ledger import RevisitLedger
from gossamer.recrawl.policies import GreedyPolicy, RevisitSheet
from gossamer.recrawl.schedule import RevisitSchedule, weight_of
from gossamer.values.instants import ChangeHint
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import Response, Visit
from tools.bench.ledger import opened

#: Pages of a host.
PAGES_A_HOST = 1_000

#: The habits of pages in a mixed web: they change as a Poisson process, at fixed times, in bursts, or never.
_POISSON, _PERIODIC, _BURSTS, _NEVER = range(4)
_MIXED = (0.6, 0.15, 0.15, 0.1)

#: In a burst, changes come so many times as often; so many of them on the mean make one.
_FASTER, _BURST = 20.0, 10

#: Time at which the web begins, in seconds since the epoch.
EPOCH = 1.6e9


class WebOfChanges(msgspec.Struct, frozen=True):
    """How a web changes, and what its hosts say."""

    pages: int = 20_000
    mean: float = 86_400.0
    """Seconds between two changes, on the mean over all pages."""
    shape: float = 0.5
    """Of the gamma distribution of rates."""
    is_mixed: bool = False
    """Whether pages have different habits, and not all change as Poisson processes."""
    precision: float = 1.0
    recall: float = 0.0
    """Share of changes that hosts say, and share of what they say that is true."""
    liars: float = 0.0
    """Share of hosts that say every few hours that every page changed."""
    seed: int = 1


class ChangingPages:
    """The pages of such a web. Call :meth:`step` to let time pass."""

    def __init__(self, web: WebOfChanges) -> None:
        self.web = web
        self._draw = draw = np.random.default_rng(web.seed)
        self.rates = np.maximum(draw.gamma(web.shape, 1 / (web.shape * web.mean), web.pages), 1e-12)
        self._habits = draw.choice(4, web.pages, p=_MIXED) if web.is_mixed else np.zeros(web.pages, np.int64)
        self.rates[self._habits == _NEVER] = 1e-12
        self.levels = np.clip(np.round(draw.normal(4, 1.5, web.pages)), 0, LEVELS - 1).astype(np.int64)
        self.weights = np.array([weight_of(level) for level in range(LEVELS)])[self.levels]
        self.versions = np.zeros(web.pages, np.int64)
        self.seen = np.full(web.pages, -1, np.int64)
        """The version that the last visit brought."""
        self.now = EPOCH
        self._next = self.now + draw.exponential(1 / self.rates)
        false = self.rates * web.recall * (1 - web.precision) / web.precision
        self._false_rates = np.maximum(false, 1e-15)
        self._next_false = self.now + draw.exponential(1 / self._false_rates)
        hosts = -(-web.pages // PAGES_A_HOST)
        self._lies = np.repeat(draw.random(hosts) < web.liars, PAGES_A_HOST)[: web.pages]
        self._lied_at = self.now

    def url(self, page: int) -> str:
        return f"http://h{page // PAGES_A_HOST}.test/{page}"

    @staticmethod
    def page(url: str) -> int:
        return int(url.rpartition("/")[2])

    def step(self, seconds: float) -> NDArray[np.int64]:
        """Time passes; the pages that hosts say have changed, each as often as it is said."""
        self.now += seconds
        said = []
        while len(pages := np.nonzero(self._next <= self.now)[0]):
            self.versions[pages] += 1
            # Seconds to the next change: short within a burst, and the pause behind it makes up for that, so that the mean stays.
            mean, habit = 1 / self.rates[pages], self._habits[pages]
            gaps = self._draw.exponential(mean)
            is_short = self._draw.random(len(pages)) < 1 - 1 / _BURST
            short, pause = gaps / _FASTER, gaps * (_BURST - (_BURST - 1) / _FASTER)
            gaps = np.where(habit == _BURSTS, np.where(is_short, short, pause), gaps)
            self._next[pages] += np.where(habit == _PERIODIC, mean, gaps)
            said.append(pages[self._draw.random(len(pages)) < self.web.recall])
        while len(pages := np.nonzero(self._next_false <= self.now)[0]):
            self._next_false[pages] += self._draw.exponential(1 / self._false_rates[pages])
            said.append(pages)
        if self.web.liars and self.now - self._lied_at > self.web.mean / 4:
            self._lied_at = self.now
            said.append(np.nonzero(self._lies)[0])
        return np.concatenate(said) if said else np.zeros(0, np.int64)

    @property
    def freshness(self) -> float:
        """The share of all importance that belongs to pages which are as they were when they were visited last."""
        return float(self.weights[self.seen == self.versions].sum() / self.weights.sum())


def best_freshness(rates: NDArray[np.float64], weights: NDArray[np.float64], visits: float) -> float:
    """The freshness that is reached by who knows every rate, with so many visits a second: each page is visited when the marginal
    gain of a visit comes up to one threshold for all (Azar and others 2018)."""
    low, high = 0.0, float((weights / rates).max())
    for _ in range(100):
        threshold = (low + high) / 2
        intervals = _optimal(rates, weights, threshold)
        low, high = (threshold, high) if (1 / intervals).sum() > visits else (low, threshold)
    changes = rates * intervals
    fresh = np.where(np.isfinite(changes), -np.expm1(-changes) / changes, 0.0)
    return float((weights * fresh).sum() / weights.sum())


def _optimal(rates: NDArray[np.float64], weights: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """Seconds until the marginal gain of a visit comes up to the threshold; infinite where it never does."""
    needed = threshold * rates / weights
    low, high = np.zeros(len(rates)), np.full(len(rates), 60.0)
    for _ in range(60):
        middle = (low + high) / 2
        is_less = -np.expm1(-middle) - middle * np.exp(-middle) < needed
        low, high = np.where(is_less, middle, low), np.where(is_less, high, middle)
    return np.where(needed < 1, high / rates, math.inf)


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
    """The figures of a simulated crawl."""

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
    """A ledger with a schedule, as `--recrawl adaptive` has them; one page is fetched in no time, as it is then."""

    def __init__(self, folder: str, pages: ChangingPages, mean_interval: float) -> None:
        self._pages = pages
        self.store, self._queues = opened(folder)
        sheet = RevisitSheet(rate=1.0, mean_interval=mean_interval, weighs=True, min_interval=60.0)
        self.schedule = schedule = RevisitSchedule(sheet)
        schedule.policy = GreedyPolicy()
        schedule.ledger = schedule.store = self.store
        schedule.open()
        self._ledger = RevisitLedger()
        self._ledger.behind, self._ledger.revisits = self.store, schedule
        self._ledger.clock = _SteppedClock(pages)
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
        queues = self._queues
        held = list(queues.admit(now))
        popped = (task for one in held for tasks in iter(partial(queues.pop, one.host, _GROUP), []) for task in tasks)
        for some in _groups(popped):
            with self._ledger.group() as group:
                for task in some:
                    page = self._pages.page(task.url)
                    version = int(self._pages.versions[page])
                    group.visited(Visit(task, Response(Outcome.OK, 200), digest=str(version)), None)
                    self._pages.seen[page] = version
                    self.visited += 1


def simulated(web: WebOfChanges, budget: float, steps: int = STEPS) -> FreshnessFigures:
    """Crawl a web again and again with `adaptive`, with so many visits for each mean change, in so many steps of the clock to the
    time in which the mean page is visited once."""
    pages, interval, fresh = ChangingPages(web), web.mean / budget, list[float]()
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder, Spent() as spent:
        crawl = _Crawl(folder, pages, interval)
        # New pages are found over one interval, as a crawl finds them.
        found = np.array_split(np.random.default_rng(web.seed).permutation(web.pages), steps)
        before = 0
        for step in range(steps * (WARM_UP + COUNTED)):
            said, counts = pages.step(interval / steps), step >= steps * WARM_UP
            if step < steps:
                crawl.seed(found[step])
            if len(said):
                crawl.signal(said)
            if step == steps * WARM_UP:
                before = crawl.visited
            if counts:
                # Visits come all at once in a step: freshness falls until then, and counts from both sides.
                fresh.append(pages.freshness)
            crawl.step()
            if counts:
                fresh.append(pages.freshness)
        crawl.store.abandon()
    days = (WARM_UP + COUNTED) * interval / 86_400
    kept = (crawl.visited - before) / web.pages / COUNTED
    return FreshnessFigures(float(np.mean(fresh)), kept, days, spent.cpu, crawl.visited)
