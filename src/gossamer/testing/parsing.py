"""Conformance suites for parts that read pages, or learn from visits: filters, processors, page handlers, relevance, watchers and
detection of traps; and stored pages as fixtures, by which a processor or handler is tested in one line, without a server. ::

    [item] = prices(stored_document(Path("tests/pages/shop.html"), url="https://shop.test/1"))
    [item] = handled(spider, Path("tests/pages/book.html"), label="book").items

`gossamer cat DIR URL > shop.html` stores a page of a crawl.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from gossamer.documents.document import Document
from gossamer.documents.page import Page
from gossamer.expressions.contract import TaskFilter, TaskGate, UrlFilter, VisitFilter, VisitGate
from gossamer.frontier.contract import LinkWords, PageWords, Relevance
from gossamer.frontier.traps.contract import Learner, Traps, Watcher
from gossamer.parsing.contract import Handled, PageHandlers, Processor
from gossamer.spiders.handlers import Gathering
from gossamer.spiders.loading import Loadable
from gossamer.spiders.running import in_loop
from gossamer.storage.ledger.contract import Ledger
from gossamer.values.errors import UsageError
from gossamer.values.media_type import sniff_media_type
from gossamer.values.outcome import Outcome
from gossamer.values.request import Request
from gossamer.values.task import ROBOTS, Task
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
    task = msgspec.structs.replace(document.visit.task, request=Request("", label=label, data=data).found.request)
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


#: Pages and links as the web has them, right and wrong.
_TEXTS = (
    "",
    "a word",
    "word " * 9_000,
    "\x00\ufffd\u202e",
    "\U0001f600" * 50,
    "日本語の文章です。" * 100,
    "x" * 50_000,
)


def check_relevance(relevance: Relevance) -> None:
    """Check that a relevance keeps its promises."""
    for text in _TEXTS:
        page = PageWords("http://a.test/", text[:200], text)
        score = relevance.page(page)
        assert 0.0 <= score <= 1.0, f"a page's score is {score}"
        links = [LinkWords(f"http://a.test/{n}", text[: 7 * n], text[:200]) for n in range(12)]
        for source in (0.0, score, 1.0):
            scores = relevance.links(links, page, source)
            assert len(scores) == len(links), "one score for each link"
            assert all(0.0 <= one <= 1.0 for one in scores), "a link's score is a number from 0 to 1"
        assert len(relevance.links([], page, score)) == 0, "an empty call has an empty result"


#: Pages of a host after which a trap must be known (fault 40).
KNOWN_AFTER = 50


def check_traps(make: Callable[[], Traps]) -> None:
    """Check that trap detection keeps its promises; `make` returns a fresh one each time."""
    _check_a_trap_is_set_aside(make())
    _check_news_free_all(make())
    _check_plain_sites_pass(make())


def check_watcher(watcher: Watcher) -> None:
    """Check that a watcher keeps its promises."""
    refused = Visit(Task("http://a.test/refused", "a.test"), Response(Outcome.BLOCKED, error="a rule"))
    robots = Visit(
        Task("http://a.test/robots.txt", "a.test", relation=ROBOTS, source="http://a.test"), Response(Outcome.OK)
    )
    hostile = visit("/\x00" + "x" * 2000, "<" * 10_000 + "\x00\ud7ff" * 1000, title="404 " * 200)
    shapes = [refused, robots, hostile, month(1), visit("/?" + "a=1&" * 500, ""), visit("/" + "d/" * 900, "")]
    for one in (*shapes, *(visit(f"/page/{number}", "text " * number, f"/page/{number + 1}") for number in range(100))):
        before = repr(one)
        said = watcher.observe(one)
        assert isinstance(said, str), f"{said!r} is no name"
        assert repr(one) == before, "the visit was changed"


#: Bytes of one host in the ledger, at the most.
KEPT_BYTES = 16_384


def check_learner(make: Callable[[], Learner], ledger: Ledger, visits: Sequence[Visit]) -> None:
    """Check that a watcher that remembers keeps its promises.

    Args:
        make: returns a watcher that continues from the state in `ledger`.
        ledger: empty.
        visits: visits of which several, some of them early, give the watcher something to find.
    """
    told = [make().observe(one) for one in visits]
    assert not any(told), "one visit was enough to find a trap: these visits prove nothing"
    alone = make()
    expected = [alone.observe(one) for one in visits]
    assert any(expected), "it found nothing: these visits prove nothing"
    found = []
    for one in visits:
        watcher = make()
        found.append(watcher.observe(one))
        with ledger.group() as group:
            for state in watcher.learnt():
                assert len(state.data) <= KEPT_BYTES, f"{len(state.data)} bytes of one host"
                group.learnt(state.host, state.what, state.data)
        assert list(watcher.learnt()) == [], "a state that had not changed was given again"
    assert found == expected, "a watch that went on from its state decided otherwise"
    kept = list(alone.learnt())
    with ledger.group() as group:
        for known in kept:
            group.learnt(known.host, known.what, b"\xc1 of another program")
    watcher = make()
    assert [watcher.observe(one) for one in visits] == expected, "an unreadable state was not a reason to begin anew"


def visit(url: str, text: str, *links: str, title: str = "A page") -> Visit:
    """Return a page of `http://a.test` as the committer sees it, with its new URLs."""
    response = Response(Outcome.OK, 200, headers=(("content-type", "text/html"),), body=f"<p>{text}".encode())
    new = tuple(Task(f"http://a.test{link}", "a.test", 1, f"http://a.test{url}", "a href") for link in links)
    return Visit(Task(f"http://a.test{url}", "a.test"), response, title=title, new=new)


def month(number: int, text: str = "Events of the month") -> Visit:
    """Return a page of an endless calendar."""
    years, months = divmod(number, 12)
    later = divmod(number + 1, 12)
    return visit(
        f"/events/{2000 + years}/{months + 1:02}.html", text, f"/events/{2000 + later[0]}/{later[1] + 1:02}.html"
    )


def months(first: int, count: int) -> list[Task]:
    """Return tasks of that calendar."""
    return [task for number in range(first - 1, first + count - 1) for task in month(number).new]


def _check_a_trap_is_set_aside(traps: Traps) -> None:
    names = [traps.observe(month(number)) for number in range(KNOWN_AFTER)]
    found = {name for name in names if name}
    assert len(found) == 1 and next(iter(found)).startswith("trap:"), f"a calendar without end was called {found}"
    tasks = months(100, 1000)
    families = list(traps.place("schedule", tasks))
    assert len(families) == len(tasks), "one family, or none, for each task"
    assert None not in families, "URLs of a trap are crawled"
    assert {family.why for family in families if family} == found, "a family has another name than what was uncovered"
    assert list(traps.place("fetch", tasks)) == families, "the two gates disagree"
    gates: tuple[TaskGate, ...] = ("schedule", "fetch")
    assert not any(any(traps.judge_tasks(gate, tasks)) for gate in gates), "a guess has refused something"
    [family] = set(filter(None, families))
    assert traps.is_suspect(family) and not traps.is_confirmed(family)
    assert list(traps.returning()) == [], "something was freed without news"
    elsewhere = [
        Task("http://a.test/", "a.test"),
        Task("http://a.test/news/2000/01.html", "a.test"),
        *[Task(task.url.replace("a.test", "b.test"), "b.test") for task in tasks],
    ]
    assert not any(traps.place("schedule", elsewhere)), "what is no part of the trap was set aside"


def _check_news_free_all(traps: Traps) -> None:
    for number in range(KNOWN_AFTER):
        traps.observe(month(number))
    tasks = months(100, 1000)
    families = set(filter(None, traps.place("schedule", tasks)))
    traps.observe(month(1_000, _words(1_000)))
    freed = list(traps.returning())
    assert families <= {msgspec.structs.replace(one, why=next(iter(families)).why) for one in freed}, (
        "news freed nothing"
    )
    assert not any(map(traps.is_suspect, families))
    assert not any(traps.place("schedule", tasks)), "news have returned, and URLs are set aside"
    assert list(traps.returning()) == [], "the same was freed twice"


def _check_plain_sites_pass(traps: Traps) -> None:
    for number in range(100):
        # Pages that are all alike, each linked to from the one before, and a list of equal leaves: dull, and not endless.
        assert traps.observe(visit(f"/pages/{number}.html", "A page", f"/pages/{number + 1}.html")) == ""
        assert traps.observe(visit(f"/leaves/2000/{number % 12 + 1:02}.html", "A leaf")) == ""
        assert (
            traps.observe(visit(f"/{'d/' * 15}{number}.html", _words(number), f"/{'d/' * 15}{number + 1}.html")) == ""
        )
        title = f"Room 404, item not found {number}"
        assert traps.observe(visit(f"/rooms/{number}.html", title, f"/rooms/{number + 1}.html", title=title)) == ""
    assert not any(traps.place("schedule", [Task("http://a.test/pages/7.html", "a.test")]))


def _words(number: int) -> str:
    letters = "".join("abcdefghij"[int(digit)] for digit in str(number))
    return " ".join(f"{letters}{end}" for end in ("alpha", "beta", "gamma", "delta", "omega"))
