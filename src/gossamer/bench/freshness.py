"""How fresh a crawl keeps pages that change: the policy, estimator and schedule of a real crawl, in a ledger, on a simulated clock.

Months of a web go by in minutes: pages change with rates drawn from a gamma distribution of shape 0.5, and are important by
levels. The budget is told as visits for each mean change. Counted is importance-weighted freshness, after five visits a page.
Beside ours stand the optimum that knows every rate, and the rules of Nutch and StormCrawler with as many requests. Each case has a
process of its own, as many at once as there are processors.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np

from gossamer.bench.changing import ChangingPages, WebOfChanges, best_freshness
from gossamer.bench.recrawling import WARM_UP, FreshnessFigures, simulated
from gossamer.bench.report import BenchReport
from gossamer.bench.rules import by_scaled_waits, in_due_order
from gossamer.engine import processes
from gossamer.frontier.seams import Outlook
from gossamer.recrawl.policies import GreedyPolicy, NutchAdaptive, StormCrawlerAdaptive
from gossamer.values.change_rate import Belief, Evidence, RateGroup, Signals, believed, grouped, learnt, prior_of
from gossamer.values.page_history import KnownPage

#: Visits for each mean change.
BUDGETS = (0.3, 1.0, 3.0)

#: What the hosts of a web say, and what habits its pages have; the first is measured beside the optimum and other rules.
_PLAIN, _SAID, _HALF_LIE, _ALL_LIE, _MIXED = (
    "say nothing",
    "say 80 % of changes, 80 % of it true",
    "so, but half of them say always that all changed",
    "all say always that all changed",
    "mixed habits",
)
_WEBS = {
    _PLAIN: WebOfChanges(),
    _SAID: WebOfChanges(precision=0.8, recall=0.8),
    _HALF_LIE: WebOfChanges(precision=0.8, recall=0.8, liars=0.5),
    _ALL_LIE: WebOfChanges(liars=1.0),
    _MIXED: WebOfChanges(is_mixed=True),
}


class FreshnessCase(msgspec.Struct, frozen=True):
    """A web, and how often its pages may be visited for each mean change."""

    web: WebOfChanges
    budget: float


def _simulated(cases: Iterable[FreshnessCase]) -> list[FreshnessFigures]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(_apart, cases))


def _apart(case: FreshnessCase) -> FreshnessFigures:
    command = processes.command("gossamer.bench.freshness", msgspec.json.encode(case).decode())
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=processes.environment()).stdout
    return msgspec.json.decode(told, type=FreshnessFigures)


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


def _plain(report: BenchReport, count: int, ours: dict[tuple[str, float], FreshnessFigures]) -> None:
    table = report.table(
        f"Importance-weighted freshness of {count:,} pages, after {WARM_UP} visits a page; rates of shape 0.5",
        *("visits a mean change", "the optimum", "adaptive", "of the optimum", "visits made", "days", "us a visit"),
    )
    others = report.table(
        "The rules of other crawlers with as many requests, by waits that are scaled and in the order in which pages are due",
        *("visits a mean change", "Nutch", "StormCrawler", "adaptive above them"),
        *("Nutch, in due order", "StormCrawler, in due order", "adaptive above them", "the optimum above them"),
    )
    for budget in BUDGETS:
        web, figures = WebOfChanges(pages=count), ours[_PLAIN, budget]
        pages = ChangingPages(web)
        best = best_freshness(pages.rates, pages.weights, count * budget / web.mean)
        table.add(
            *(budget, f"{best:.3f}", f"{figures.freshness:.3f}", f"{figures.freshness / best:.1%}"),
            *(f"{figures.visits:.3f}", f"{figures.days:.0f}", f"{figures.seconds / figures.visited * 1e6:.0f}"),
        )
        rules = NutchAdaptive(), StormCrawlerAdaptive()
        scaled = [by_scaled_waits(rule, web, budget) for rule in rules]
        due = [in_due_order(rule, web, budget) for rule in rules]
        others.add(
            *(budget, *(f"{one:.3f}" for one in scaled), f"{figures.freshness / max(scaled) - 1:.0%}"),
            *(*(f"{one:.3f}" for one in due), f"{figures.freshness / max(due) - 1:.0%}", f"{best / max(due) - 1:.0%}"),
        )


def _others(report: BenchReport, ours: dict[tuple[str, float], FreshnessFigures]) -> None:
    said = report.table(
        "Hosts that say what changed", "hosts", "visits a mean change", "adaptive", "above none", "visits made"
    )
    mixed = report.table(
        "Pages of mixed habits: Poisson, periodic, in bursts, never", "visits a mean change", "adaptive", "visits made"
    )
    for (name, budget), figures in ours.items():
        freshness, visits = f"{figures.freshness:.3f}", f"{figures.visits:.3f}"
        if name == _MIXED:
            mixed.add(budget, freshness, visits)
        elif name != _PLAIN:
            said.add(name, budget, freshness, f"{figures.freshness / ours[_PLAIN, budget].freshness - 1:+.1%}", visits)


def run(count: int = 20_000) -> BenchReport:
    """Measure with so many pages, and make the report."""
    report = BenchReport("freshness")
    keys = [(name, budget) for name in (_PLAIN, _SAID, _MIXED) for budget in BUDGETS]
    keys += [(_HALF_LIE, BUDGETS[0]), (_ALL_LIE, BUDGETS[0])]
    cases = [FreshnessCase(msgspec.structs.replace(_WEBS[name], pages=count), budget) for name, budget in keys]
    ours = dict(zip(keys, _simulated(cases), strict=True))
    _plain(report, count, ours)
    _others(report, ours)
    rate = report.table("Rate of change after ten visits: median error", "shape", "ours", "Bayes, true prior", "ratio")
    for shape in (3.0, 1.0, 0.5):
        ours_error, exact = _errors(shape)
        rate.add(shape, f"{ours_error:.3f}", f"{exact:.3f}", f"{ours_error / exact:.2f}")
    cost = report.table("Cost", "what", "figure")
    cost.add("a decision of the policy", f"{_decision():.1f} us")
    evidence = learnt(Belief(1.0, 1e5), Evidence(), 1e5, is_changed=True)
    cost.add("evidence of a page in the ledger", f"{len(msgspec.msgpack.encode(evidence)) - 1} bytes")
    return report


if __name__ == "__main__":
    asked = msgspec.json.decode(sys.argv[1], type=FreshnessCase)
    sys.stdout.write(msgspec.json.encode(simulated(asked.web, asked.budget)).decode())
