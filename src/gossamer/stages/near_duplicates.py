"""Near-duplicates: has a page with nearly this text been seen (row S12)? Between process, which made fingerprints, and links.

Wired only where somebody asks for it: without fingerprints there is nothing to compare. Exact duplicates are content-seen's
matter, and name their original already.
"""

from typing import Annotated

import msgspec

from gossamer.contracts.seen import FingerprintIndex
from gossamer.flow.component import Filter
from gossamer.flow.ports import In, Out, Uses
from gossamer.flow.sheet import Sheet, setting
from gossamer.model.visit import Visit

#: The rule that a near-duplicate is refused by.
RULE = "near-duplicate"


class NearDuplicatesSheet(Sheet, frozen=True):
    """Settings of :class:`NearDuplicates`."""

    skip: Annotated[
        bool, setting("Drop near-duplicates: do not keep them, count them as pages, or follow their links.")
    ] = False


class NearDuplicates(Filter[NearDuplicatesSheet]):
    """Fills in `near_duplicate_of`, and `discarded` for near-duplicates that the crawl is to drop."""

    inbox: In[Visit]
    outbox: Out[Visit]
    index: Uses[FingerprintIndex]

    #: As content-seen, which may call this in place.
    batch = 8

    def filter(self, visit: Visit) -> tuple[Visit]:
        """One look-up for a page that has a fingerprint and is nobody's exact duplicate."""
        if not visit.simhash or visit.duplicate_of or visit.discarded or visit.task.is_marked:
            return (visit,)
        original = self.index.near(visit.simhash, visit.url)
        # A page that is fetched again, after a kill say, is no duplicate of itself.
        if original in ("", visit.url):
            return (visit,)
        self.metrics.counters["near_duplicates"] += 1
        visit = msgspec.structs.replace(visit, near_duplicate_of=original)
        if self.sheet.skip:
            barred = {**visit.barred, "store": RULE}
            visit = msgspec.structs.replace(visit, found=(), links=(), new=(), items=(), discarded=RULE, barred=barred)
        return (visit,)
