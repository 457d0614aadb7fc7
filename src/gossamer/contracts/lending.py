"""Lent hosts: mobile crawlers fetch their URLs, and the fetchers do not. Suite: `gossamer.testing.check_lending`.

Place in the flow: the ledger of the stages puts the tasks of lent hosts here, in the group that found them. The crawler manager
takes them, sends crawlers, and says what became of them. *Lent* is a state beside queued, in flight, owed and done (Agarwal and
others, 3.1): a URL is in one of them.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from gossamer.contracts.ledger import Group
from gossamer.contracts.spaces import Space
from gossamer.model.task import Task

#: URLs of lent hosts, under their host. They wait for a crawler, or a crawler has them with it. The key is that of URL
#: and crawler.
LENT = Space("lent", value_bytes=1 << 20, host_bytes=256 << 20)

#: Crawlers on their way, under no host: the outbox and the inbox of the manager (Agarwal and others, 3.1).
CRAWLERS = Space("crawlers", value_bytes=8 << 20, common_bytes=512 << 20)


class LentTask(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A URL of a lent host."""

    task: Task
    crawler: str = ""
    """The crawler that has the URL; empty while the URL waits for one."""
    is_done: bool = False
    """Whether the page came home as parts without links. A fetch of the host without that crawler begins with it again."""


class LastCrawler(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The crawler that came home from a host last. It is kept under the host, in the space of crawlers."""

    id: str
    runtime: str


#: Its key.
LAST_CRAWLER = b"last"


class LentHosts(Protocol):
    """The side of a lender that the frontier uses.

    Promise: when `is_out` becomes false, when pages are free again, or tasks are in the queues, whoever watches is told.
    """

    @property
    def is_out(self) -> bool:
        """Whether URLs wait for a crawler, or crawlers are away. If so, the crawl goes on."""
        ...

    @property
    def pages(self) -> int:
        """Pages within the limit of a crawl that are reserved for crawlers on their way."""
        ...

    def watch(self, told: Callable[[], None], room: Callable[[], int | None]) -> None:
        """Call `told` when there is news; `room` returns how many more pages may be lent, None for any number."""
        ...

    def end(self) -> None:
        """End with the crawl: send and take in nothing more. Crawlers that are away stay so for the next run."""
        ...


class Lender(Protocol):
    """The side of a lender that the ledger in front uses. All changes are staged in a group, and hold with it.

    Promises:
        1. A task stays lent until a crawler brings it, or its crawler has ended, or its host was recalled.
        2. The counter `lent` is the number of lent tasks.
    """

    def lends(self, host: str) -> bool:
        """Return whether crawlers fetch the URLs of this host: a runtime has the host, and it was not recalled."""
        ...

    def lend(self, tasks: Sequence[Task], group: Group) -> None:
        """Stage tasks of lent hosts. If a crawler brings a page, it keeps the tasks of its hosts that the page links to."""
        ...

    def brought(self, task: Task, crawler: str, group: Group, *, knows_links: bool) -> None:
        """Stage the end of a task that came home. A task without its links is kept until the crawler has ended."""
        ...
