"""The filter stage: links that any filter refuses do not go on. It owns the gates `expand` and `follow` (row M5)."""

from gossamer.contracts.filtering import UrlFilter, VisitFilter
from gossamer.flow.component import Filter
from gossamer.flow.ports import In, Out, UsesMany
from gossamer.flow.sheet import NoSettings
from gossamer.model.visit import Visit
from gossamer.stages.url_filter.judging import judged


class Filtering(Filter[NoSettings]):
    """Keeps the links that every filter of the gate `follow` lets pass, and counts the others by the rule that refused
    them.

    A page that the gate `expand` refuses keeps no link.
    """

    inbox: In[Visit]
    outbox: Out[Visit]
    filters: UsesMany[UrlFilter]
    gates: UsesMany[VisitFilter]

    def filter(self, visit: Visit) -> tuple[Visit]:
        """Judge a page's links, filter by filter: later ones see only what earlier ones let pass."""
        return (judged(visit, self.gates.get("expand", ()), self.filters.get("follow", ()), self.metrics.count),)
