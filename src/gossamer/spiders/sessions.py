"""Sessions of a spider, and the protocol module that says which of them asks for a page.

Place in the flow: sessions send requests in turn, each with its own cookies and proxy, until the site refuses one. The module in
front of that for http asks :class:`SessionPool`, by way of :mod:`running`, which session sends a task, and reports the answer to
it. If a session is retired, another one begins under its name, and sends the tasks that wait for this name in the queues.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection

import msgspec

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider
from gossamer.fetcher.contract import RequestSender
from gossamer.parsing.contract import LogInSender, SessionHealth, SessionTurns
from gossamer.values.errors import UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import requested
from gossamer.values.task import ROBOTS, Task
from gossamer.values.visit import Response

#: Sessions in turn, and those that a program names beside them: each holds cookies in memory.
MOST_SESSIONS = 1000

#: The statuses of a site that does not let its asker in.
BLOCKED = (401, 403, 429)

#: Times that a page is asked for again since the session was refused; then its answer is what it is.
MOST_TRIES = 3


class Sessions(msgspec.Struct, frozen=True):
    """Settings of a spider's sessions: how many there are, and when one is retired."""

    count: int
    """Number of sessions that send requests in turn."""
    blocked: Collection[int] = BLOCKED
    """Status codes with which the site refuses a session. The session is then retired, and the page is requested again."""
    limit: int | None = None
    """Retire at most this many sessions in all, then take each answer as it is. The default is ten times `count`."""

    @property
    def most(self) -> int:
        return 10 * self.count if self.limit is None else self.limit


NO_SESSIONS = Sessions(0)


def sessions_of(given: int | Sessions) -> Sessions:
    """Return the settings of the sessions that a program asks for.
    Raises UsageError: the number of sessions is not in its bounds, or a status code is not valid."""
    plan = given if isinstance(given, Sessions) else Sessions(given)
    count: object = plan.count
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST_SESSIONS:
        raise UsageError(f"sessions={count!r}: give a number of sessions, {MOST_SESSIONS} at most")
    if not all(100 <= code < 600 for code in plan.blocked):
        raise UsageError(f"sessions: blocked={plan.blocked!r}: give status codes, as {BLOCKED}")
    if plan.most < 0:
        raise UsageError(f"sessions: limit={plan.limit!r}: give a number of sessions")
    return plan


class _Member(msgspec.Struct):
    asked: int = 0
    since: int = 0
    """Requests since this one took the name over, or logged in again."""
    retired: int = 0
    begun: float = 0.0
    """When this one took the name over; 0 for the first."""


class SessionPool:
    """The sessions of a spider at work in one crawl. Implements `parsing.contract.SessionTurns`."""

    def __init__(self, plan: Sessions, now: Callable[[], float]) -> None:
        self._plan = plan
        self._now = now
        self._turn = 0
        self._members: OrderedDict[str, _Member] = OrderedDict()
        self._retired: list[str] = []
        self.retired = 0
        """Sessions that were retired, in this run."""

    def __repr__(self) -> str:
        return f"<SessionPool of {self._plan.count}, {self.retired} retired>"

    @property
    def count(self) -> int:
        return self._plan.count

    @property
    def most(self) -> int:
        return self._plan.most

    def session_for(self, task: Task) -> str:
        if not self._plan.count:
            return ""
        name = "" if task.request is None else task.request.session
        if not name and task.attempt > 1:
            # A page that was refused goes to the session that asked for least since it began: a site that gives each session
            # so many pages refuses those that took turns at the same time.
            begun = [one for one in map(str, range(1, self._plan.count + 1)) if one in self._members]
            name = min(begun, key=lambda one: self._members[one].since, default="")
        if not name:
            self._turn = self._turn % self._plan.count + 1
            name = str(self._turn)
        member = self._members.get(name)
        if member is None:
            if len(self._members) >= MOST_SESSIONS:
                # Names are a program's to make up, so those that were not used for longest are forgotten, cookies and all.
                forgotten, _ = self._members.popitem(last=False)
                self._retired.append(forgotten)
            member = self._members[name] = _Member()
        self._members.move_to_end(name)
        member.asked += 1
        member.since += 1
        return name

    def refresh(self, session: str) -> None:
        """Treat a session as new, because it logs in again."""
        member = self._members.get(session)
        if member is not None:
            member.since = 0

    def answered(self, session: str, task: Task, response: Response) -> None:
        if response.status in self._plan.blocked:
            self.retire(session, response.started)

    def retire(self, session: str, asked: float) -> None:
        """Retire a session, unless the limit is reached, or the session that sent the refused request at that time is retired
        already."""
        member = self._members.get(session)
        if member is None or asked < member.begun or self.retired >= self._plan.most:
            return
        member.begun = self._now()
        member.since = 0
        member.retired += 1
        self.retired += 1
        self._retired.append(session)

    def take_retired(self) -> list[str]:
        taken, self._retired = self._retired, []
        return taken

    def is_refused(self, task: Task, response: Response) -> bool:
        """Whether the answer refuses the session and not the page, so that another session asks for the page again. A page that
        is refused for now (`rate_limited`) is asked for again anyway; a request that may not be sent twice is not."""
        return (
            bool(response.session)
            and response.status in self._plan.blocked
            and response.outcome is not Outcome.RATE_LIMITED
            and task.attempt <= MOST_TRIES
            and task.is_safe
            and self.retired < self._plan.most
        )

    def health(self, most: int) -> list[SessionHealth]:
        """Return the health of the sessions; those that were retired most often come first."""
        ranked = sorted(self._members.items(), key=lambda pair: -pair[1].retired)[:most]
        return [SessionHealth(name, member.asked, member.retired) for name, member in ranked]


# A protocol module in front of another: it says which session of a spider asks for a page. The fetch component gives it the tasks
# of a spider that keeps sessions; the modules behind it log the session in, and send the task with the session's cookies, by the
# session's proxy.

_PLAIN = requested()


class RotatingModule(Provider[NoSettings]):
    """Fetches with the module behind it, each task in a session. Implements `fetcher.contract.RequestSender`."""

    behind: Uses[RequestSender]
    keeper: Uses[LogInSender]
    """The part that keeps the cookies of sessions."""
    sessions: Uses[SessionTurns]

    async def fetch(self, task: Task) -> Response:
        return await self.send(task)

    async def send(self, task: Task) -> Response:
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
