"""Log-ins, and what is known of them, keep the promises of their contracts."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gossamer.fetcher.authentication import Authentication
from gossamer.fetcher.http_options import HttpSheet
from gossamer.parsing.contract import Entered
from gossamer.spiders.logins import Entrances, LogInTable, Session
from gossamer.testing import check_entered, check_log_ins
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import requested
from gossamer.values.task import Task
from gossamer.values.visit import Response

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
        who = Authentication(HttpSheet(cookies="keep", directory=str(tmp_path)), lambda: now[0])
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
