"""URL-seen: which links are new? Their tasks go on in the visit; the committer's check-and-put decides (design question 1)."""

from typing import Annotated

import msgspec

from gossamer.contracts.seen import SeenSet
from gossamer.flow.component import Filter
from gossamer.flow.ports import In, Out, Uses
from gossamer.flow.sheet import Sheet, setting
from gossamer.model.leading import keeps_depth, task_of
from gossamer.model.visit import Visit


class UrlSeenSheet(Sheet, frozen=True):
    """Settings of :class:`UrlSeen`."""

    again: Annotated[bool, setting("Make a task of every link, seen or not (for random walks).")] = False


class UrlSeen(Filter[UrlSeenSheet]):
    """Fills in `new`: a task for each link that may be new."""

    inbox: In[Visit]
    outbox: Out[Visit]
    seen: Uses[SeenSet]

    def filter(self, visit: Visit) -> tuple[Visit]:
        """One look-up for the whole page."""
        if not visit.links:
            return (visit,)
        links = {link.identity: link for link in visit.links}
        source = visit.task
        relations = {link.relation for link in visit.links}
        nearest = source.depth if any(map(keeps_depth, relations)) else source.depth + 1
        unseen = links if self.sheet.again else self.seen.unseen(list(links), nearest)
        found = [links[identity] for identity in unseen]
        new = tuple(task_of(source, link.url, link.relation, link.request) for link in found)
        self.metrics.counters["looked_up"] += len(links)
        self.metrics.counters["new"] += len(new)
        return (msgspec.structs.replace(visit, new=new),)
