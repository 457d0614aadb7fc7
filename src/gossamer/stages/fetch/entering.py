"""A protocol module in front of another: it runs the log-in of a host before the first page of that host.

Place in the flow: the fetch component gives it the tasks of a spider that logs in; the module behind it fetches them.
"""

from gossamer.contracts.spiders import LogIns, LogInSender
from gossamer.flow.ports import Uses
from gossamer.flow.sheet import NoSettings
from gossamer.flow.unit import Provider
from gossamer.model.task import ROBOTS, Task
from gossamer.model.visit import Response


class EnteringModule(Provider[NoSettings]):
    """Logs in to a site first, then fetches with the module behind it. Implements
    `contracts.fetching.RequestSender`."""

    behind: Uses[LogInSender]
    logins: Uses[LogIns]

    async def fetch(self, task: Task) -> Response:
        """See the contract. Raises ComponentFailed where the log-in fails."""
        await self._enter(task)
        return await self.behind.fetch(task)

    async def send(self, task: Task) -> Response:
        """See the contract. Raises as :meth:`fetch`."""
        await self._enter(task)
        return await self.behind.send(task)

    async def _enter(self, task: Task) -> None:
        """The task has its host's turn, which the log-in uses meanwhile."""
        if task.relation != ROBOTS:
            session = "" if task.request is None else task.request.session
            await self.logins.enter(task.url, self.behind.send, self.behind, self.behind.grant, session)
