"""The commit: the one place where a visit's consequences become durable, in groups (DESIGN 4.1).

Archive first, then the row log, then the check-and-put of new URLs; only after that the frontier learns that the slots are
free, and subscribers see the records.
"""

import msgspec

from gossamer.contracts.flights import Flights
from gossamer.contracts.seen import SeenSet
from gossamer.contracts.storing import Archive, RowLog
from gossamer.flow.component import Filter
from gossamer.flow.errors import ComponentFailed
from gossamer.flow.ports import In, Out, Uses
from gossamer.flow.sheet import NoSettings
from gossamer.model.task import Committed, Task
from gossamer.model.totals import Totals
from gossamer.model.visit import Location, Record, Visit


class Commit(Filter[NoSettings]):
    """Writes groups of visits, each visit once."""

    inbox: In[Visit]
    committed: Out[Committed]
    records: Out[Record]
    archive: Uses[Archive]
    log: Uses[RowLog]
    seen: Uses[SeenSet]
    flights: Uses[Flights]

    #: Small groups: a slot is free only after its group's commit (DESIGN 4.1 asks for about half the slots).
    batch = 32

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self.totals = Totals()
        self.metrics.gauge("pages", lambda: self.totals.pages)
        self.metrics.gauge("bytes", lambda: self.totals.bytes)

    async def filter_many(self, visits: list[Visit]) -> None:
        """Commit a group; what a link sent twice has no flight any more and is dropped."""
        group = [visit for visit in visits if self.flights.arrive(visit.url)]
        self.metrics.count("repeated", len(visits) - len(group))
        if not group:
            return
        group = [self._decided(visit) for visit in group]
        locations = self._written(group)
        for visit in group:
            self.totals.add(visit)
        await self.committed.send_many([self._committed(visit) for visit in group])
        await self.records.send_many([Record(v, location) for v, location in zip(group, locations, strict=True)])

    def _written(self, group: list[Visit]) -> list[Location | None]:
        """Archive and row log of a group.

        Raises:
            ComponentFailed: they cannot be written. The crawl stops: given once more, the group would count as repeated.
        """
        try:
            locations = self.archive.append(group)
            self.log.append(group, locations)
        except Exception as error:
            raise ComponentFailed(
                f"component {self.name!r} cannot keep {len(group)} visits: {type(error).__name__}: {error}"
            ) from error
        return locations

    def _decided(self, visit: Visit) -> Visit:
        """The visit with those of its new tasks that are new indeed."""
        if not visit.new:
            return visit
        tasks: dict[str, Task] = {task.url: task for task in visit.new}
        new = self.seen.offer(list(tasks))
        if len(new) == len(visit.new):
            return visit
        return msgspec.structs.replace(visit, new=tuple(tasks[url] for url in new))

    @staticmethod
    def _committed(visit: Visit) -> Committed:
        return Committed(visit.url, visit.response.outcome, visit.is_page, len(visit.response.body), visit.new)
