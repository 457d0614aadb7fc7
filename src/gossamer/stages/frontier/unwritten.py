"""What one hand-out has decided and the ledger has not heard of yet: written in one group, before anything goes out.

Place in the flow: the frontier decides task by task, and writes once for all of them.
"""

from gossamer.contracts.ledger import Ledger
from gossamer.model.task import Task


class Unwritten:
    """Decisions of one hand-out."""

    def __init__(self) -> None:
        self._begun: list[Task] = []
        self._later: list[tuple[Task, float]] = []
        self._too_deep: list[Task] = []

    def __repr__(self) -> str:
        return f"<Unwritten: {len(self._begun)} begin, {len(self._later)} later, {len(self._too_deep)} too deep>"

    def begun(self, task: Task) -> None:
        """A request that may not be sent twice is handed out."""
        self._begun.append(task)

    def later(self, task: Task, seconds: float) -> None:
        """The endpoint of this task does not answer, and is left alone for so long: others of its host go first."""
        self._later.append((task, seconds))

    def too_deep(self, task: Task) -> None:
        """The task is deeper than the limit by now, as if it had never been met."""
        self._too_deep.append(task)

    def write(self, ledger: Ledger, now: float) -> None:
        """Write all of it down; `now` is in seconds since the epoch."""
        if not (self._begun or self._later or self._too_deep):
            return
        with ledger.group() as group:
            for task in self._begun:
                group.begun(task)
            for task, seconds in self._later:
                if group.done(task.identity):
                    group.later(task, now + seconds, known=True)
            if self._too_deep:
                group.count("dropped:depth", sum(map(group.give_up, self._too_deep)))
        if self._begun:
            ledger.sync()  # nothing of what may not be sent twice leaves before its note is on the disk
        self._begun, self._later, self._too_deep = [], [], []
