"""Conformance suites for page handlers and log-ins: the code that runs a user's code keeps its promises, even if that fails."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from gossamer.contracts.spiders import Entered, Handled, LogIns, PageHandlers, SessionTurns
from gossamer.flow.errors import ComponentFailed
from gossamer.model.outcome import Outcome
from gossamer.model.requesting import requested
from gossamer.model.task import Task
from gossamer.model.url import host_of
from gossamer.model.visit import Response, Visit
from gossamer.reading.document import Document


async def check_page_handlers(handlers: PageHandlers, wanted: Sequence[Visit], unwanted: Sequence[Visit]) -> None:
    """Check that handlers keep the promises of their contract.

    Args:
        handlers: started; some of them should raise, hang, or yield values that cannot be kept.
        wanted: visits with a handler.
        unwanted: visits without one.
    """
    assert wanted, "give a visit that there is a handler for"
    for visit in wanted:
        assert handlers.wants(visit) and handlers.wants(visit), "it does not want a visit that it has a handler for"
    for visit in unwanted:
        assert not handlers.wants(visit), "it wants a visit for which there is no handler"
    for visit in wanted:
        if handlers.elsewhere(visit) is not None:
            continue
        try:
            made = await handlers.handle(Document(visit))
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} of a handler came through") from error
        assert isinstance(made, Handled)
        assert all(error.who and error.error for error in made.errors), (
            "an error names neither the handler nor the exception"
        )
        assert made.again is None or made.again >= 0
        assert handlers.wants(visit), "it has forgotten a handler"


def check_sessions(make: Callable[[], SessionTurns], blocked: int, limit: int) -> None:
    """Check that sessions keep the promises of their contract.

    Args:
        make: makes the sessions of a new run, two or more in turn.
        blocked: a status code for which they retire a session.
        limit: the most sessions that are retired.
    """
    sessions = make()
    plain = Task("http://a.test/", "a.test")
    named = Task("http://a.test/", "a.test", request=requested(session="anna"))
    turns = [sessions.session_for(plain) for _ in range(10)]
    assert all(turns) and len(set(turns)) > 1, "tasks do not go from one session to the next"
    assert sessions.session_for(named) == "anna", "a task is asked for by another session than it names"
    sessions.answered(turns[0], plain, Response(Outcome.OK, status=200, started=1e12))
    assert list(sessions.take_retired()) == [], "a session was retired although the server let it in"
    refused = Response(Outcome.CLIENT_ERROR, status=blocked, started=0.0)
    for _ in range(3):
        sessions.answered("anna", named, refused)
    assert list(sessions.take_retired()) == ["anna"], "a session is not retired once for what it asked before"
    assert list(sessions.take_retired()) == [], "a session is named twice"
    assert sessions.session_for(named) == "anna", "the name of a retired session is not in use"
    for _ in range(2 * limit):
        sessions.answered("anna", named, Response(Outcome.CLIENT_ERROR, status=blocked, started=1e12))
    assert len(sessions.take_retired()) == limit - 1, "more or fewer sessions are retired than the limit says"


class _Server:
    """Answers log-ins, and counts how many ask at the same time."""

    def __init__(self) -> None:
        self.asked: list[Task] = []
        self.entered: list[tuple[str, str]] = []
        self.most = self._now = 0

    async def ask(self, task: Task) -> Response:
        self.asked.append(task)
        self._now += 1
        self.most = max(self.most, self._now)
        await asyncio.sleep(0)
        self._now -= 1
        return Response(Outcome.OK, status=200)

    def has_entered(self, url: str, session: str = "") -> bool:
        return (session, url) in self.entered

    def note_entered(self, url: str, session: str = "") -> None:
        self.entered.append((session, url))

    def grant(self, url: str, field: str, session: str = "") -> None:
        raise AssertionError("a log-in that bears no token grants none")


async def check_log_ins(make: Callable[[], LogIns], url: str, elsewhere: str, refuse: Callable[[bool], None]) -> None:
    """Check that log-ins keep the promises of their contract.

    Args:
        make: makes the log-ins of a new run, which send their host a request each time.
        url: of a page whose host has a log-in.
        elsewhere: of a page whose host has none.
        refuse: makes log-ins fail from then on, or succeed again.
    """
    server, log_ins = _Server(), make()
    await log_ins.enter(elsewhere, server.ask, server, server.grant)
    assert not server.asked and not server.entered, "a host without a log-in was asked"
    refuse(True)
    for _ in range(2):
        before = len(server.asked)
        told = ""
        try:
            await log_ins.enter(url, server.ask, server, server.grant)
        except ComponentFailed as error:
            told = str(error)
        assert told and "\n" not in told, "a log-in that fails raises ComponentFailed with one line"
        assert len(server.asked) > before, "a log-in that failed is not run again for the next task"
    assert not server.entered, "a log-in that failed was noted"
    refuse(False)
    await log_ins.enter(url, server.ask, server, server.grant)
    one = len(server.asked)
    assert len(server.entered) == 1, "a log-in was not noted once"
    await asyncio.gather(*(log_ins.enter(url, server.ask, server, server.grant) for _ in range(5)))
    assert len(server.asked) == one, "a log-in was run again although it had succeeded"
    await log_ins.enter(url, server.ask, server, server.grant, "other")
    assert len(server.asked) > one, "a session is taken to be logged in since another is"
    one = len(server.asked)
    await make().enter(url, server.ask, server, server.grant)
    assert len(server.asked) == one, "a log-in of an earlier run was run again"
    fresh, again = _Server(), make()
    await asyncio.gather(*(again.enter(url, fresh.ask, fresh, fresh.grant) for _ in range(5)))
    assert fresh.most == 1 and len(fresh.entered) == 1, "several ran one log-in at once"
    hosts = {host_of(task.url) for task in (*server.asked, *fresh.asked)}
    assert hosts == {host_of(url)}, f"a log-in asked other hosts: {hosts}"


def check_entered(
    opened: Callable[[], AbstractContextManager[Entered]],
    url: str,
    give: Callable[[Entered, str], None],
    end: Callable[[], None],
) -> None:
    """Check that the knowledge about log-ins keeps the promises of its contract.

    Args:
        opened: opens the state that an earlier run has left, and closes it.
        url: of a log-in.
        give: makes the host of that URL set a cookie for a session, given by its name.
        end: lets time pass until the cookie is no longer valid.
    """
    with opened() as entered:
        assert not entered.has_entered(url), "a log-in is known although nobody has run it"
        give(entered, "")
        assert not entered.has_entered(url), "a cookie alone is taken for a log-in"
        entered.note_entered(url)
        assert entered.has_entered(url), "a log-in that was noted is not known"
        give(entered, "other")
        assert not entered.has_entered(url, "other"), "the log-in of a session is taken for that of another"
        entered.note_entered(url, "other")
    with opened() as entered:
        assert entered.has_entered(url), "a log-in is not known in the next run"
        assert entered.has_entered(url, "other"), "the log-in of a session is not known in the next run"
        end()
        assert not entered.has_entered(url), "a log-in is known although its cookies have ended"
    with opened() as entered:
        assert not entered.has_entered(url), "a log-in is known although its cookies have ended"
