"""The ledger's seen set and task queues, as the stages know them: thin, since both live in one store."""

from collections.abc import Sequence

from gossamer.flow.ports import Uses
from gossamer.flow.sheet import NoSettings
from gossamer.flow.unit import Provider
from gossamer.model.kept import HostState
from gossamer.model.task import Task
from gossamer.stores.ledger.ledger import Ledger


class LedgerSeen(Provider[NoSettings]):
    """The URL-seen test. Contract: `seen.SeenSet`.

    The stage asks `unseen`. `offer` commits at once, a group for itself: a committer offers within its group instead, so
    that a URL is seen exactly if its task is kept.
    """

    ledger: Uses[Ledger]
    keeps_state = True

    def unseen(self, urls: Sequence[str]) -> list[str]:
        """Those of `urls` that may be new, in order. Changes nothing."""
        return [url for url, _ in self.ledger.seen.unseen(urls)]

    def offer(self, urls: Sequence[str]) -> list[str]:
        """Check and put: those of `urls` that are new, in order, each once."""
        with self.ledger.group() as group:
            return group.offer(urls)


class LedgerFrontier(Provider[NoSettings]):
    """Tasks by host, hosts by turns. Contract: `ledger.TaskQueues`. Tasks come in by groups of the ledger."""

    ledger: Uses[Ledger]
    keeps_state = True

    def __len__(self) -> int:
        return len(self.ledger.queues)

    def admit(self, now: float, most: int = 1_000) -> list[HostState]:
        """Hosts that the caller now holds, with what is kept of them but their robots bytes."""
        self.ledger.flush_moves()
        return self.ledger.host_states(self.ledger.queues.admit(now, most))

    def pop(self, host: str, most: int = 1) -> list[Task]:
        """Up to `most` tasks of a held host, now in flight. None: it is held no more."""
        return self.ledger.queues.pop(host, most)

    def rest(self, host: str, until: float) -> None:
        """Hold this host no more before `until`, in seconds since the epoch."""
        self.ledger.queues.rest(host, until)
