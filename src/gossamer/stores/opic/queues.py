"""Task queues in which a page may wait more than once, since its importance grew: the most urgent task counts, the others are
dropped.
"""

from gossamer.contracts.ledger import TaskQueues
from gossamer.flow.ports import Uses
from gossamer.flow.sheet import NoSettings
from gossamer.flow.unit import Provider
from gossamer.model.kept import HostState
from gossamer.model.task import Task
from gossamer.stores.ledger.ledger import RocksLedger
from gossamer.stores.opic.accounts import AccountState
from gossamer.stores.opic.ledger import OpicLedger


class OpicQueues(Provider[NoSettings]):
    """Hands out each page once from the queues behind it, ordered by OPIC cash. Contract: `ledger.TaskQueues`."""

    behind: Uses[TaskQueues]
    ledger: Uses[OpicLedger]
    store: Uses[RocksLedger]
    keeps_state = True

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._dropped: list[Task] = []

    async def stop(self) -> None:
        """End what was dropped."""
        self._end_copies()

    def __len__(self) -> int:
        """Tasks that are not popped, copies among them."""
        return len(self.behind)

    def admit(self, now: float, most: int = 1_000) -> list[HostState]:
        """Hosts that the caller now holds."""
        self._end_copies()
        return self.behind.admit(now, most)

    def pop(self, host: str, most: int = 1) -> list[Task]:
        """Up to `most` tasks of a held host whose pages are neither in flight nor visited. None: the host is held no more."""
        while tasks := self.behind.pop(host, most):
            taken = []
            for task in tasks:
                if self._is_copy(task):
                    self._dropped.append(task)
                else:
                    taken.append(task)
            if taken:
                return taken
        self._end_copies()
        return []

    def _is_copy(self, task: Task) -> bool:
        """Whether another task of this page was popped before this one, or will be: this one is not needed."""
        account = self.ledger.account(task)
        if not account.copies:
            return False
        is_elsewhere = self.store.queues.flights(task.identity) > 1
        return is_elsewhere or account.state == AccountState.VISITED or account.attempt > task.attempt

    def _end_copies(self) -> None:
        """What was dropped is out of the queues for good."""
        if self._dropped:
            dropped, self._dropped = self._dropped, []
            with self.ledger.weighing() as group:
                for task in dropped:
                    group.dropped(task)

    def put_back(self, task: Task) -> None:
        """This popped task is not in flight after all."""
        self.behind.put_back(task)

    def rest(self, host: str, until: float) -> None:
        """Hold this host no more before `until`."""
        self.behind.rest(host, until)

    def next_rest(self) -> float:
        """When the next resting host may be admitted."""
        return self.behind.next_rest()

    def next_due(self) -> float:
        """When the next task for later is due."""
        return self.behind.next_due()

    def wake(self, now: float) -> int:
        """Queue tasks that are due."""
        self._end_copies()
        return self.behind.wake(now)
