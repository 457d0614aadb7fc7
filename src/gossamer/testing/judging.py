"""Conformance suites for URL filters and processors: run them over an implementation of your own."""

import random
from collections.abc import Sequence
from typing import Any, get_args

from gossamer.contracts.filtering import TaskFilter, TaskGate, UrlFilter, VisitFilter, VisitGate
from gossamer.contracts.processing import Processor
from gossamer.model.orders import Order
from gossamer.model.task import Task
from gossamer.model.visit import Found, Item, Link, Statements, Visit
from gossamer.reading.document import Document

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
