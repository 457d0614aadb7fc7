"""Contracts of trap detection: watchers of visits, the host's template, and the traps themselves.
Suites: `gossamer.testing.check_watcher`, `check_learner`, `check_traps`.

Trap detection stands among the filters of tasks. It refuses only what a person has confirmed; what it suspects itself it sets
aside: those tasks wait in the ledger behind everything else, some of them are fetched as probes, and news free them all.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from functools import lru_cache
from typing import Protocol, runtime_checkable

import msgspec

from gossamer.expressions.contract import TaskGate
from gossamer.values.task import Family, Task
from gossamer.values.visit import Visit


class Learnt(msgspec.Struct, frozen=True):
    """Facts that were learned about a host, as the ledger keeps them."""

    host: str
    what: str
    """The watcher's name for it, the same for all hosts."""
    data: bytes
    """All of it, in a form of the watcher's own; it replaces what was kept before."""


class Watcher(Protocol):
    """Learns from every committed visit, and decides nothing about it.

    Promises:
        1. Memory is bounded for any sequence of visits.
        2. It changes nothing; other parts ask for its findings.
        3. It takes every visit, also those without an answer; what it says of them are few names, since they are counted under.
    """

    def observe(self, visit: Visit) -> str:
        """Learn from a visit that is about to be committed; what it uncovered, by a counted name, or an empty string.

        The visit's tasks are those that the URL-seen test had not seen; not all of them need be new after all.
        """


@runtime_checkable
class Learner(Watcher, Protocol):
    """A watcher whose knowledge outlives the process: the committer keeps it with the visits that it was learnt from.

    Promises:
        1. The ledger keeps a bounded number of bytes of one host, whatever the host does.
        2. It is given only when it has changed.
        3. One that finds in the ledger what another gave decides as that one did; what it cannot read, it never knew.
    """

    def learnt(self) -> Iterable[Learnt]:
        """The facts that have changed since the last call."""


class TemplateReading(msgspec.Struct, frozen=True):
    """A page, told apart."""

    own: Set[int]
    """Marks that are not of the template: all of them for the first page of a kind."""
    share: float
    """How much of the page was weighed, 0 to 1: of a host whose pages share thousands of marks, a steady sample is."""
    earlier: int
    """Pages of its kind that were read before, as far as they are remembered."""
    kinds: int
    """Kinds of pages that were known of the host; none of a host that was forgotten, or never read."""
    likeness: float
    """How like the most similar earlier remainder is to this one, 0 to 1 (Jaccard, estimated from all of it)."""

    @property
    def size(self) -> float:
        """Marks of its own, as far as can be told from what was weighed."""
        return len(self.own) / self.share


class HostTemplate(Protocol):
    """Separates the content that most pages of a host share from a page's own. A host has several templates, one for each kind of
    page.

    Parts that judge a page by its content (traps, fingerprints, text extraction, changes) leave the template out first.

    A *mark* is a 32-bit checksum (xxh32) of anything that pages share or do not share: a word, a shingle, the URL of a link.

    Promises:
        1. A mark that most pages of a kind have is none of a page's own, once three pages of the kind were read.
        2. A mark that no earlier page of the host had is the page's own, as far as it is weighed.
        3. Memory is bounded, whatever is read; what is forgotten is learnt anew, and meanwhile pages have more of their own.
        4. The ledger keeps at most 16 KiB of one host; they are given only when they have changed.
    """

    def read(self, host: str, marks: Set[int], *, learn: bool = True) -> TemplateReading:
        """Tell a page of a host apart by its marks, and remember it unless `learn` is False."""

    def learnt(self) -> Iterable[Learnt]:
        """The facts to keep of each host that has changed since the last call."""


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

    def judge_tasks(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[str]:
        """A verdict for each task: empty, or `trap:confirmed` where a person has said so."""

    def place(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[Family | None]:
        """For each task the family that it is to be set aside under; None for what is crawled."""

    def is_suspect(self, family: Family) -> bool:
        """Whether what is set aside of a family stays there."""

    def is_confirmed(self, family: Family) -> bool:
        """Whether a person has said that it is a trap: no probe of it is fetched."""

    def returning(self) -> Sequence[Family]:
        """Families that were freed since this was last asked: everything of them comes back."""


#: Whether a class keeps a contract: this is asked for each task, and to compare with a protocol takes 10 us.
keeps: Callable[[type, type], bool] = lru_cache(maxsize=256)(issubclass)
