"""How long a crawl waits for retries alone, and what it tells of them when it ends (design question 24, design question 31).

Place in the flow: the frontier tells of answers here, and asks whether to end when nothing can be handed out. To linger says when a
crawl ends, never what it owes: what waits stays queued, and `resume` asks for it.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from math import inf
from typing import Literal

import msgspec

from gossamer.model.outcome import Outcome
from gossamer.model.url import site_of

#: Seconds that a crawl waits for retries alone, unless told otherwise: the first retry comes after 10 s.
USUAL = 30.0

#: Failures that are remembered, to be told at the end: far more than anybody reads.
_REMEMBERED = 512

#: Failures that can be followed by a retry.
_FAILURES = frozenset(
    {
        Outcome.SERVER_ERROR,
        Outcome.RATE_LIMITED,
        Outcome.ROBOTS_UNREACHABLE,
        Outcome.DNS_FAILED,
        Outcome.CONNECT_FAILED,
        Outcome.TLS_FAILED,
        Outcome.TIMED_OUT,
        Outcome.TOO_SLOW,
        Outcome.PROTOCOL_FAILED,
    }
)


class RetriesWaiting(msgspec.Struct, frozen=True):
    """Retries that are due later."""

    urls: int
    """URLs that wait; where a crawl ended for another reason than them, those that failed in this run, some hundreds at most."""
    next: str
    """When the first is due: a date and time as RFC 3339 has them, in UTC."""
    hosts: dict[str, str] = {}
    """Why, by endpoint or host, as far as this run has met the reason: outcomes, as `connect_failed`. At most some dozens."""


class Failures:
    """The last failure of URLs that may be tried again; the oldest makes room."""

    def __init__(self) -> None:
        self._failed: OrderedDict[str, Outcome] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Failures of {len(self._failed)} URLs>"

    def __len__(self) -> int:
        return len(self._failed)

    def answered(self, url: str, outcome: Outcome) -> None:
        """A request for this URL has ended."""
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


def is_too_long(wait: float, linger: float | Literal["forever"]) -> bool:
    """Whether a crawl ends rather than wait so many seconds for retries alone; without any retry there is nothing to wait for."""
    return linger != "forever" and wait < inf and wait > linger
