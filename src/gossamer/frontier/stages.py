"""Two stages of the ring: seeds turn URLs that a person typed into tasks, and URL-seen tells which links of a page may be new.

Place in the flow: seeds go to the frontier. URL-seen asks the seen set, and puts tasks for new links into the visit; the
check-and-put of the commit decides.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from gossamer.engine.component import Filter, Producer
from gossamer.engine.ends import In, Out, Uses
from gossamer.engine.sheet import Sheet, setting
from gossamer.parsing.contract import Beginnings
from gossamer.storage.seen.contract import SeenSet
from gossamer.values.errors import UnreadableUrl
from gossamer.values.relations import keeps_depth, task_of
from gossamer.values.request_identity import Requested
from gossamer.values.task import Task
from gossamer.values.url import canonical, host_of
from gossamer.values.visit import Visit

_PLAIN = (None,)


class SeedsSheet(Sheet, frozen=True):
    """Settings of :class:`Seeds`."""

    urls: Annotated[tuple[str, ...], setting("Start from these URLs.", restart="seeds are sent once")] = ()


class Seeds(Producer[SeedsSheet]):
    """Sends each seed once, in order."""

    outbox: Out[Task]

    unsent = 0
    """Seeds that were not sent before the end; the next run sends them."""

    def produce(self) -> Iterator[Task]:
        """A task for each seed that is a URL; the others are counted as `unreadable`."""
        self.unsent = len(self.sheet.urls)
        for text in self.sheet.urls:
            self.unsent -= 1
            try:
                url = canonical(text)
            except UnreadableUrl:
                self.metrics.count("unreadable")
                continue
            for request in self.requests(url):
                yield Task(url=url, host=host_of(url), request=request)

    def requests(self, url: str) -> Sequence[Requested | None]:
        """The requests for a seed; None is a plain one."""
        return _PLAIN


class RequestedSeeds(Seeds):
    """Sends each seed once, in order, as a request that a program has set up (method, handler, data)."""

    asking: Uses[Beginnings]

    def requests(self, url: str) -> Sequence[Requested | None]:
        return self.asking.beginnings(url)


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
