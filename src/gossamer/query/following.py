"""`python -m gossamer.query.following DIRECTORY WHAT`: feeds one thing that follows a crawl, while the crawl runs.

Place in the flow: :mod:`gossamer.assembly.following` starts one such process for each thing beside a crawl, and closes its standard
input when everything is committed; the death of the crawl closes that as well. Then it takes what is committed by then, and ends.
With `--once` it looks once. What it has to tell at the end it prints, a line for each.
"""

import contextlib
import gc
import os
import select
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from gossamer.contracts.feeding import FeedConsumer
from gossamer.flow.errors import UnknownName
from gossamer.flow.installed import offered
from gossamer.model.errors import GossamerError
from gossamer.query.engine import Error
from gossamer.query.feeds import Feed
from gossamer.query.item_files import item_files
from gossamer.query.places import PACKAGE_FOLLOWERS, following, reading

#: The entry point group by which installed packages offer consumers. What is offered is called with the crawl directory, and
#: gives a consumer. A crawl has those that its `state/followers/` names: one empty file each, which the package makes.
GROUP = "gossamer.followers"

#: How a consumer fails that cannot keep its rows.
FAILURES = (OSError, ValueError, Error)

#: Seconds between two looks for somebody who waits, and for the end.
INTERVAL = 1.0


class Follower:
    """One thing that follows a crawl."""

    #: Rests between two looks at the feeds, where nobody waits.
    rests = 1

    def consumers(self) -> Sequence[FeedConsumer]:
        """What is fed: in this order, and seen in the opposite one, so that no feed is ahead of those before it."""
        return ()

    def is_awaited(self) -> bool:
        """Somebody waits for what is committed by now."""
        return False

    def look(self) -> None:
        """The feeds are looked at next: who waits by now will be served."""

    def has_looked(self) -> None:
        """Everything has what was committed at the last :meth:`look`."""

    def failed(self, consumer: FeedConsumer, error: Exception) -> None:
        """A consumer could not keep its rows. Note it, and the others go on without this one; raise it, and all is over."""
        raise error

    def finish(self) -> None:
        """Everything is given: write what is written at the end."""

    def told(self) -> list[str]:
        """What a person has to know at the end."""
        return []

    def close(self) -> None:
        """Let go of everything."""


class ItemFileFollower(Follower):
    """The item files of a crawl. One that cannot be written does not keep the others from their rows."""

    def __init__(self, directory: Path) -> None:
        self._files = item_files(directory)
        self._told: list[str] = []

    def consumers(self) -> Sequence[FeedConsumer]:
        return self._files

    def failed(self, consumer: FeedConsumer, error: Exception) -> None:
        why = str(error).strip().partition("\n")[0] or type(error).__name__
        self._told.append(f"items could not be written to a file ({consumer!r}: {why}); the next run goes on with it")
        self._files = [file for file in self._files if file is not consumer]

    def finish(self) -> None:
        for file in self._files:
            try:
                self._told.extend(file.finish())
            except FAILURES as error:
                self.failed(file, error)

    def told(self) -> list[str]:
        return self._told


class PackageFollower(Follower):
    """Consumers of installed packages, which the crawl names."""

    def __init__(self, directory: Path) -> None:
        """Find them.

        Raises:
            UnknownName: nobody offers what the crawl names, or that cannot be loaded.
        """
        names = sorted(path.name for path in directory.glob(f"{PACKAGE_FOLLOWERS}/*"))
        self._consumers = [_offered(name)(directory) for name in names]

    def consumers(self) -> Sequence[FeedConsumer]:
        return self._consumers


def _offered(name: str) -> Callable[[Path], FeedConsumer]:
    entry = next(iter(offered(GROUP, name)), None)
    if entry is None:
        raise UnknownName(f"no installed package offers the follower {name!r}")
    try:
        make: Callable[[Path], FeedConsumer] = entry.load()
    except (ImportError, AttributeError) as error:
        raise UnknownName(f"follower {name!r} cannot be loaded from {entry.value}: {error}") from error
    return make


