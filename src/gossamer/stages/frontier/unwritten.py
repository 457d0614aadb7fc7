"""What one hand-out has decided and the ledger has not heard of yet: written in one group, before anything goes out.

Place in the flow: the frontier decides task by task, and writes once for all of them.
"""

import msgspec

from gossamer.contracts.ledger import Ledger
from gossamer.model.task import Task

#: Where robots exclusion stands at a host whose answer another crawl has shared, in the word of the table `hosts`.
SHARED = "shared"


class Unwritten:
    """Decisions of one hand-out."""

    def __init__(self) -> None:
        self._begun: list[Task] = []
        self._later: list[tuple[Task, float]] = []
        self._too_deep: list[Task] = []
        self._learnt: list[tuple[str, str, bytes]] = []

    def __repr__(self) -> str:
        return f"<Unwritten: {len(self._begun)} begin, {len(self._later)} later, {len(self._too_deep)} too deep>"

    @property
    def _is_empty(self) -> bool:
        return not (self._begun or self._later or self._too_deep or self._learnt)

    def begun(self, task: Task) -> None:
        """A request that may not be sent twice is handed out."""
        self._begun.append(task)

    def later(self, task: Task, seconds: float) -> None:
        """The endpoint of this task does not answer, and is left alone for so long: others of its host go first."""
        self._later.append((task, seconds))

    def too_deep(self, task: Task) -> None:
        """The task is deeper than the limit by now, as if it had never been met."""
        self._too_deep.append(task)

    def learnt(self, site: str, host: str, state: bytes) -> None:
        """Another crawl has shared what this site of a host says in robots.txt; `state` is the gate's."""
        self._learnt.append((site, host, state))

    def write(self, ledger: Ledger, now: float) -> None:
        """Write all of it down; `now` is in seconds since the epoch."""
        if self._is_empty:
            return
        with ledger.group() as group:
            for task in self._begun:
                group.begun(task)
            for task, seconds in self._later:
                if group.done(task.identity):
                    group.later(task, now + seconds, known=True)
            if self._too_deep:
                group.count("dropped:depth", sum(map(group.give_up, self._too_deep)))
            for site, host, state in self._learnt:
                group.robots(site, host, state)
                group.count("robots_shared")
                kept = group.host_state(host)
                group.host(msgspec.structs.replace(kept, first_seen=kept.first_seen or now, robots_state=SHARED))
        if self._begun:
            ledger.sync()  # nothing of what may not be sent twice leaves before its note is on the disk
        self._begun, self._later, self._too_deep, self._learnt = [], [], [], []
