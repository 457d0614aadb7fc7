"""How fresh a crawl keeps pages that change: the policy, estimator and schedule of a real crawl, in a ledger, on a simulated
clock.

Months of a web go by in minutes: pages change with rates drawn from a gamma distribution of shape 0.5, and are important by
levels. The budget is told as visits for each mean change. Counted is importance-weighted freshness, after five visits a
page. Beside ours stand the optimum that knows every rate, and the rules of Nutch and StormCrawler with as many requests. A
rule says how long each page waits; how many visits that makes is its own affair, so it has to be brought to the budget. Two
ways of that are measured: its waits are stretched, all by the same factor (:func:`by_scaled_waits`), or pages are visited in
the order in which they are due, as many as there may be (:func:`in_due_order`). Each case has a process of its own, as many
at once as there are processors.
"""

import heapq
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import numpy as np

from gossamer.bench.harness import BenchReport, Spent, apart, pages_option
from gossamer.frontier.contract import Outlook, RevisitPolicy
from gossamer.recrawl.policies import GreedyPolicy, NutchAdaptive, StormCrawlerAdaptive
from gossamer.values.page_history import (
    Belief,
    Evidence,
    KnownPage,
    RateGroup,
    Signals,
    believed,
    grouped,
    learnt,
    prior_of,
)
from tools.bench.changing import (
    WARM_UP,
    ChangingPages,
    FreshnessFigures,
    WebOfChanges,
    best_freshness,
    simulated,
)

#: Visits that a rule makes of each page before its waits are taken, and those that are taken.
_SETTLING, _TAKEN = 30, 20

#: Pages of the web that a rule visits: its pages know nothing of each other, so that more of them make the figure finer alone.
_RULED = 4_000

#: In due order: mean visits of a page until the rule has settled, and while freshness counts; steps of the clock for each of them.
_SETTLED, _COUNTED, _DUE_STEPS = 30, 6, 100

#: Decisions of the policy whose cost is measured.
_DECISIONS = 20_000

#: Bounds of the waits: a minute and a year, which are Nutch's own.
_LEAST, _MOST = 60.0, 365 * 86_400.0

_OUTLOOK = Outlook()


def by_scaled_waits(policy: RevisitPolicy, web: WebOfChanges, budget: float) -> float:
    """The freshness of a rule with its waits scaled to so many visits for each mean change.

    The rule settles on each page's waits with as many visits as it wants. These waits, all scaled alike, then count: a rule whose
    visits are more or fewer than the budget stands on its own proportions between pages.
    """
    pages = ChangingPages(msgspec.structs.replace(web, pages=min(web.pages, _RULED)))
    draw = np.random.default_rng(web.seed)
    every = []
    for rate in pages.rates.tolist():
        # The waits of one page, when the rule knows it.
        known, its = KnownPage(), list[float]()
        for chance in draw.random(_SETTLING + _TAKEN).tolist():
            is_changed = bool(chance < -np.expm1(-rate * known.waits))
            known = _visited(policy, known, known.visited_at + known.waits, is_changed)
            its.append(known.waits)
        every.append(its[-_TAKEN:])
    waits = np.array(every)
    # A page's mean time between visits and its fresh part of that, at a scale that gives the right number of visits in all.
    low, high = 1e-9, 1e9
    for _ in range(100):
        scale = (low * high) ** 0.5
        made = (1 / (waits.mean(axis=1) * scale)).sum()
        low, high = (scale, high) if made > len(waits) * budget / web.mean else (low, scale)
    changes = pages.rates[:, None] * waits * scale
    fresh = (-np.expm1(-changes)).sum(axis=1) / changes.sum(axis=1)
    return float((pages.weights * fresh).sum() / pages.weights.sum())