Rest = Callable[[], bool]
"""Waits a little; True when the crawl has ended, so that the next look is the last."""


def _items(directory: Path, rest: Rest) -> Follower:
    return ItemFileFollower(directory)


def _triples(directory: Path, rest: Rest) -> Follower:
    from gossamer.query.triples.following import TripleStoreFollower  # few crawls have one

    return TripleStoreFollower(directory)


def _endpoints(directory: Path, rest: Rest) -> Follower:
    from gossamer.query.triples.following import EndpointFollower  # few crawls have one

    return EndpointFollower(directory, rest)


def _packages(directory: Path, rest: Rest) -> Follower:
    return PackageFollower(directory)


#: What follows crawls, by name. Each has a process of its own, so that a slow one holds up no other.
FOLLOWERS: dict[str, Callable[[Path, Rest], Follower]] = {
    "items": _items,
    "triples": _triples,
    "endpoints": _endpoints,
    "packages": _packages,
}


def feed_all(
    directory: Path, fed: Sequence[tuple[FeedConsumer, Feed]], follower: Follower | None = None
) -> list[tuple[FeedConsumer, Feed]]:
    """Give consumers everything that is committed by now; returns those that have it.

    Args:
        directory: the crawl directory.
        fed: each consumer with its feed.
        follower: is told of failures, and decides whether the others go on.

    Raises:
        OSError: a file could not be read, or a consumer could not keep what it was given.
    """
    have = []
    with reading(directory):
        sights = [feed.look() for _, feed in reversed(fed)]
        for (consumer, feed), sight in zip(fed, reversed(sights), strict=True):
            try:
                feed.give(consumer, sight)
            except FAILURES as error:
                (follower or Follower()).failed(consumer, error)
            else:
                have.append((consumer, feed))
    return have


def feeds_of(directory: Path, consumers: Sequence[FeedConsumer]) -> list[tuple[FeedConsumer, Feed]]:
    """Each consumer with a feed of its own."""
    return [(consumer, Feed(directory, consumer.table)) for consumer in consumers]


def follow(directory: Path, what: str, rest: Rest, *, wait: bool) -> list[str]:
    """Feed what follows a crawl until there is nobody to wait for, then once more.

    Args:
        directory: the crawl directory.
        what: one of :data:`FOLLOWERS`.
        rest: between two looks.
        wait: wait for another process that is at it; otherwise leave it to that one.

    Returns:
        What a person has to know.

    Raises:
        GossamerError: it cannot be fed; says why.
        OSError: a file could not be read or written.
    """
    with following(directory, what, wait=wait) as held:
        if not held:
            return []
        follower = FOLLOWERS[what](directory, rest)
        with contextlib.closing(follower):
            fed = feeds_of(directory, follower.consumers())
            is_last = False
            while True:
                follower.look()
                fed = feed_all(directory, fed, follower)
                follower.has_looked()
                if is_last:
                    follower.finish()
                    return follower.told()
                is_last = _rested(follower, rest)


def _rested(follower: Follower, rest: Rest) -> bool:
    """Wait for the next look; True when it is the last."""
    for _ in range(follower.rests):
        if rest():
            return True
        if follower.is_awaited():
            return False
    return False


def _ended_within_the_interval() -> bool:
    readable, _, _ = select.select([sys.stdin], [], [], INTERVAL)
    return bool(readable)


def main(arguments: list[str]) -> int:
    """Follow; 0 where everything was taken and written."""
    gc.set_threshold(100_000, 20, 20)
    once = "--once" in arguments
    if not once:
        os.nice(10)  # beside a running crawl
    directory, what = (argument for argument in arguments if argument != "--once")
    # The process of a crawl that was killed ends by itself; one of a crawl that runs sees what there is to see.
    try:
        told = follow(Path(directory), what, (lambda: True) if once else _ended_within_the_interval, wait=not once)
    except GossamerError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.writelines(f"{line}\n" for line in told)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
