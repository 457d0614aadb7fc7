"""The invariants of a crawl that was killed, judged from its web's log and from looks at it between two lives. Pure.

The numbers of the invariants are those of docs/design/kills.md.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise

import msgspec

#: Seconds that a request may begin sooner than its delay says: notes of hosts count by the clock of the wall, which is slewed. The
#: server writes down an end before its answer can be read, and a beginning after it was sent, so that it makes no gap shorter.
TOLERANCE = 0.002

#: Breaches of one invariant that are told in full.
MOST = 10

#: Outcomes that say a later try may succeed: such an answer is asked for again, kill or not.
PASSING = frozenset({429, 500, 502, 503, 504})


class How(StrEnum):
    WORKING = "killed at work"
    STARTING = "killed while it starts"
    POINT = "killed at a chosen point"
    PAUSED = "stopped, then killed"
    ENDING = "told to end, then killed"
    END = "ended by itself"


class Life(msgspec.Struct):
    """One life of the crawl. Times are readings of the monotonic clock, which all processes of the machine share."""

    number: int
    how: How
    point: str = ""
    """The crash point, as the environment said it."""
    began: float = 0.0
    ended: float = 0.0
    code: int | None = None
    """Exit status; negative: the signal."""
    said: str = ""
    """Its line of JSON, where it ended by itself."""
    counters: dict[str, int] = {}
    """The counters of the ledger when the life was over."""
    done: set[str] = set()
    """URLs whose story was over then."""
    queued: int = 0


class Hit(msgspec.Struct, frozen=True):
    """One request, by the server's log. Times are readings of the monotonic clock, in seconds."""

    url: str
    host: str
    start: float
    end: float
    status: int
    abandoned: bool
    """The crawler did not wait for all of the answer."""
    life: int = -1

    @property
    def is_robots(self) -> bool:
        return self.url.endswith("/robots.txt") and self.url.count("/") == 3


class Judgement(msgspec.Struct):
    """The findings of one round."""

    breaches: dict[str, list[str]] = {}
    """By invariant, as `I1 nothing lost`."""
    refetched: list[int] = []
    """For each kill: URLs that were asked for before and after it."""
    restarts: list[float] = []
    """For each life that got so far: seconds from its start to its first request."""
    hits: int = 0
    pages: int = 0

    def breach(self, invariant: str, text: str) -> None:
        told = self.breaches.setdefault(invariant, [])
        if len(told) < MOST:
            told.append(text)


def assign(hits: Iterable[Hit], lives: Sequence[Life]) -> list[Hit]:
    """Hits in order, each with the life that sent it; those that a kill cut off end with their life."""
    starts = [life.began for life in lives]
    found = []
    for hit in sorted(hits, key=lambda hit: hit.start):
        number = max(0, bisect_right(starts, hit.start) - 1)
        end = min(hit.end, lives[number].ended) if hit.start <= lives[number].ended else hit.end
        found.append(msgspec.structs.replace(hit, life=number, end=max(hit.start, end)))
    return found


