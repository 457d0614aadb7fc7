"""Log-ins, and what is known of them, keep the promises of their contracts."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from gossamer.engine.errors import ComponentFailed
from gossamer.fetcher.authentication import Authentication
from gossamer.fetcher.request import HttpSheet
from gossamer.parsing.contract import Entered, LogIns
from gossamer.spiders.logins import Entrances, LogInTable, Session
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import requested
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import Response


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


URL = "http://a.test/in"


def test_the_log_ins_of_a_spider_keep_their_promises(run: Callable[[Any], Any]) -> None:
    is_in = True
    table = LogInTable()

    async def log_in(session: Session) -> bool:
        await session.get()
        await session.get("/second")
        return is_in

    def refuse(no: bool) -> None:
        nonlocal is_in
        is_in = not no

    table.add(log_in, URL, 60.0)
    run(check_log_ins(lambda: Entrances(table, lambda: 0.0), "http://a.test/page", "http://b.test/", refuse))


def test_what_a_crawl_keeps_of_log_ins_keeps_its_promises(tmp_path: Path) -> None:
    now = [1_000_000.0]

    @contextlib.contextmanager
    def opened() -> Iterator[Entered]:
        who = Authentication(lambda: now[0])
        who.read(HttpSheet(cookies="keep", directory=str(tmp_path)))
        who.open()
        yield who
        who.close()

    def give(entered: Entered, session: str) -> None:
        assert isinstance(entered, Authentication)
        answer = Response(Outcome.OK, status=200, headers=(("set-cookie", "sid=1; Path=/; Max-Age=100"),))
        task = Task(URL, "a.test", request=requested(session=session))
        entered.received(task, entered.jar_of(task), answer, now[0])

    def end() -> None:
        now[0] += 101

    check_entered(opened, URL, give, end)
