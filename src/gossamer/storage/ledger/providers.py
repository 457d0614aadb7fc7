"""The ledger as a wiring names its parts: seen sets and task queues, and a front that other providers derive from.

Place in the flow: stages use the ledger through these. A wiring puts a :class:`LedgerFront` between the stages and the ledger, as a
sieve or a crawl of several agents does, so that no stage knows of it.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.ledger.contract import Ledger, TaskQueues
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.values.ledger_rows import HostState
from gossamer.values.task import Task


class LedgerSeen(Provider[NoSettings]):
    """Tests whether a URL has been seen. Contract: `SeenSet`.

    The stage asks `unseen`; frontier and committer offer URLs while their group is open, so that a URL is seen exactly
    if its task is kept. An offer outside a group makes a group of its own.
    """

    ledger: Uses[RocksLedger]
    keeps_state = True

    def unseen(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        return self.ledger.seen.unseen(urls, depth)

    def offer(self, urls: Sequence[str]) -> list[str]:
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
        return self.ledger.contents.claim(digest, url)


class LedgerFingerprintsSheet(Sheet, frozen=True):
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
        index = self.ledger.fingerprints
        index.compare(self.sheet.capacity)
        self.metrics.gauge("pages", lambda: len(index))
        self.metrics.gauge("forgotten", lambda: index.forgotten + index.dropped)

    def near(self, fingerprint: int, url: str) -> str:
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
        self.ledger.flush_moves()
        return self.ledger.host_states(self.ledger.queues.admit(now, most))

    def pop(self, host: str, most: int = 1) -> list[Task]:
        return self.ledger.queues.pop(host, most)

    def put_back(self, task: Task) -> None:
        self.ledger.queues.put_back(task)

    def rest(self, host: str, until: float) -> None:
        self.ledger.queues.rest(host, until)

    def next_rest(self) -> float:
        return self.ledger.queues.rotation.next_rest

    def next_due(self) -> float:
        return self.ledger.queues.delayed.next_due

    def wake(self, now: float) -> int:
        due = self.ledger.queues.delayed.due(now)
        if self.withheld is not None:
            due = [one for one in due if not self.withheld(one[1].host)]
        if due:
            with self.ledger.group() as group:
                group.woken(due)
        return len(due)


S = TypeVar("S", bound=Sheet)
F = TypeVar("F")


class _AsBehind:
    """A member of a contract that a front leaves to the provider behind it."""

    def __init__(self, contract: type, name: str) -> None:
        self._contract = contract
        self._name = name

    def __get__(self, front: Any, owner: type) -> Any:
        return getattr(self._contract if front is None else front.behind, self._name)


def in_front_of(contract: type) -> Callable[[type[F]], type[F]]:
    """Give a class the members of a contract that it does not have itself: they are as behind it."""

    def completed(front: type[F]) -> type[F]:
        for name in dir(contract):
            if not name.startswith("_") and not hasattr(front, name):
                setattr(front, name, _AsBehind(contract, name))
        return front

    return completed


class _Front(Provider[S]):
    keeps_state = True

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


@in_front_of(Ledger)
class LedgerFront(_Front[NoSettings]):
    """A ledger in front of another: an heir changes what its groups do. Contract: `Ledger`."""

    behind: Uses[Ledger]


@in_front_of(TaskQueues)
class QueuesFront(_Front[S]):
    """Task queues in front of others: an heir changes some calls. Contract: `TaskQueues`."""

    behind: Uses[TaskQueues]

    def __len__(self) -> int:
        return len(self.behind)
