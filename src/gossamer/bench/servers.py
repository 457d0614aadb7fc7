"""Simulated servers for :mod:`gossamer.bench.pace`: when a request begins, in; how it ends and after how long, out.

Time is a number and randomness is seeded, so that a day of a crawl passes in a second and repeats exactly.
"""

import random
from typing import NamedTuple, Protocol

from gossamer.values.outcome import Outcome


class ServerReply(NamedTuple):
    """How one request ends."""

    outcome: Outcome
    elapsed: float
    """Seconds."""
    retry_after: str = ""


class Server(Protocol):
    """Answers one request at a time."""

    def ask(self, page: int, now: float) -> ServerReply:
        """The reply to a request for this page that begins at `now`, in seconds."""
        ...


class Flaky:
    """Answers a share of all requests with 503 and `Retry-After`, at random, whatever the pace."""

    def __init__(self, share: float, retry_after: str = "1", latency: float = 0.05, seed: int = 1) -> None:
        self._share, self._retry_after, self._latency = share, retry_after, latency
        self._draw = random.Random(seed)

    def ask(self, page: int, now: float) -> ServerReply:
        """See :class:`Server`. The latency spreads as that of web pages does."""
        elapsed = self._latency * self._draw.lognormvariate(0.0, 0.5)
        if self._draw.random() < self._share:
            return ServerReply(Outcome.SERVER_ERROR, elapsed, self._retry_after)
        return ServerReply(Outcome.OK, elapsed)


class TokenBucket:
    """Lets `rate` requests a second through, and `burst` at once after a rest; answers 429 to all others."""

    def __init__(self, rate: float, burst: float, retry_after: str = "", latency: float = 0.02, seed: int = 1) -> None:
        """A full bucket. `retry_after` is sent as it is; `exact` sends the seconds until the next token, rounded up."""
        self.rate = rate
        self._burst, self._tokens, self._at = burst, burst, 0.0
        self._retry_after, self._latency = retry_after, latency
        self._draw = random.Random(seed)

    def ask(self, page: int, now: float) -> ServerReply:
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self.rate)
        self._at = now
        elapsed = self._latency * self._draw.lognormvariate(0.0, 0.3)
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return ServerReply(Outcome.OK, elapsed)
        field = self._retry_after
        if field == "exact":
            field = str(int((1.0 - self._tokens) / self.rate) + 1)
        return ServerReply(Outcome.RATE_LIMITED, elapsed, field)


class Overloaded:
    """Slows down as the rate comes near its knee, and fails beyond it in proportion."""

    #: Seconds over which the server feels its load.
    SPAN = 5.0

    def __init__(self, knee: float, latency: float = 0.02, seed: int = 1) -> None:
        self.knee = knee
        self._latency, self._load, self._at = latency, 0.0, 0.0
        self._draw = random.Random(seed)

    def ask(self, page: int, now: float) -> ServerReply:
        self._load *= 2.0 ** (-(now - self._at) / self.SPAN)
        self._load += 0.6931 / self.SPAN
        self._at = now
        part = self._load / self.knee
        elapsed = self._latency * self._draw.lognormvariate(0.0, 0.3) / max(0.05, 1.0 - 0.9 * part)
        is_lost = self._draw.random() < part - 1.0
        return ServerReply(Outcome.SERVER_ERROR if is_lost else Outcome.OK, elapsed)


class FailsAtRandom:
    """Fails on a share of all requests, at random, whatever the pace."""

    def __init__(self, share: float, latency: float = 0.05, seed: int = 1) -> None:
        self._share, self._latency = share, latency
        self._draw = random.Random(seed)

    def ask(self, page: int, now: float) -> ServerReply:
        is_lost = self._draw.random() < self._share
        return ServerReply(Outcome.SERVER_ERROR if is_lost else Outcome.OK, self._latency)


class Moody:
    """Well for a while, then refuses everything for a while, in turns."""

    def __init__(self, well: float, ill: float, retry_after: str = "", latency: float = 0.05) -> None:
        self.well, self.ill = well, ill
        self._retry_after, self._latency = retry_after, latency

    def ask(self, page: int, now: float) -> ServerReply:
        if now % (self.well + self.ill) < self.well:
            return ServerReply(Outcome.OK, self._latency)
        return ServerReply(Outcome.RATE_LIMITED, self._latency, self._retry_after)


class BrokenPages:
    """Answers one page in so many with 503 and `Retry-After`, always, and all others well."""

    def __init__(self, one_in: int, latency: float = 0.05) -> None:
        self._one_in, self._latency = one_in, latency

    def ask(self, page: int, now: float) -> ServerReply:
        if page % self._one_in == 0:
            return ServerReply(Outcome.SERVER_ERROR, self._latency, "1")
        return ServerReply(Outcome.OK, self._latency)
