"""Changes: does this visit bring what the one before brought? Between process and links.

Place in the flow: wired where pages are visited again (`--recrawl`), in the process that has the ledger. Texts are compared where
bytes differ, so that no page is read for its text before it changes (decision 86).
"""

import msgspec

from gossamer.contracts.revisiting import KnownPages, PageTexts
from gossamer.flow.component import Filter
from gossamer.flow.ports import In, Out, Uses
from gossamer.flow.sheet import NoSettings
from gossamer.model.known import KnownPage, compared, is_judged_by_text
from gossamer.model.visit import Visit


class Changes(Filter[NoSettings]):
    """Fills in `compared`, and `simhash` of pages whose bytes changed."""

    inbox: In[Visit]
    outbox: Out[Visit]
    pages: Uses[KnownPages]
    texts: Uses[PageTexts]

    #: As content-seen, which may call this in place.
    batch = 8

    def filter(self, visit: Visit) -> tuple[Visit]:
        """One look-up for a page that may be known."""
        if visit.is_robots or visit.task.is_marked:
            return (visit,)
        known = self.pages.known(visit.task)
        if known is None:
            return (visit,)
        if is_judged_by_text(known, visit):
            known, visit = self._read(known, visit)
        found = compared(known, visit)
        if found is None:
            return (visit,)
        self.metrics.counters[found.change.value] += 1
        return (msgspec.structs.replace(visit, compared=found),)

    def _read(self, known: KnownPage, visit: Visit) -> tuple[KnownPage, Visit]:
        """Both with the fingerprints of their texts, as far as these can be had."""
        simhash = visit.simhash or self.texts.of_visit(visit)
        if simhash and not known.simhash:
            known = msgspec.structs.replace(known, simhash=self.texts.of_known(visit.url, known))
            self.metrics.counters["texts_read"] += 1
        return known, msgspec.structs.replace(visit, simhash=simhash)
