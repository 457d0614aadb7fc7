"""Conformance suites for filters, processors, page handlers, log-ins and sessions; and stored pages as fixtures, by which a
processor or handler is tested in one line, without a server. ::

    [item] = prices(stored_document(Path("tests/pages/shop.html"), url="https://shop.test/1"))
    [item] = handled(spider, Path("tests/pages/book.html"), label="book").items

`gossamer cat DIR URL > shop.html` stores a page of a crawl.
"""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from gossamer.documents.document import Document
from gossamer.documents.page import Page
from gossamer.expressions.contract import TaskFilter, TaskGate, UrlFilter, VisitFilter, VisitGate
from gossamer.parsing.contract import Handled, PageHandlers, Processor
from gossamer.spiders.handlers import Gathering
from gossamer.spiders.loading import Loadable
from gossamer.spiders.running import in_loop
from gossamer.values.errors import UsageError
from gossamer.values.media_type import sniff_media_type
from gossamer.values.outcome import Outcome
from gossamer.values.request import asking
from gossamer.values.task import Task
from gossamer.values.url import canonical, host_of
from gossamer.values.visit import Found, Item, Link, Order, Record, Response, Statements, Visit

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

    document = stored_document(source, url=url, content_type=content_type, status=status)
    task = msgspec.structs.replace(document.visit.task, request=asking(label=label, data=data))
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
