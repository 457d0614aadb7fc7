"""A follower whose consumers are tried again when they fail: databases that start anew, disks that were full.

Place in the flow: the process of a follower (:mod:`gossamer.operations.following`) makes one of the search index, and one of each
sink. A consumer that fails is closed, and opened again after a pause that grows; the others are fed meanwhile. What it could not
take stays in the tables, and the next run gives it.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from gossamer.contracts.feeding import FeedConsumer, FollowerNote
from gossamer.query.following import FAILURES, Follower, feed_all, feeds_of

#: Seconds that a consumer which fails is left out, at most: the number of looks doubles with each failure.
_LONGEST_PAUSE = 30

#: Tries that are left when the crawl has ended, and seconds before each: a database that starts anew is back by then.
_LAST_TRIES, _LAST_PAUSE = 5, 1.0


class OpenConsumer(FeedConsumer, Protocol):
    """A consumer that holds something open."""

    def close(self) -> None:
        """Let go of it."""
        ...


class Retried(msgspec.Struct, frozen=True):
    """Something that is opened, and opened again when it fails."""

    name: str
    """As people call it."""
    open: Callable[[], OpenConsumer]
    """Raises OSError or GossamerError where it cannot be opened."""


class _Trial:
    """One of them, and what became of it."""

    def __init__(self, what: Retried, most_left_out: int) -> None:
        self.what = what
        self.consumer: OpenConsumer | None = None
        self.failure = ""
        """Why it failed last; empty where it did not."""
        self._failures = 0
        self._left_out = 0
        self._most_left_out = most_left_out

    def is_due(self) -> bool:
        self._left_out = max(0, self._left_out - 1)
        return not self._left_out

    def opened(self) -> OpenConsumer | None:
        """The consumer, opened where it is not; None where that fails."""
        if self.consumer is None:
            try:
                self.consumer = self.what.open()
            except FAILURES as error:
                self.fail(error)
        return self.consumer

    def fail(self, error: Exception) -> None:
        self.close()
        self.failure = " ".join(str(error).split()) or type(error).__name__
        self._failures += 1
        self._left_out = min(2**self._failures, self._most_left_out)

    def succeed(self) -> None:
        self.failure, self._failures = "", 0

    def close(self) -> None:
        consumer, self.consumer = self.consumer, None
        if consumer is not None:
            consumer.close()


class RetryingFollower(Follower):
    """Feeds some consumers, each as if it were alone."""

    def __init__(
        self, directory: Path, every: Sequence[Retried], sleep: Callable[[float], None] = time.sleep, *, rests: int = 1
    ) -> None:
        """Name what is fed. Nothing is opened yet.

        Args:
            directory: the crawl directory.
            every: what is fed.
            sleep: waits for so many seconds.
            rests: seconds between two looks while the crawl runs.
        """
        self.rests = rests
        self._directory = directory
        self._trials = [_Trial(one, max(1, _LONGEST_PAUSE // rests)) for one in every]
        self._tried: list[_Trial] = []
        self._sleep = sleep

    def consumers(self) -> Sequence[FeedConsumer]:
        """Those that are due."""
        self._tried = [trial for trial in self._trials if trial.is_due() and trial.opened()]
        return [trial.consumer for trial in self._tried if trial.consumer is not None]

    def failed(self, consumer: FeedConsumer, error: Exception) -> None:
        """See the class above it."""
        for trial in self._tried:
            if trial.consumer is consumer:
                trial.fail(error)

    def has_looked(self) -> None:
        """Who was fed and did not fail has everything."""
        for trial in self._tried:
            if trial.consumer is not None:
                trial.succeed()

    def finish(self) -> None:
        """Try those a few times more that have not got everything."""
        for _ in range(_LAST_TRIES):
            lacking = [trial for trial in self._trials if trial.failure]
            if not lacking:
                return
            self._sleep(_LAST_PAUSE)
            self._tried = [trial for trial in lacking if trial.opened()]
            consumers = [trial.consumer for trial in self._tried if trial.consumer is not None]
            feed_all(self._directory, feeds_of(self._directory, consumers), self.failed)
            self.has_looked()

    def told(self) -> list[FollowerNote]:
        """A line for each that lacks rows, and what consumers remark."""
        open_ones = [trial.consumer for trial in self._trials if trial.consumer is not None]
        remarks = [FollowerNote(line) for one in open_ones for line in getattr(one, "remarks", ())]
        return remarks + [
            FollowerNote(f"{trial.what.name}: {trial.failure}; the next run hands on what is missing", is_lacking=True)
            for trial in self._trials
            if trial.failure
        ]

    def close(self) -> None:
        """Close them all."""
        for trial in self._trials:
            trial.close()
