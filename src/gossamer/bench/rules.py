"""What rules of other crawlers make of a web that changes, with as many visits as ours makes: Nutch's and StormCrawler's.

Place in the flow: `gossamer bench freshness` sets them beside `--recrawl adaptive`. A rule says how long each page waits; how many
visits that makes is its own affair, so it has to be brought to the budget. Two ways of that are measured: its waits are stretched,
all by the same factor (:func:`by_scaled_waits`), or pages are visited in the order in which they are due, as many as there may be
(:func:`in_due_order`).
"""

import heapq

import msgspec
import numpy as np

from gossamer.bench.changing import ChangingPages, WebOfChanges
from gossamer.frontier.seams import Outlook, RevisitPolicy
from gossamer.values.page_history import KnownPage

#: Visits that a rule makes of each page before its waits are taken, and those that are taken.
_SETTLING, _TAKEN = 30, 20

#: Pages of the web that a rule visits: its pages know nothing of each other, so that more of them make the figure finer alone.
_PAGES = 4_000

#: In due order: mean visits of a page until the rule has settled, and while freshness counts; steps of the clock for each of them.
_WARM_UP, _COUNTED, _STEPS = 30, 6, 100

#: Bounds of the waits: a minute and a year, which are Nutch's own.
_LEAST, _MOST = 60.0, 365 * 86_400.0

_OUTLOOK = Outlook()


def by_scaled_waits(policy: RevisitPolicy, web: WebOfChanges, budget: float, most: int = _PAGES) -> float:
    """The freshness of a rule with its waits scaled to so many visits for each mean change.

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
    known, waits = KnownPage(), list[float]()
    chances = draw.random(_SETTLING + _TAKEN)
    for chance in chances.tolist():
        known = _visited(policy, known, known.visited_at + known.waits, bool(chance < -np.expm1(-rate * known.waits)))
        waits.append(known.waits)
    return waits[-_TAKEN:]


def in_due_order(policy: RevisitPolicy, web: WebOfChanges, budget: float, most: int = _PAGES) -> float:
    """The freshness of a rule where those pages are visited that are due longest, or will be due first, as many as there may be.

    So a crawler works whose rate has a limit. The rule sees the waits that come of that, and not those that it asked for.
    """
    pages = ChangingPages(msgspec.structs.replace(web, pages=min(web.pages, most)))
    count, interval = len(pages.rates), web.mean / budget
    known = [KnownPage()] * count
    due = [(pages.now, page) for page in range(count)]
    fresh, made = list[float](), 0
    for step in range((_WARM_UP + _COUNTED) * _STEPS):
        pages.step(interval / _STEPS)
        if step >= _WARM_UP * _STEPS:
            fresh.append(pages.freshness)
        while made < (step + 1) * count / _STEPS:
            _, page = due[0]
            version = int(pages.versions[page])
            known[page] = _visited(policy, known[page], pages.now, version != pages.seen[page])
            pages.seen[page] = version
            heapq.heapreplace(due, (pages.now + known[page].waits, page))
            made += 1
        if step >= _WARM_UP * _STEPS:
            fresh.append(pages.freshness)
    return float(np.mean(fresh))


def _visited(policy: RevisitPolicy, known: KnownPage, now: float, is_changed: bool) -> KnownPage:
    known = KnownPage(visited_at=now, changed_at=now if is_changed else known.changed_at, waits=known.waits)
    wait = min(max(policy.interval(known, _OUTLOOK), _LEAST), _MOST)
    return msgspec.structs.replace(known, waits=wait)