def judge(
    hits: Sequence[Hit], lives: Sequence[Life], expected: set[str], delay: float, concurrency: int, per_host: int = 1
) -> Judgement:
    """Hold the hits (of :func:`assign`) and the lives against everything that must hold.

    Args:
        hits: in order, each with its life.
        lives: in order; the last one ended by itself.
        expected: pages that must be fetched.
        delay: seconds between two requests to a host.
        concurrency: requests in flight.
        per_host: live requests to one host.
    """
    told, last = Judgement(hits=len(hits), pages=len(expected)), lives[-1]
    asked = [hit for hit in hits if not hit.is_robots]
    got = {hit.url for hit in asked if hit.status in (200, 304) and not hit.abandoned}
    for url in sorted(expected - got)[:MOST]:
        told.breach("I1 nothing is lost", f"{url} was never fetched")
    for url in sorted(expected - last.done)[:MOST]:
        told.breach("I1 nothing is lost", f"{url} has no row in the ledger")
    few_refetched(asked, lives, concurrency, told)
    _kept_is_kept(asked, lives, told)
    # Every request is in the counters, but for those that a kill took.
    fetched, kills = last.counters.get("fetched", 0), sum(life.how is not How.END for life in lives)
    if not 0 <= len(asked) - fetched <= kills * concurrency:
        told.breach("I6 counts agree", f"{len(asked)} requests came in, {fetched} were counted, with {kills} kills")
    for before, life in pairwise(lives):
        for name, count in before.counters.items():
            if (now := life.counters.get(name, 0)) < count:
                told.breach("I7 counters grow", f"{name} fell from {count} to {now} in life {life.number}")
    hosts_are_spared(hits, delay, per_host, told)
    robots_first(hits, told)
    if last.code != 0 or '"state":"finished"' not in last.said:
        told.breach("I14 the end is told truly", f"exit status {last.code}: {last.said or 'nothing was said'}")
    if last.queued:
        told.breach("I14 the end is told truly", f"{last.queued} tasks are still queued")
    first: dict[int, float] = {}
    for hit in hits:
        first.setdefault(hit.life, hit.start)
    told.restarts = [first[life.number] - life.began for life in lives if life.number in first]
    return told


def few_refetched(hits: Sequence[Hit], lives: Sequence[Life], concurrency: int, told: Judgement) -> None:
    """URLs in flight at a kill are asked for again, and no others; within a life only those that failed in passing are."""
    refetched = [0] * max(0, len(lives) - 1)
    last: dict[str, Hit] = {}
    for hit in hits:
        before = last.get(hit.url)
        last[hit.url] = hit
        if before is None or (before.status in PASSING and not before.abandoned):
            continue
        if before.life == hit.life and not before.abandoned:
            told.breach("I2 few are fetched twice", f"{hit.url} was asked for twice in life {hit.life}")
        elif refetched:
            # A server may read what a dead process asked for only when the next one lives: no process waited for the answer.
            refetched[min(before.life, hit.life - 1) if hit.life else 0] += 1
    for number, count in enumerate(refetched):
        if count > concurrency:
            told.breach(
                "I2 few are fetched twice", f"{count} after the kill of life {number}, at most {concurrency} may be"
            )
    told.refetched = [count for life, count in zip(lives, refetched, strict=False) if life.how is not How.END]


def _kept_is_kept(hits: Sequence[Hit], lives: Sequence[Life], told: Judgement) -> None:
    """URLs that were done when a life was over are not asked for again."""
    done: dict[str, int] = {}
    for life in lives:
        for url in life.done:
            done.setdefault(url, life.number)
    for hit in hits:
        if done.get(hit.url, hit.life) < hit.life:
            told.breach("I3 what is kept is not fetched again", f"{hit.url} was done in life {done[hit.url]}")


def hosts_are_spared(hits: Sequence[Hit], delay: float, per_host: int, told: Judgement) -> None:
    """So many live requests to a host, and its delay after each, whichever process sent them."""
    live: dict[str, list[Hit]] = {}
    for hit in hits:
        before = live.get(hit.host, [])
        still = [other for other in before if other.end > hit.start + TOLERANCE]
        where = f"{hit.url} in life {hit.life}, after {before[-1].url} in life {before[-1].life}" if before else ""
        if len(still) >= per_host:
            told.breach("I9 few live requests a host", where)
        elif before and not still and hit.start - max(other.end for other in before) < delay - TOLERANCE:
            gap = hit.start - max(other.end for other in before)
            told.breach("I9 no host is asked too early", f"{gap:.3f} s: {where}")
        live[hit.host] = [*still, hit] if still else [hit]


def robots_first(hits: Sequence[Hit], told: Judgement) -> None:
    known: dict[str, float] = {}
    for hit in hits:
        if hit.is_robots:
            if not hit.abandoned:
                known.setdefault(hit.host, hit.end)
        elif hit.host not in known or hit.start < known[hit.host]:
            told.breach("I10 robots.txt first", f"{hit.url} in life {hit.life}")
