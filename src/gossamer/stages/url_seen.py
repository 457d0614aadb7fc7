"""URL-seen: which links are new? Their tasks go on in the visit; the committer's check-and-put decides (DESIGN 9.1)."""

import msgspec

from gossamer.contracts.seen import SeenSet
from gossamer.flow.component import Filter
from gossamer.flow.ports import In, Out, Uses
from gossamer.flow.sheet import NoSettings
from gossamer.model.task import Task
from gossamer.model.url import host_of
from gossamer.model.visit import Visit


class UrlSeen(Filter[NoSettings]):
    """Fills in `new`: a task for each link that may be new."""

    inbox: In[Visit]
    outbox: Out[Visit]
    seen: Uses[SeenSet]

    def filter(self, visit: Visit) -> tuple[Visit]:
        """One look-up for the whole page. A redirect's target keeps the depth of its source (DESIGN 9.4)."""
        if not visit.links:
            return (visit,)
        links = {link.url: link for link in visit.links}
        source = visit.task
        new = []
        for url in self.seen.unseen(list(links)):
            relation = links[url].relation
            if relation == "redirect":
                new.append(Task(url, host_of(url), source.depth, source.url, relation, hops=source.hops + 1))
            else:
                new.append(Task(url, host_of(url), source.depth + 1, source.url, relation))
        self.metrics.counters["looked_up"] += len(links)
        return (msgspec.structs.replace(visit, new=tuple(new)),)
