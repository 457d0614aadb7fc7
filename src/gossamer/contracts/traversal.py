"""The order in which a crawl goes through the web (row C8; Hunyadi 2007, section 2.1). Suite:
`gossamer.testing.check_traversal`.

A traversal decides only what is followed and in which order; when a host may be asked is politeness, a unit of its own.
"""

from collections.abc import Sequence
from typing import Protocol

from gossamer.model.task import LAST_LEVEL, Task

#: The last level within a host: the ledger keeps a level in one byte.
DEEPEST = LAST_LEVEL

#: The rule that links are counted under which a traversal does not go after.
LEFT = "strategy"


class Traversal(Protocol):
    """Orders tasks within a host, and hosts among each other.

    Promises:
        1. `follow` returns some of the tasks that it was given, in order, each once.
        2. Levels within a host are from 0 (first) to :data:`DEEPEST`, those of hosts to `contracts.prioritizing.LEVELS` - 1.
           They depend on task and urgency alone.
        3. A traversal that uses chance is seeded: the same calls give the same answers.
    """

    def follow(self, tasks: Sequence[Task], source: Task | None) -> Sequence[Task]:
        """Those of the new tasks of one page that are gone after; `source` is None for seeds."""
        ...

    def level(self, task: Task, urgency: int) -> int:
        """In which of its host's queues a task waits: the lower ones go first, and within one the oldest task.

        `urgency` is the prioritizer's level. Depth-first needs no stack: the deepest queue goes first.
        """
        ...

    def host_level(self, task: Task, urgency: int) -> int:
        """In which front queue a host stands whose next task is `task`."""
        ...
