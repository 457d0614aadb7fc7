"""A protocol module in front of another: it says which session of a spider asks for a page.

Place in the flow: the fetch component gives it the tasks of a spider that keeps sessions; the modules behind it log the session
in, and send the task with the session's cookies, by the session's proxy.
"""

import msgspec

from gossamer.contracts.fetching import RequestSender
from gossamer.contracts.spiders import LogInSender, SessionTurns
from gossamer.flow.ports import Uses
from gossamer.flow.sheet import NoSettings
from gossamer.flow.unit import Provider
from gossamer.model.requesting import requested
from gossamer.model.task import ROBOTS, Task
from gossamer.model.visit import Response

_PLAIN = requested()


class RotatingModule(Provider[NoSettings]):
    """Fetches with the module behind it, each task in a session. Implements `contracts.fetching.RequestSender`."""

    behind: Uses[RequestSender]
    keeper: Uses[LogInSender]
    """What keeps the cookies of sessions."""
    sessions: Uses[SessionTurns]

    async def fetch(self, task: Task) -> Response:
        """See the contract."""
        return await self.send(task)

    async def send(self, task: Task) -> Response:
        """See the contract."""
        session = "" if task.relation == ROBOTS else self.sessions.session_for(task)
        if not session:
            return await self._sent(task)
        for name in self.sessions.take_retired():
            self.keeper.renew(name)
        own = msgspec.structs.replace(task.request or _PLAIN, session=session)
        response = await self._sent(msgspec.structs.replace(task, request=own))
        self.sessions.answered(session, task, response)
        return msgspec.structs.replace(response, session=session)

    async def _sent(self, task: Task) -> Response:
        if task.request is None or task.request.is_plain:
            return await self.behind.fetch(task)
        return await self.behind.send(task)
