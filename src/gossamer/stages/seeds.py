"""Seeds: the first stage. Turns what a person typed into tasks of depth 0, for the frontier."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from gossamer.contracts.spiders import Beginnings
from gossamer.flow.component import Producer
from gossamer.flow.ports import Out, Uses
from gossamer.flow.sheet import Sheet, setting
from gossamer.model.errors import UnreadableUrl
from gossamer.model.requesting import Requested
from gossamer.model.task import Task
from gossamer.model.url import canonical, host_of

_PLAIN = (None,)


class SeedsSheet(Sheet, frozen=True):
    """What to start from."""

    urls: Annotated[tuple[str, ...], setting("Start from these URLs.", restart="seeds are sent once")] = ()


class Seeds(Producer[SeedsSheet]):
    """Sends each seed once, in order."""

    outbox: Out[Task]

    def produce(self) -> Iterator[Task]:
        """A task for each seed that is a URL; the others are counted as `unreadable`."""
        for text in self.sheet.urls:
            try:
                url = canonical(text)
            except UnreadableUrl:
                self.metrics.count("unreadable")
                continue
            for request in self.requests(url):
                yield Task(url=url, host=host_of(url), request=request)

    def requests(self, url: str) -> Sequence[Requested | None]:
        """What is asked of a seed; None is a plain request."""
        return _PLAIN


class RequestedSeeds(Seeds):
    """Sends each seed once, in order, as a request that a program has set up (method, handler, data)."""

    asking: Uses[Beginnings]

    def requests(self, url: str) -> Sequence[Requested | None]:
        """What the program says."""
        return self.asking.beginnings(url)
