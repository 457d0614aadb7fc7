"""The ledger as a wiring names its parts: seen sets and task queues, and a front that other providers derive from.

Place in the flow: stages use the ledger through these. A wiring puts a :class:`LedgerFront` between the stages and the ledger, as a
sieve or a crawl of several agents does, so that no stage knows of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Annotated, TypeVar

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.contract import Spaces
from gossamer.storage.ledger.contract import Depths, Group, Ledger, Links, Tallied, TaskQueues
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.values.ledger_rows import DocumentRow, HostState
from gossamer.values.task import Family, SetAside, Task


class LedgerSeen(Provider[NoSettings]):
    """Tests whether a URL has been seen. Contract: `SeenSet`.

    The stage asks `unseen`; frontier and committer offer URLs while their group is open, so that a URL is seen exactly
    if its task is kept. An offer outside a group makes a group of its own.
    """

    ledger: Uses[RocksLedger]
    keeps_state = True

    def unseen(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        """Those of `urls` that may be new, or known at a greater depth only, in order. Changes nothing."""
        return [url for url, _ in self.ledger.seen.unseen(urls, depth)]

    def offer(self, urls: Sequence[str]) -> list[str]:
        """Check and put: those of `urls` that are new, in order, each once."""
        open_group = self.ledger.open_group
        if open_group is not None:
            return open_group.offer(urls)
        with self.ledger.group() as group:
            return group.offer(urls)


class LedgerContents(Provider[NoSettings]):
    """Tests whether a document has been seen. Contract: `ContentIndex`.

    Its answer is a hint, because a page that claims a digest may never be kept; `Group.first` decides at commit. It
    keeps a bounded number of claims in memory and writes nothing.
    """

    ledger: Uses[RocksLedger]
    keeps_state = True

    def first(self, digest: str, url: str) -> str:
        """Empty if `digest` is new (it is now claimed for `url`), otherwise the URL that it belongs to."""
        return self.ledger.contents.claim(digest, url)


class LedgerFingerprintsSheet(Sheet, frozen=True):
    """Settings of :class:`LedgerFingerprints`."""

    capacity: Annotated[
        int,
        setting(
            "Remember at most this many pages; each takes about 60 bytes on the disk. Beyond that, forget the oldest "
            "quarter.",
            unit="pages",
            restart="pages are forgotten a quarter at a time",
            ge=4,
            le=100_000_000,
        ),
    ] = 1_000_000


class LedgerFingerprints(Provider[LedgerFingerprintsSheet]):
    """Finds near-duplicates among the pages of the ledger. Contract: `FingerprintIndex`.

    Its answer about pages in flight is a hint, as with :class:`LedgerContents`; fingerprints are committed together
    with their pages.
    """

    ledger: Uses[RocksLedger]
    keeps_state = True

    async def start(self) -> None:
        """Go on from what the ledger remembers."""
        index = self.ledger.fingerprints
        index.compare(self.sheet.capacity)
        self.metrics.gauge("pages", lambda: len(index))
        self.metrics.gauge("forgotten", lambda: index.forgotten + index.dropped)

    def near(self, fingerprint: int, url: str) -> str:
        """Empty if nothing near to `fingerprint` is remembered (it is now claimed for `url`), otherwise the URL of what is."""
        return self.ledger.fingerprints.near(fingerprint, url)


class LedgerFrontier(Provider[NoSettings]):
    """Queues tasks by host and lets hosts take turns. Contract: `TaskQueues`. Groups of the ledger add the
    tasks."""

    ledger: Uses[RocksLedger]
    keeps_state = True
    withheld: Callable[[str], bool] | None = None
    """Says of which hosts nothing that is due is queued: they are about to go to another agent."""

    def __len__(self) -> int:
        return len(self.ledger.queues)

    def admit(self, now: float, most: int = 1_000) -> list[HostState]:
        """Hosts that the caller now holds, with what is kept of them but their robots bytes."""
        self.ledger.flush_moves()
        return self.ledger.host_states(self.ledger.queues.admit(now, most))

    def pop(self, host: str, most: int = 1) -> list[Task]:
        """Up to `most` tasks of a held host, now in flight. None: it is held no more."""
        return self.ledger.queues.pop(host, most)

    def put_back(self, task: Task) -> None:
        """This popped task is not in flight after all."""
        self.ledger.queues.put_back(task)

    def rest(self, host: str, until: float) -> None:
        """Hold this host no more before `until`, in seconds since the epoch."""
        self.ledger.queues.rest(host, until)

    def next_rest(self) -> float:
        """When the next resting host is due, in seconds since the epoch; infinite where none rests."""
        return self.ledger.queues.next_rest

    def next_due(self) -> float:
        """When the next task of `Group.later` is due, in seconds since the epoch; infinite where there is none."""
        return self.ledger.queues.delayed.next_due

    def wake(self, now: float) -> int:
        """Queue tasks that are due, some at a time, in a group of its own; returns how many."""
        due = self.ledger.queues.delayed.due(now)
        if self.withheld is not None:
            due = [one for one in due if not self.withheld(one[1].host)]
        if due:
            with self.ledger.group() as group:
                group.woken(due)
        return len(due)


S = TypeVar("S", bound=Sheet)


class LedgerFront(Provider[NoSettings]):
    """A ledger in front of another: an heir changes what its groups do, all else is as behind it. Contract: `Ledger`."""

    behind: Uses[Ledger]
    keeps_state = True

    def group(self) -> AbstractContextManager[Group]:
        return self.behind.group()

    @property
    def is_clean(self) -> bool:
        return self.behind.is_clean

    async def settle(self) -> None:
        await self.behind.settle()

    def counters(self) -> Mapping[str, int]:
        return self.behind.counters()

    def committed_ends(self) -> Mapping[str, int]:
        return self.behind.committed_ends()

    def sync(self) -> None:
        self.behind.sync()

    @property
    def depths(self) -> Depths:
        return self.behind.depths

    @property
    def spaces(self) -> Spaces:
        return self.behind.spaces

    def document(self, url: str) -> DocumentRow | None:
        return self.behind.document(url)

    def host_states(self, names: Sequence[str]) -> list[HostState]:
        return self.behind.host_states(names)

    def hosts(self) -> Iterator[HostState]:
        return self.behind.hosts()

    def robots(self, site: str, host: str) -> bytes | None:
        return self.behind.robots(site, host)

    def learnt(self, hosts: Sequence[str], what: str) -> list[bytes | None]:
        return self.behind.learnt(hosts, what)

    def tally(self, what: Tallied, name: str) -> int:
        return self.behind.tally(what, name)

    def aside(self, after: Family | None = None) -> Iterator[SetAside]:
        return self.behind.aside(after)

    def meta(self, name: str) -> bytes | None:
        return self.behind.meta(name)

    def put_meta(self, name: str, value: bytes) -> None:
        self.behind.put_meta(name, value)

    def links_of(self, url: str) -> Links | None:
        return self.behind.links_of(url)

    def depth_of(self, urls: Sequence[str]) -> list[int | None]:
        return self.behind.depth_of(urls)


class QueuesFront(Provider[S]):
    """Task queues in front of others: an heir changes some calls, all others are as behind it. Contract: `TaskQueues`."""

    behind: Uses[TaskQueues]
    keeps_state = True

    def __len__(self) -> int:
        return len(self.behind)

    def admit(self, now: float, most: int = 1_000) -> list[HostState]:
        return self.behind.admit(now, most)

    def pop(self, host: str, most: int = 1) -> list[Task]:
        return self.behind.pop(host, most)

    def put_back(self, task: Task) -> None:
        self.behind.put_back(task)

    def rest(self, host: str, until: float) -> None:
        self.behind.rest(host, until)

    def next_rest(self) -> float:
        return self.behind.next_rest()

    def next_due(self) -> float:
        return self.behind.next_due()

    def wake(self, now: float) -> int:
        return self.behind.wake(now)
