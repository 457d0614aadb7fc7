"""Archives, and keepers of further data: the stores that a commit writes to. Suites: `gossamer.testing.check_archive`,
`check_keeper`.

Place in the flow: the commit gives each group of visits to the archive first, then to the keepers that the wiring lists, in its
order, when the archive has said where their answers lie and before the group is written. It knows none of them by name: row
logs are keepers, and so is a plug-in's own store. All that a keeper puts into files of its own, or stages in the ledger's group
(:mod:`gossamer.storage.contract`), is kept with the whole group or not at all. docs/kept.md describes the files.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from gossamer.documents.statements import directives
from gossamer.storage.ledger.contract import Group
from gossamer.values.task import Task
from gossamer.values.visit import Location, Order, Record, Visit

#: The index of the archive, inside the crawl directory (docs/kept.md).
INDEX = "index.cdxj"


def has_copy(visit: Visit) -> bool:
    """Whether the archive may hold the body of an answer: neither the page nor a filter keeps it out."""
    return "store" not in visit.barred and not forbids_copy(visit)


def forbids_copy(visit: Visit) -> bool:
    """Whether the page asks that no copy be kept, by its meta tags or its header fields (design question 15)."""
    if "noarchive" in visit.directives:
        return True
    fields = visit.response.fields("x-robots-tag")
    return bool(fields) and "noarchive" in directives(fields, "Gossamer")


@runtime_checkable
class Keeper(Protocol):
    """Takes part in the groups of the commit.

    Promises:
        1. When `stage` returns, another process can read what it has written, and it can be read up to its ends.
        2. After `take_back` no trace of the last `stage` is left outside the ledger's group, not even in memory. The
           group is given again, in whole. `committed` says which groups were kept; after a kill that came between, by the
           ledger alone.
        3. `ends` names every file that was written since it was last asked, by its path in the crawl directory, with the byte
           where it ends. After a kill each file is cut back to the end that the ledger has, and a file of which nothing was
           committed is taken away, before the first `stage`: until then the keeper opens none of them to write.
        4. It takes every visit: refused ones, tries that will be repeated, and requests for robots.txt are among them. Its own
           time and memory are bounded, whatever a server sent. It does not raise because of what a visit holds: the crawl
           stops where a keeper raises, since what cannot be kept must not be lost in silence.
    """

    def stage(self, records: Sequence[Record], group: Group) -> None:
        """Keep data of these visits: in files, in spaces of the group, or both.

        Raises:
            OSError: they cannot be written. If the disk is full, the commit waits and gives the group again.
        """

    def committed(self, ends: Mapping[str, int]) -> None:
        """The group of the last `stage` is kept, and as durable as the ledger's setting asks; `ends` are those of its `ends`."""

    def take_back(self) -> None:
        """Drop what the last `stage` wrote: its group failed, and will be given again."""

    def ends(self) -> Mapping[str, int]:
        """File of the crawl directory -> its end, for every file that was written since the last call."""

    def files(self) -> Sequence[str]:
        """Patterns of all files that it writes, for `glob` in the crawl directory; promise 3 covers these files."""


class GroupKeeper:
    """Base of keepers that write no file: all that they keep is in the ledger's group."""

    def committed(self, ends: Mapping[str, int]) -> None:
        """The ledger has all of it."""

    def take_back(self) -> None:
        """Nothing is outside of the group."""

    def ends(self) -> Mapping[str, int]:
        return {}

    def files(self) -> Sequence[str]:
        return ()


@runtime_checkable
class ClaimTaker(Protocol):
    """A keeper that knows which agents met a document, and gets such claims from other agents.

    Promise: a claim that is received twice has the effect of one.
    """

    def received(self, tasks: Sequence[Task], group: Group) -> None:
        """Stage claims that came as tasks; one that cannot be read is counted as `claims_unusable`."""


@runtime_checkable
class OrderTaker(Protocol):
    """A keeper that takes orders of processors, also those from pages of other agents.

    Promises:
        1. An order that is received twice has the effect of one.
        2. Orders that `received` stages take effect with :meth:`obey`, or in the next run; if the group fails, they
           have no effect.
    """

    def received(self, tasks: Sequence[Task], group: Group) -> Sequence[Order]:
        """Stage orders that came as tasks; returns those to obey when the group is kept."""

    def obey(self, orders: Sequence[Order]) -> None:
        """Let these orders take effect: their group is kept."""


class Archive(Protocol):
    """Keeps answers as they came.

    Promises:
        1. A visit without an answer is not written: its location is None.
        2. When `append` returns, another process can read every location that it returned.
        3. Nothing that a server sends can end a record, start one, or forge a field.
        4. `ends` names every file that was written since it was last asked, by its path in the crawl directory, with
           the byte where it ends now: what the commit notes, and what a file is cut back to after a kill.
        5. After the archive has stopped, no answer is left that was laid down and not appended.
    """

    async def lay(self, visit: Visit) -> None:
        """Write a large answer ahead of the `append` that has its visit, so that no other visit waits for it meanwhile.

        One is laid at a time; other groups may be appended while it is. Nothing of it counts before its own group. An
        archive for which no answer is large does nothing.
        """

    def append(self, visits: Sequence[Visit]) -> list[Location | None]:
        """Write a group of visits; one location for each, in order."""

    def take_back(self) -> None:
        """Drop what the last `append` wrote: its commit failed, and it will be given again."""

    def ends(self) -> Mapping[str, int]:
        """File of the crawl directory -> its end, for every file that was written since the last call."""
