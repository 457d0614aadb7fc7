"""Crawler traps: decides which URLs of a host are set aside, and which come back (row S13). Suite:
`gossamer.testing.check_traps`.

Trap detection stands among the filters of tasks. It refuses only what a person has confirmed; what it suspects itself it sets
aside: those tasks wait in the ledger behind everything else, some of them are fetched as probes, and news free them all.
"""

from collections.abc import Sequence
from typing import Protocol, TypeGuard, runtime_checkable

from gossamer.contracts.filtering import TaskGate
from gossamer.model.aside import Family
from gossamer.model.task import Task
from gossamer.model.visit import Visit


@runtime_checkable
class Traps(Protocol):
    """Watches the content of visits, and decides which tasks wait behind everything else.

    Promises:
        1. Memory is bounded on any web; a forgotten host is trusted again.
        2. Nothing is refused by a guess: what is suspected is given a family to be set aside under, with a name that is counted;
           these names are few: `trap:calendar`, `trap:facets`, ...
        3. A page of a suspected family that says something new frees all of it: `returning` says so once.
        4. A task has the same family at `schedule` and `fetch` while nothing was learnt in between, but for shapes of single URLs,
           which are judged at `schedule` only.
    """

    def observe(self, visit: Visit) -> str:
        """Learn from a visit that is about to be committed. The trap that it uncovered, or an empty string.

        Its tasks are those that the URL-seen test had not seen; not all of them need be new after all.
        """
        ...

    def judge_tasks(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[str]:
        """A verdict for each task: empty, or `trap:confirmed` where a person has said so."""
        ...

    def place(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[Family | None]:
        """For each task the family that it is to be set aside under; None for what is crawled."""
        ...

    def is_suspect(self, family: Family) -> bool:
        """Whether what is set aside of a family stays there."""
        ...

    def is_confirmed(self, family: Family) -> bool:
        """Whether a person has said that it is a trap: no probe of it is fetched."""
        ...

    def returning(self) -> Sequence[Family]:
        """Families that were freed since this was last asked: everything of them comes back."""
        ...


#: Classes, and whether their objects keep this contract.
_known: dict[type, bool] = {}


def _is_traps(one: object) -> TypeGuard[Traps]:
    """By its class, once for each: this is asked of each task's filters, and to compare with a protocol takes 10 us."""
    kind = type(one)
    is_one = _known.get(kind)
    if is_one is None:
        is_one = _known[kind] = issubclass(kind, Traps)
    return is_one


def placed(filters: Sequence[object], gate: TaskGate, tasks: Sequence[Task]) -> Sequence[Family | None]:
    """The families of tasks by those of a gate's filters that watch for traps; the first that suspects one has it."""
    found: Sequence[Family | None] = [None] * len(tasks)
    for one in filters:
        if _is_traps(one):
            found = [first or second for first, second in zip(found, one.place(gate, tasks), strict=True)]
    return found
