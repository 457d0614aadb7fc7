"""The place of a crawling *application* in the wiring: a program of the user's own that says what to fetch next (row P1).

The crawl is the crawling *system*: it knows how to fetch politely. The application stands in a process that somebody else starts
(`process = "outside"`), sends tasks, and receives each committed visit with its document. Neither knows how the other
is made; `examples/04-own-application` is such a program. Of several agents each sends its visits, and the first one takes the
tasks: it brings those of the others' hosts there as it does with links. This class is never run: it tells the wiring what flows.
"""

from collections.abc import Iterable

from gossamer.flow.component import AsynchronousFilter
from gossamer.flow.ports import In, Out
from gossamer.flow.sheet import NoSettings
from gossamer.model.task import Task
from gossamer.model.visit import Record


class Application(AsynchronousFilter[NoSettings]):
    """Stands for an application of yours in another process: it receives records of the crawl and sends URLs."""

    records: In[Record]
    urls: Out[Task]

    optional = frozenset({"urls"})

    def on_records(self, record: Record) -> None:
        """A committed visit."""
        raise NotImplementedError('an application is a program of its own; give this component process = "outside"')

    def take_urls(self, free: int) -> Iterable[Task]:
        """Tasks that are new to it; a URL that was fetched before is not fetched again."""
        raise NotImplementedError('an application is a program of its own; give this component process = "outside"')
