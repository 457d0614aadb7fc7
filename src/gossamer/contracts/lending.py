"""Lent hosts: their URLs are given to mobile crawlers, and not to the fetchers.

Place in the flow: the ledger of the stages puts the tasks of lent hosts here, in the group that found them. The crawler manager
takes them, sends crawlers, and says what became of them. *Lent* is a state beside queued, in flight, owed and done (seed 001,
3.1): a URL is in one of them.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from gossamer.contracts.ledger import Group
from gossamer.contracts.spaces import Space
from gossamer.model.task import Task

#: URLs of lent hosts, under their host: those that wait for a crawler, and those that a crawler has with it. The key is that of URL
#: and crawler.
LENT = Space("lent", value_bytes=1 << 20, host_bytes=256 << 20)

#: Crawlers on their way, under no host: the outbox and the inbox of the manager (seed 001, 3.1).
CRAWLERS = Space("crawlers", value_bytes=8 << 20, common_bytes=512 << 20)


class LentTask(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A URL of a lent host."""

    task: Task
    crawler: str = ""
    """The crawler that has it; empty while it waits for one."""
    is_done: bool = False
    """It came home, as parts without links: whoever fetches the host without that crawler has to begin with it again."""


class LastCrawler(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The crawler that came home from a host last: under the host, in the space of crawlers."""

    id: str
    runtime: str


#: Its key.
LAST_CRAWLER = b"last"


class LentHosts(Protocol):
    """What the frontier sees.

    Promise: when `is_out` becomes false, when pages are free again, or tasks are in the queues, whoever watches is told.
    """

    @property
    def is_out(self) -> bool:
        """Whether URLs wait for a crawler, or crawlers are away: the crawl goes on for them."""
        ...

    @property
    def pages(self) -> int:
        """Pages of a crawl with a limit that crawlers on their way may bring: nobody else may have them."""
        ...

    def watch(self, told: Callable[[], None], room: Callable[[], int | None]) -> None:
        """Call `told` when there is news; ask `room` how many more pages may be lent, None for any number."""
        ...

    def end(self) -> None:
        """The crawl ends: nothing more is sent or taken in. What is out stays so for the next run."""
        ...


class Lender(Protocol):
    """What the ledger in front sees. All changes are staged in a group, and hold with it.

    Promises:
        1. A task that was lent stays so until it was brought, or its crawler has ended, or its host was recalled.
        2. How many are lent is the counter `lent`.
    """

    def lends(self, host: str) -> bool:
        """Whether the URLs of this host are for crawlers: a runtime has it, and it was not recalled."""
        ...

    def lend(self, tasks: Sequence[Task], group: Group) -> None:
        """Stage tasks of lent hosts. Those that were found on a page that a crawler brings, of its hosts, are that crawler's."""
        ...

    def brought(self, task: Task, crawler: str, group: Group, *, knows_links: bool) -> None:
        """Stage the end of a task that came home; without its links it is kept until the crawler has ended."""
        ...
