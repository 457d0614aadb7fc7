"""`python -m gossamer.query.following DIRECTORY`: feeds what follows a crawl, while the crawl runs.

Place in the flow: :mod:`gossamer.assembly.item_files` starts it beside a crawl, and closes its standard input when
everything is committed; the death of the crawl closes that as well. Then it takes what is committed by then, and ends. With
`--once` it looks once. A line on standard output tells something of a consumer, a line on standard error its failure: that does not
keep the others from their rows.
"""

import gc
import os
import select
import sys
from collections.abc import Callable
from pathlib import Path

from gossamer.contracts.feeding import FeedConsumer, FinishingConsumer
from gossamer.query.engine import Error
from gossamer.query.feeds import Feed
from gossamer.query.item_files import item_files
from gossamer.query.places import following

#: Seconds between two looks.
INTERVAL = 1.0


def consumers(directory: Path) -> list[FeedConsumer]:
    """Everything that follows the crawl in a directory."""
    return [*item_files(directory)]


def follow(directory: Path, rest: Callable[[], bool], *, wait: bool) -> "Followed":
    """Feed what follows a crawl until there is nobody to wait for, then once more.

    Args:
        directory: the crawl directory.
        rest: waits between two looks; True when the next look is the last.
        wait: wait for another process that is at it; otherwise leave it to that one.
    """
    told = Followed()
    with following(directory, wait=wait) as held:
        if not held:
            return told
        fed = [(consumer, Feed(directory, consumer.table)) for consumer in consumers(directory)]
        is_last = False
        while True:
            fed = [(consumer, feed) for consumer, feed in fed if told.tried(consumer, lambda: feed.give(consumer))]  # noqa: B023
            if is_last:
                break
            is_last = rest()
        for consumer, _ in fed:
            if isinstance(consumer, FinishingConsumer):
                told.tried(consumer, lambda: told.lines.extend(consumer.finish()))  # noqa: B023
    return told


class Followed:
    """What came of it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        """What a person should read."""
        self.failures: list[str] = []
        """Consumers that could not keep their rows, and why; they come again."""

    def tried(self, consumer: FeedConsumer, work: Callable[[], object]) -> bool:
        """Do something for a consumer; False where it fails."""
        try:
            work()
        except (OSError, ValueError, Error) as error:
            why = str(error).strip().partition("\n")[0] or type(error).__name__
            self.failures.append(f"{consumer!r}: {why}")
            return False
        return True


def _ended_within_the_interval() -> bool:
    readable, _, _ = select.select([sys.stdin], [], [], INTERVAL)
    return bool(readable)


def main(arguments: list[str]) -> int:
    """Follow; 0 where everything was taken and written."""
    gc.set_threshold(100_000, 20, 20)
    once = "--once" in arguments
    if not once:
        os.nice(10)  # beside a running crawl
    [directory] = [argument for argument in arguments if argument != "--once"]
    # The process of a crawl that was killed ends by itself; one of a crawl that runs sees what there is to see.
    told = follow(Path(directory), (lambda: True) if once else _ended_within_the_interval, wait=not once)
    sys.stdout.writelines(f"{line}\n" for line in told.lines)
    sys.stderr.writelines(f"{line}\n" for line in told.failures)
    return 1 if told.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
