"""The fetch stage: a pool of workers, each with one request; the protocol module is chosen by the URL's scheme.

Place in the flow: for each task it sends an *answer* back to the frontier (the host is free again), then the *visit* onwards.
"""

from gossamer.engine.component import Filter
from gossamer.engine.ends import In, Out, UsesMany
from gossamer.engine.errors import ComponentFailed
from gossamer.engine.sheet import NoSettings
from gossamer.fetcher.contract import ProtocolModule, RequestSender
from gossamer.values.outcome import Outcome
from gossamer.values.task import Answer, Task
from gossamer.values.url import scheme_of
from gossamer.values.visit import Response, Visit, answer_of


class Fetch(Filter[NoSettings]):
    """Fetches each task, and makes a visit of it whether the fetch succeeds or fails."""

    tasks: In[Task]
    answers: Out[Answer]
    visits: Out[Visit]
    protocols: UsesMany[ProtocolModule]

    async def filter(self, task: Task) -> None:
        """Every task ends in one answer and one visit, whatever a module or a server does."""
        response = await self._fetch(task)
        self.metrics.count(f"outcome:{response.outcome}")
        await self.answers.send(answer_of(task, response))
        barred = {"body": response.barred} if response.barred else {}
        await self.visits.send(Visit(task, response, barred=barred))

    async def _fetch(self, task: Task) -> Response:
        modules = self.protocols.get(scheme_of(task.url))
        if not modules:
            return Response(Outcome.SCHEME_REFUSED, error=f"no protocol module serves {scheme_of(task.url)!r}")
        module = modules[0]
        try:
            if task.request is None or task.request.is_plain:
                return await module.fetch(task)
            if isinstance(module, RequestSender):
                return await module.send(task)
            return Response(Outcome.SCHEME_REFUSED, error=f"{type(module).__name__} sends nothing but plain GETs")
        except ComponentFailed:
            raise  # of a person's own code, as a log-in: the crawl would fetch pages that are not those which it is for
        except Exception as error:
            # A module promises not to raise; one that does costs its page and is counted, not the crawl.
            self.metrics.count("raised")
            return Response(Outcome.PROTOCOL_FAILED, started=self.clock.now(), error=f"{type(error).__name__}: {error}")
