"""A web that changes, on a clock of its own: pages of known rates, hosts that say what changed and are right or wrong.

Place in the flow: `gossamer bench freshness` and its tests crawl it with the schedule of a real crawl. Times are in seconds.
"""

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from gossamer.frontier.contract import LEVELS
from gossamer.recrawl.schedule import weight_of

#: Pages of a host.
PAGES_A_HOST = 1_000

#: What changes as a Poisson process in a web of mixed habits, at fixed times, in bursts; the rest never does.
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
        """The URL of a page; its host has a thousand of them."""
        return f"http://h{page // PAGES_A_HOST}.test/{page}"

    @staticmethod
    def page(url: str) -> int:
        """The page of a URL."""
        return int(url.rpartition("/")[2])

    def step(self, seconds: float) -> NDArray[np.int64]:
        """Time passes; the pages that hosts say have changed, each as often as it is said."""
        self.now += seconds
        said = []
        while len(pages := np.nonzero(self._next <= self.now)[0]):
            self.versions[pages] += 1
            self._next[pages] += self._gaps(pages)
            said.append(pages[self._draw.random(len(pages)) < self.web.recall])
        while len(pages := np.nonzero(self._next_false <= self.now)[0]):
            self._next_false[pages] += self._draw.exponential(1 / self._false_rates[pages])
            said.append(pages)
        if self.web.liars and self.now - self._lied_at > self.web.mean / 4:
            self._lied_at = self.now
            said.append(np.nonzero(self._lies)[0])
        return np.concatenate(said) if said else np.zeros(0, np.int64)

    def _gaps(self, pages: NDArray[np.int64]) -> NDArray[np.float64]:
        """Seconds from a change to the next."""
        mean, habit = 1 / self.rates[pages], self._habits[pages]
        gaps = self._draw.exponential(mean)
        # Within a burst they are short; the pause behind it makes up for that, so that the mean stays.
        is_short = self._draw.random(len(pages)) < 1 - 1 / _BURST
        short, pause = gaps / _FASTER, gaps * (_BURST - (_BURST - 1) / _FASTER)
        gaps = np.where(habit == _BURSTS, np.where(is_short, short, pause), gaps)
        return np.where(habit == _PERIODIC, mean, gaps)

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