def in_due_order(policy: RevisitPolicy, web: WebOfChanges, budget: float) -> float:
    """The freshness of a rule where those pages are visited that are due longest, or will be due first, as many as there may be.

    So a crawler works whose rate has a limit. The rule sees the waits that come of that, and not those that it asked for.
    """
    pages = ChangingPages(msgspec.structs.replace(web, pages=min(web.pages, _RULED)))
    count, interval = len(pages.rates), web.mean / budget
    known = [KnownPage()] * count
    due = [(pages.now, page) for page in range(count)]
    fresh, made = list[float](), 0
    for step in range((_SETTLED + _COUNTED) * _DUE_STEPS):
        pages.step(interval / _DUE_STEPS)
        if step >= _SETTLED * _DUE_STEPS:
            fresh.append(pages.freshness)
        while made < (step + 1) * count / _DUE_STEPS:
            _, page = due[0]
            version = int(pages.versions[page])
            known[page] = _visited(policy, known[page], pages.now, version != pages.seen[page])
            pages.seen[page] = version
            heapq.heapreplace(due, (pages.now + known[page].waits, page))
            made += 1
        if step >= _SETTLED * _DUE_STEPS:
            fresh.append(pages.freshness)
    return float(np.mean(fresh))


def _visited(policy: RevisitPolicy, known: KnownPage, now: float, is_changed: bool) -> KnownPage:
    known = KnownPage(visited_at=now, changed_at=now if is_changed else known.changed_at, waits=known.waits)
    wait = min(max(policy.interval(known, _OUTLOOK), _LEAST), _MOST)
    return msgspec.structs.replace(known, waits=wait)


#: Visits for each mean change.
BUDGETS = (0.3, 1.0, 3.0)

#: The words of the hosts of a web, and the habits of its pages; the first is measured beside the optimum and other rules.
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


def case(web: dict[str, Any], budget: float) -> FreshnessFigures:
    """The figures of one web whose pages may be visited so often for each mean change."""
    return simulated(msgspec.convert(web, WebOfChanges), budget)


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


@pages_option(20_000, "Simulate a web of this many pages.")
def run(pages: int = 20_000) -> BenchReport:
    """Measure how fresh a crawl keeps a web, beside the optimum and other rules."""
    report = BenchReport("freshness")
    keys = [(name, budget) for name in (_PLAIN, _SAID, _MIXED) for budget in BUDGETS]
    keys += [(_HALF_LIE, BUDGETS[0]), (_ALL_LIE, BUDGETS[0])]

    def one(key: tuple[str, float]) -> FreshnessFigures:
        web = msgspec.structs.replace(_WEBS[key[0]], pages=pages)
        return msgspec.convert(apart("tools.bench.freshness:case", web, key[1]), FreshnessFigures)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ours = dict(zip(keys, pool.map(one, keys), strict=True))
    _plain(report, pages, ours)
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
    rate = report.table("Rate of change after ten visits: median error", "shape", "ours", "Bayes, true prior", "ratio")
    for shape in (3.0, 1.0, 0.5):
        ours_error, exact = _errors(shape)
        rate.add(shape, f"{ours_error:.3f}", f"{exact:.3f}", f"{ours_error / exact:.2f}")
    cost = report.table("Cost", "what", "figure")
    draw, policy, page, signals = np.random.default_rng(5), GreedyPolicy(), KnownPage(), Signals(80, 20, 20, 9)
    outlooks = [
        Outlook(Belief(shape, scale * 86_400), 1.0, signals, price * 3_600)
        for shape, scale, price in zip(*(draw.gamma(1, 5, _DECISIONS).tolist() for _ in range(3)), strict=True)
    ]
    with Spent() as spent:
        for outlook in outlooks:
            policy.interval(page, outlook)
    cost.add("a decision of the policy", f"{spent.cpu / _DECISIONS * 1e6:.1f} us")
    evidence = learnt(Belief(1.0, 1e5), Evidence(), 1e5, is_changed=True)
    cost.add("evidence of a page in the ledger", f"{len(msgspec.msgpack.encode(evidence)) - 1} bytes")
    return report
