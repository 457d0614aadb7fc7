"""Archives and row logs (docs/kept.md). Suites: `gossamer.testing.check_archive`, `check_row_log`."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gossamer.contracts.keeping import Keeper
from gossamer.model.visit import Location, Visit


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
        """Write a large answer ahead of the `append` that has its visit, so that nobody waits for it meanwhile.

        One is laid at a time; other groups may be appended while it is. Nothing of it counts before its own group. An
        archive for which no answer is large does nothing.
        """
        ...

    def append(self, visits: Sequence[Visit]) -> list[Location | None]:
        """Write a group of visits; one location for each, in order."""
        ...

    def take_back(self) -> None:
        """Drop what the last `append` wrote: its commit failed, and it will be given again."""
        ...

    def ends(self) -> Mapping[str, int]:
        """File of the crawl directory -> its end, for every file that was written since the last call."""
        ...


class RowLog(Keeper, Protocol):
    """A keeper of one row for each visit, in the order of the commits.

    Promises, beside those of a keeper:
        1. One event is one line, whatever a server sent: control characters are escaped.
        2. When `append` returns, another process can read the rows.
    """

    def append(self, visits: Sequence[Visit], locations: Sequence[Location | None]) -> None:
        """Write the rows of visits, as `stage` does with those of a group."""
        ...
