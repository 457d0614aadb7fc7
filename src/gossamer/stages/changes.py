"""Changes: does this visit bring what the one before brought? Between process, which made fingerprints, and links.

Place in the flow: wired where pages are visited again (`--recrawl`), in the process that has the ledger.
"""

import msgspec

from gossamer.contracts.revisiting import KnownPages
from gossamer.flow.component import Filter
from gossamer.flow.ports import In, Out, Uses
from gossamer.flow.sheet import NoSettings
from gossamer.model.known import compared
from gossamer.model.visit import Visit


class Changes(Filter[NoSettings]):
    """Fills in `compared`."""

    inbox: In[Visit]
    outbox: Out[Visit]
    pages: Uses[KnownPages]

    #: As content-seen, which may call this in place.
    batch = 8

    def filter(self, visit: Visit) -> tuple[Visit]:
        """One look-up for a page that may be known."""
        if visit.is_robots or visit.task.is_marked:
            return (visit,)
        found = compared(self.pages.known(visit.task), visit)
        if found is None:
            return (visit,)
        self.metrics.counters[found.change.value] += 1
        return (msgspec.structs.replace(visit, compared=found),)
