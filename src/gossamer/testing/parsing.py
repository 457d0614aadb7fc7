"""Conformance suites for filters, processors, page handlers, log-ins and sessions; and stored pages as fixtures, by which a
processor or handler is tested in one line, without a server. ::

    [item] = prices(stored_document(Path("tests/pages/shop.html"), url="https://shop.test/1"))
    [item] = handled(spider, Path("tests/pages/book.html"), label="book").items

`gossamer cat DIR URL > shop.html` stores a page of a crawl.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, get_args

import msgspec

from gossamer.documents.document import Document
from gossamer.documents.page import Page
from gossamer.engine.errors import ComponentFailed
from gossamer.expressions.contract import TaskFilter, TaskGate, UrlFilter, VisitFilter, VisitGate
from gossamer.parsing.contract import Entered, Handled, LogIns, PageHandlers, Processor, SessionTurns
from gossamer.spiders.handlers import Gathering
from gossamer.spiders.loading import Loadable
from gossamer.spiders.running import in_loop
from gossamer.values.errors import UsageError
from gossamer.values.media_type import sniff_media_type
from gossamer.values.outcome import Outcome
from gossamer.values.request import asking
from gossamer.values.request_identity import requested
from gossamer.values.task import Task
from gossamer.values.url import canonical, host_of
from gossamer.values.visit import Found, Item, Link, Order, Record, Response, Statements, Visit

# Conformance suites for URL filters and processors: run them over an implementation of your own.

#: Canonical URLs of every shape that a filter meets.
SHAPES = (
    "http://a.test/",
    "https://a.test:8443/dir/page.html?q=1",
    "http://[::1]:8080/x",
    "http://192.0.2.1/",
    "http://xn--bcher-kva.example/%F0%9F%92%A9",
    "ftp://a.test/file",
    "http://a.test/" + "a/" * 900,
)


def check_url_filter(rule: UrlFilter, passes: Sequence[str], refuses: Sequence[str], source: Task) -> None:
    """Check that a filter keeps its promises.

    Args:
        rule: started.
        passes: canonical URLs that it lets pass when they are found on `source`.
        refuses: canonical URLs that it refuses.
        source: the page on which they are found.
    """
    assert list(rule.judge([], source)) == [], "no verdict without a link"
    links = [Link(url) for url in (*passes, *refuses, *SHAPES)]
    verdicts = list(rule.judge(links, source))
    assert len(verdicts) == len(links), "one verdict for each link"
    assert all(isinstance(verdict, str) for verdict in verdicts), "a verdict is the name of a rule, or empty"
    for link, verdict in zip(links[: len(passes)], verdicts, strict=False):
        assert verdict == "", f"{link.url} was refused by {verdict!r}"
    for link, verdict in zip(links[len(passes) : len(passes) + len(refuses)], verdicts[len(passes) :], strict=False):
        assert verdict, f"{link.url} passed"
    alone = [next(iter(rule.judge([link], source))) for link in links]
    assert alone == verdicts, "a verdict depends on the other links"
    order = list(range(len(links)))
    random.Random(1).shuffle(order)
    shuffled = list(rule.judge([links[n] for n in order], source))
    assert shuffled == [verdicts[n] for n in order], "verdicts are not in the order of the links"


def check_gate_filter(
    rule: TaskFilter | VisitFilter,
    gate: TaskGate | VisitGate,
    passes: Sequence[Task | Visit],
    refuses: Sequence[Task | Visit],
) -> None:
    """Check that a filter of tasks or visits keeps its promises, whether items come alone or together.

    Args:
        rule: started.
        gate: the gate of the filter.
        passes: tasks (of the gates `schedule` and `fetch`) or visits that it lets pass.
        refuses: tasks or visits that it refuses.
    """

    def judge(things: Sequence[Any]) -> list[str]:
        if gate in get_args(TaskGate):
            return list(rule.judge_tasks(gate, things))  # type: ignore[union-attr, arg-type]
        return [rule.judge_visit(gate, thing) for thing in things]  # type: ignore[union-attr, arg-type]

    assert judge([]) == [], "no verdict without a task"
    things = [*passes, *refuses]
    verdicts = judge(things)
    assert len(verdicts) == len(things), "one verdict for each"
    assert all(isinstance(verdict, str) for verdict in verdicts), "a verdict is the name of a rule, or empty"
    for thing, verdict in zip(things, verdicts, strict=True):
        assert (verdict == "") == (thing in passes), f"{thing.url}: {verdict!r}"
    assert judge(things[::-1]) == verdicts[::-1], "a verdict depends on the others"


def check_processor(processor: Processor, visits: Sequence[Visit], *, keeps_state: bool = False) -> None:
    """Check that a processor keeps its promises.

    Args:
        processor: started.
        visits: documents of the types that it reads, at least two.
        keeps_state: whether its results depend on earlier documents, as it declares.
    """
    first = [_process(processor, one) for one in visits]
    for one, things in zip(visits, first, strict=True):
        assert all(isinstance(thing, Found | Item | Statements) for thing in things), (
            f"{one.url}: the result is not a Found, Item or Statements"
        )
    again = [_process(processor, one) for one in reversed(visits)]
    assert keeps_state or again == first[::-1], "what it yields depends on other documents"
    for one in visits:
        before = one.response.content
        document = Document(one)
        list(processor.process(document))
        assert keeps_state or list(processor.process(document)) == _process(processor, one), (
            "a second look at a document has another result"
        )
        assert one.response.content == before, "the document was changed"


def _process(processor: Processor, one: Visit) -> list[Found | Item | Statements | Order]:
    return list(processor.process(Document(one)))


# Conformance suites for page handlers and log-ins: the code that runs a user's code keeps its promises, even if that fails.


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


def stored_document(
    source: str | bytes | Path, *, url: str = "https://example.test/", content_type: str = "", status: int = 200
) -> Document:
    """Return a document as a processor gets it.

    Args:
        source: the markup, the bytes, or the file that holds them.
        url: where it would have come from.
        content_type: as a server would send it, such as `text/html; charset=iso-8859-1`; empty sends none.
        status: of the answer.

    Raises:
        OSError: the file cannot be read.
        UnreadableUrl: the URL is not valid.
    """
    content = (
        source.read_bytes() if isinstance(source, Path) else source.encode() if isinstance(source, str) else source
    )
    if not content_type and isinstance(source, str):
        content_type = "text/html; charset=utf-8"
    headers = (("content-type", content_type),) if content_type else ()
    address = canonical(url)
    response = Response(Outcome.OK, status=status, headers=headers, body=content)
    visit = Visit(task=Task(address, host_of(address)), response=response, mime=sniff_media_type(content, content_type))
    return Document(visit)


def handled(
    spider: Loadable,
    source: str | bytes | Path,
    *,
    url: str = "https://example.test/",
    label: str = "",
    data: object = None,
    content_type: str = "",
    status: int = 200,
) -> Handled:
    """Run the handler of a stored page. The result has its `items`, each with a `value`, and its requests in `found`.

    Args:
        spider: the spider. The handler that would get the page in a crawl runs.
        source: the markup, the bytes, or the file that holds them.
        url: the URL of the page, which chooses the handler.
        label: of the request.
        data: the data of the request.
        content_type: as a server would send it; empty sends none.
        status: of the answer.

    Raises:
        UsageError: no handler gets this page, or it yields a value that cannot be kept.
        Exception: the exception of the handler, `gossamer.Retry` included.
    """
    import asyncio  # a test of a processor needs none

    document = stored_document(source, url=url, content_type=content_type, status=status)
    task = msgspec.structs.replace(document.visit.task, request=asking(label, data, 0, "", ""))
    keeps_sessions = bool(spider.sessions.count)
    answer = msgspec.structs.replace(document.visit.response, session="1" if keeps_sessions else "")
    visit = msgspec.structs.replace(document.visit, task=task, response=answer)
    plan = spider.handlers.of_page(label, visit.url, visit.media_type)
    if plan is None:
        raise UsageError(
            f"no handler gets {visit.url} of type {visit.media_type or 'unknown'} with the label {label!r}"
        )
    labels = spider.handlers.labels
    gathering = Gathering(visit.url, labels, keeps_sessions=keeps_sessions)
    gather: Any = in_loop(plan, Page(Record(visit), document=Document(visit), labels=labels), gathering)
    asyncio.run(gather)
    return gathering.handled()
