"""How fresh a crawl keeps pages that change: the policy, estimator and schedule of a real crawl, in a ledger, on a simulated clock.

Months of a web go by in minutes: pages change with rates drawn from a gamma distribution of shape 0.5, and are important by
levels. The budget is told as visits for each mean change. Counted is importance-weighted freshness, after five visits a page.
Beside ours stand the optimum that knows every rate, and the rules of Nutch and StormCrawler with as many requests.
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

from gossamer.bench.changing import ChangingPages, WebOfChanges, best_freshness
from gossamer.bench.report import BenchReport
from gossamer.contracts.revisiting import Outlook, RevisitPolicy
from gossamer.flow.clock import SystemClock
from gossamer.model.change_rate import Belief, Evidence, RateGroup, Signals, believed, grouped, learnt, prior_of
from gossamer.model.claims import Said
from gossamer.model.known import KnownPage
from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.url import host_of
from gossamer.model.visit import Response, Visit
from gossamer.stores.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.stores.ledger.providers import LedgerFrontier
from gossamer.stores.revisits.ledger import RevisitLedger
from gossamer.stores.revisits.policies import GreedyPolicy, NutchAdaptive, StormCrawlerAdaptive
from gossamer.stores.revisits.schedule import RevisitSchedule
from gossamer.stores.revisits.settings import RevisitSheet

#: Visits for each mean change.
BUDGETS = (0.3, 1.0, 3.0)

#: Visits a page before counting begins, and while it goes on.
WARM_UP, COUNTED = 5, 4

#: Steps of the clock in the time in which the mean page is visited once.
STEPS = 200

#: Visits that are committed in one group.
_GROUP = 256

#: Visits that a rule makes of each page before its waits are taken, and those that are taken.
_RULE_WARM_UP, _RULE_TAKEN = 30, 20


T = TypeVar("T")


def _groups(several: Iterable[T]) -> Iterator[list[T]]:
    """As many at once as go into one group."""
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
                    self.schedule.told(group, host_of(url), url, Said(now), now)

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
            while tasks := self._queues.pop(state.host):
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
            crawl.step()
            step += 1
            if step == steps * WARM_UP:
                before = crawl.visited
            if step > steps * WARM_UP:
                fresh.append(pages.freshness)
        seconds = time.process_time() - began
        days = step * interval / steps / 86_400
        kept = (crawl.visited - before) / count / COUNTED
        return FreshnessFigures(float(np.mean(fresh)), kept, days, seconds, crawl.visited)


def by_rule(policy: RevisitPolicy, web: WebOfChanges, budget: float, most: int = 4_000) -> float:
    """The freshness of a rule with its intervals scaled to so many visits for each mean change.

    The rule settles on each page's waits with as many visits as it wants. These waits, all scaled alike, then count: a rule whose
    visits are more or fewer than the budget stands on its own proportions between pages.
    """
    pages = ChangingPages(msgspec.structs.replace(web, pages=min(web.pages, most)))
    draw = np.random.default_rng(web.seed)
    waits = np.array([_settled(policy, rate, draw) for rate in pages.rates.tolist()])
    # A page's mean time between visits and its fresh part of that, at a scale that gives the right number of visits in all.
    low, high = 1e-9, 1e9
    for _ in range(100):
        scale = (low * high) ** 0.5
        made = (1 / (waits.mean(axis=1) * scale)).sum()
        low, high = (scale, high) if made > len(waits) * budget / web.mean else (low, scale)
    changes = pages.rates[:, None] * waits * scale
    fresh = (-np.expm1(-changes)).sum(axis=1) / changes.sum(axis=1)
    return float((pages.weights * fresh).sum() / pages.weights.sum())


def _settled(policy: RevisitPolicy, rate: float, draw: np.random.Generator) -> list[float]:
    """The waits of one page, when the rule knows it."""
    known, waits, outlook = KnownPage(), list[float](), Outlook()
    chances = draw.random(_RULE_WARM_UP + _RULE_TAKEN)
    for chance in chances.tolist():
        # Between a minute and a year, which are Nutch's own bounds.
        wait = min(max(policy.interval(known, outlook), 60.0), 365 * 86_400.0)
        waits.append(wait)
        now = known.visited_at + wait
        is_changed = chance < -np.expm1(-rate * wait)
        known = KnownPage(visited_at=now, changed_at=now if is_changed else known.changed_at, waits=wait)
    return waits[-_RULE_TAKEN:]


def _errors(shape: float, several: int = 2_000, visits: int = 10) -> tuple[float, float]:
    """Median relative errors of the rate after some visits at random times: ours, which learns its prior, and that of exact
    Bayes, which is told the true one."""
    draw, grid = np.random.default_rng(4), np.exp(np.linspace(np.log(1e-7), np.log(60.0), 2_000))
    rates = np.maximum(draw.gamma(shape, 1 / shape, several), 1e-9)
    times = draw.exponential(1.0, (several, visits))
    changed = draw.random((several, visits)) < -np.expm1(-rates[:, None] * times)
    group, kept, wide = RateGroup(), [Evidence()] * several, Belief(1.0, 3.0)
    for visit in range(visits):
        for page in range(several):
            prior, time_ = prior_of(group, wide), float(times[page, visit])
            kept[page] = learnt(prior, kept[page], time_, bool(changed[page, visit]))
            group = grouped(group, believed(prior, kept[page]), time_)
    prior = prior_of(group, wide)
    ours = np.array([believed(prior, evidence).rate for evidence in kept])
    exact = np.empty(several)
    for page in range(several):
        grown = grid[:, None] * times[page]
        logs = (
            shape * np.log(grid) - shape * grid + np.where(changed[page], np.log(-np.expm1(-grown)), -grown).sum(axis=1)
        )
        weights = np.exp(logs - logs.max())
        exact[page] = (weights * grid).sum() / weights.sum()
    return float(np.median(abs(ours / rates - 1))), float(np.median(abs(exact / rates - 1)))


def _decision(several: int = 20_000) -> float:
    """Microseconds of CPU in which the policy says how long a page waits."""
    draw, policy, page = np.random.default_rng(5), GreedyPolicy(), KnownPage()
    signals = Signals(80, 20, 20, 9)
    outlooks = [
        Outlook(Belief(shape, scale * 86_400), 1.0, signals, price * 3_600)
        for shape, scale, price in zip(*(draw.gamma(1, 5, several).tolist() for _ in range(3)), strict=True)
    ]
    began = time.process_time()
    for outlook in outlooks:
        policy.interval(page, outlook)
    return (time.process_time() - began) / several * 1e6


def run(count: int = 20_000) -> BenchReport:
    """Measure with so many pages, and make the report."""
    report = BenchReport("freshness")
    table = report.table(
        f"Importance-weighted freshness of {count:,} pages, after {WARM_UP} visits a page; rates of shape 0.5",
        *("visits a mean change", "the optimum", "adaptive", "of the optimum", "Nutch", "StormCrawler", "above them"),
        *("visits made", "days", "us a visit"),
    )
    plain = dict[float, FreshnessFigures]()
    for budget in BUDGETS:
        web = WebOfChanges(pages=count)
        pages = ChangingPages(web)
        best = best_freshness(pages.rates, pages.weights, count * budget / web.mean)
        ours = plain[budget] = simulated(web, budget)
        rules = [by_rule(rule, web, budget) for rule in (NutchAdaptive(), StormCrawlerAdaptive())]
        table.add(
            *(budget, f"{best:.3f}", f"{ours.freshness:.3f}", f"{ours.freshness / best:.1%}"),
            *(f"{rules[0]:.3f}", f"{rules[1]:.3f}", f"{ours.freshness / max(rules) - 1:.0%}", f"{ours.visits:.3f}"),
            *(f"{ours.days:.0f}", f"{ours.seconds / ours.visited * 1e6:.0f}"),
        )
    said = report.table(
        f"What sitemaps do, budget {BUDGETS[0]}", "hosts", "adaptive", "above none", "visits made", "days"
    )
    for name, web in (
        ("say nothing", WebOfChanges(pages=count)),
        ("say 80 % of changes, 80 % of it true", WebOfChanges(pages=count, precision=0.8, recall=0.8)),
        (
            "so, but half of them say always that all changed",
            WebOfChanges(pages=count, precision=0.8, recall=0.8, liars=0.5),
        ),
        ("all say always that all changed", WebOfChanges(pages=count, liars=1.0)),
    ):
        figures = plain[BUDGETS[0]] if name == "say nothing" else simulated(web, BUDGETS[0])
        over = figures.freshness / plain[BUDGETS[0]].freshness - 1
        said.add(name, f"{figures.freshness:.3f}", f"{over:+.1%}", f"{figures.visits:.3f}", f"{figures.days:.0f}")
    mixed = report.table(
        "Pages of mixed habits: Poisson, periodic, in bursts, never", "visits a mean change", "adaptive"
    )
    for budget in BUDGETS:
        mixed.add(budget, f"{simulated(WebOfChanges(pages=count, is_mixed=True), budget).freshness:.3f}")
    rate = report.table("Rate of change after ten visits: median error", "shape", "ours", "Bayes, true prior", "ratio")
    for shape in (3.0, 1.0, 0.5):
        ours_error, exact = _errors(shape)
        rate.add(shape, f"{ours_error:.3f}", f"{exact:.3f}", f"{ours_error / exact:.2f}")
    cost = report.table("Cost", "what", "figure")
    cost.add("a decision of the policy", f"{_decision():.1f} us")
    evidence = learnt(Belief(1.0, 1e5), Evidence(), 1e5, is_changed=True)
    cost.add("evidence of a page in the ledger", f"{len(msgspec.msgpack.encode(evidence)) - 1} bytes")
    return report
