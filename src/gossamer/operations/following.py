"""`python -m gossamer.operations.following DIRECTORY`: feeds what follows a crawl, while the crawl runs.

Place in the flow: :mod:`gossamer.assembly.followers` starts it beside a crawl, and closes its standard input when
everything is committed; the death of the crawl closes that as well. Then it takes what is committed by then, and ends. With
`--once` it looks once.

Item files, the index and each database have a thread and a feed of their own: one that is slow or broken keeps nobody else
waiting. What it could not take stays in the tables, and is taken by the next run.
"""

import gc
import os
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from gossamer.contracts.feeding import FeedConsumer
from gossamer.model.errors import CrawlDirectoryError, UsageError
from gossamer.query.feeds import Feed
from gossamer.query.item_files import item_files
from gossamer.query.places import FOLLOWING_INDEX, SINKS_FILE, following
from gossamer.stores.crawl_identity import crawl_id

#: Seconds between two looks, and between two tries of what fails: doubled each time up to the most.
INTERVAL, LONGEST_WAIT = 1.0, 30.0

#: Tries of what fails when the crawl has ended, a second apart: a database that starts anew is back by then.
LAST_TRIES = 5


class Follower(msgspec.Struct, frozen=True):
    """Something that follows a crawl."""

    name: str
    """As people call it."""
    make: Callable[[], FeedConsumer]
    """Opens it; called again after each failure."""
    end: Callable[[FeedConsumer], None] = lambda consumer: None
    """Called when it has taken everything."""


def followers(directory: Path) -> list[Follower]:
    """Everything that follows the crawl in a directory."""
    found = [Follower(str(one), lambda one=one: one) for one in item_files(directory)]  # type: ignore[misc]
    if (directory / FOLLOWING_INDEX).exists():
        found.append(_index(directory))
    if (directory / SINKS_FILE).exists():
        found += _sinks(directory)
    return found


def _sinks(directory: Path) -> list[Follower]:
    from gossamer.query.schema import tables_of  # few crawls have databases
    from gossamer.query.sinks.mapping import read_sinks
    from gossamer.query.sinks.sink import DatabaseSink

    def close(sink: FeedConsumer) -> None:
        assert isinstance(sink, DatabaseSink)
        sink.close()

    crawl = crawl_id(directory)
    return [
        Follower(f"sink {name}, {to.source}", partial(DatabaseSink, directory, crawl, name, spec, at), close)
        for name, spec in read_sinks(directory / SINKS_FILE, tables_of(directory)).sinks.items()
        for at, to in enumerate(spec.tables)
    ]


def _index(directory: Path) -> Follower:
    from gossamer.assembly.archived import ArchivedTexts  # few crawls are indexed while they run
    from gossamer.query.search.index import SearchIndex

    def close(index: FeedConsumer) -> None:
        assert isinstance(index, SearchIndex)
        index.close()

    return Follower("the index", lambda: SearchIndex(directory, ArchivedTexts(directory)), close)


class _Feeding(threading.Thread):
    """Feeds one follower until the crawl has ended, then once more."""

    def __init__(self, directory: Path, follower: Follower, ended: threading.Event, pause: float) -> None:
        super().__init__(name=follower.name, daemon=True)
        self._directory = directory
        self._follower = follower
        self._ended = ended
        self._pause = pause
        self._consumer: FeedConsumer | None = None
        self._feed: Feed | None = None
        self.failure = ""
        """Why it could not take everything; empty where it did."""

    def run(self) -> None:
        failures = tries = 0
        while True:
            is_last = self._ended.is_set()
            self.failure = self._give()
            failures = failures + 1 if self.failure else 0
            tries += is_last
            if is_last and (not self.failure or tries >= LAST_TRIES):
                return
            # Not the event alone: at the end, what failed waits too before it is tried again.
            wait = min(self._pause * 2**failures, LONGEST_WAIT) if not is_last else self._pause
            (threading.Event() if is_last else self._ended).wait(wait)

    def _give(self) -> str:
        """Give it what there is; what went wrong, in one line."""
        try:
            if self._consumer is None or self._feed is None:
                self._consumer = self._follower.make()
                self._feed = Feed(self._directory, self._consumer.table)
            self._feed.give(self._consumer)
            return ""
        except (OSError, UsageError, CrawlDirectoryError) as error:
            consumer, self._consumer = self._consumer, None
            if consumer is not None:
                self._follower.end(consumer)
            return " ".join(str(error).split())

    def close(self) -> None:
        if self._consumer is not None:
            self._follower.end(self._consumer)


def follow(
    directory: Path,
    every: Sequence[Follower],
    rest: Callable[[], object],
    *,
    wait: bool,
    pause: float = INTERVAL,
) -> list[str]:
    """Feed what follows a crawl until it has ended, then once more; returns a line for each follower that lacks rows.

    Args:
        directory: the crawl directory.
        every: what follows it.
        rest: returns when the crawl has ended.
        wait: wait for another process that is at it; otherwise leave it to that one.
        pause: seconds between two looks.
    """
    with following(directory, wait=wait) as held:
        if not held:
            return []
        ended = threading.Event()
        threads = [_Feeding(directory, one, ended, pause) for one in every]
        for thread in threads:
            thread.start()
        rest()
        ended.set()
        for thread in threads:
            thread.join()
            thread.close()
        return [f"{thread.name}: {thread.failure}" for thread in threads if thread.failure]


def main(arguments: list[str]) -> int:
    """Follow; 0 where everything was taken. Each follower that lacks rows is a line on standard error."""
    gc.set_threshold(100_000, 20, 20)
    once = "--once" in arguments
    if not once:
        os.nice(10)  # beside a running crawl
    [name] = [argument for argument in arguments if argument != "--once"]
    directory = Path(name)
    # The process of a crawl that was killed ends by itself; one of a crawl that runs sees what there is to see.
    rest = (lambda: b"") if once else sys.stdin.buffer.read
    lacking = follow(directory, followers(directory), rest, wait=not once)
    for line in lacking:
        print(line, file=sys.stderr)  # noqa: T201  # whoever started this process reads it
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
