"""`python -m gossamer.query.following DIRECTORY`: feeds what follows a crawl, while the crawl runs.

Place in the flow: :mod:`gossamer.assembly.item_files` starts it beside a crawl, and closes its standard input when
everything is committed; the death of the crawl closes that as well. Then it takes what is committed by then, and ends. With
`--once` it looks once.
"""

import gc
import os
import select
import sys
from collections.abc import Callable
from pathlib import Path

from gossamer.contracts.feeding import FeedConsumer
from gossamer.flow.errors import UnknownName
from gossamer.flow.installed import offered
from gossamer.query.feeds import Feed
from gossamer.query.item_files import item_files
from gossamer.query.places import FOLLOWERS, following

#: Seconds between two looks.
INTERVAL = 1.0


#: The entry point group by which installed packages offer consumers. What is offered is called with the crawl directory, and
#: gives a consumer. A crawl has those that its `state/followers/` names: one empty file each, which the package makes.
GROUP = "gossamer.followers"


def consumers(directory: Path) -> list[FeedConsumer]:
    """Everything that follows the crawl in a directory: item files, and what it names of installed packages.

    Raises:
        UnknownName: nobody offers what it names, or that cannot be loaded.
    """
    names = sorted(path.name for path in directory.glob(f"{FOLLOWERS}/*"))
    return [*item_files(directory), *(_offered(name)(directory) for name in names)]


def _offered(name: str) -> Callable[[Path], FeedConsumer]:
    entry = next(iter(offered(GROUP, name)), None)
    if entry is None:
        raise UnknownName(f"no installed package offers the follower {name!r}")
    try:
        make: Callable[[Path], FeedConsumer] = entry.load()
    except (ImportError, AttributeError) as error:
        raise UnknownName(f"follower {name!r} cannot be loaded from {entry.value}: {error}") from error
    return make


def follow(directory: Path, rest: Callable[[], bool], *, wait: bool) -> None:
    """Feed what follows a crawl until there is nobody to wait for, then once more.

    Args:
        directory: the crawl directory.
        rest: waits between two looks; True when the next look is the last.
        wait: wait for another process that is at it; otherwise leave it to that one.
    """
    with following(directory, wait=wait) as held:
        if not held:
            return
        fed = [(consumer, Feed(directory, consumer.table)) for consumer in consumers(directory)]
        is_last = False
        while True:
            for consumer, feed in fed:
                feed.give(consumer)
            if is_last:
                return
            is_last = rest()


def _ended_within_the_interval() -> bool:
    readable, _, _ = select.select([sys.stdin], [], [], INTERVAL)
    return bool(readable)


def main(arguments: list[str]) -> int:
    """Follow; 0 where everything was taken."""
    gc.set_threshold(100_000, 20, 20)
    once = "--once" in arguments
    if not once:
        os.nice(10)  # beside a running crawl
    [directory] = [argument for argument in arguments if argument != "--once"]
    # The process of a crawl that was killed ends by itself; one of a crawl that runs sees what there is to see.
    follow(Path(directory), (lambda: True) if once else _ended_within_the_interval, wait=not once)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
