"""Seeds: the first stage. Turns what a person typed into tasks of depth 0, for the frontier."""

from collections.abc import Iterator
from typing import Annotated

from gossamer.flow.component import Producer
from gossamer.flow.ports import Out
from gossamer.flow.sheet import Sheet, setting
from gossamer.model.errors import UnreadableUrl
from gossamer.model.task import Task
from gossamer.model.url import canonical, host_of


class SeedsSheet(Sheet, frozen=True):
    """What to start from."""

    urls: Annotated[tuple[str, ...], setting("URLs that the crawl starts from.", restart="seeds are sent once")] = ()


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
            yield Task(url=url, host=host_of(url))
