"""Filters at the gates of a crawl (row M5). Suites: `gossamer.testing.check_url_filter`, `check_gate_filter`.

A gate is a place where filters may refuse something. The known facts differ: of a link only its URL is known, of a task
also its depth, of a visit the whole answer. `UrlFilter` works at `follow`, which has nearly all of the work;
`TaskFilter` and `VisitFilter` at the others. One object may keep all three contracts.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, get_args

import msgspec

from gossamer.values.task import Task
from gossamer.values.visit import Link, Visit

TaskGate = Literal["schedule", "fetch"]
"""Of a task: before it is queued, before it is handed to a fetcher."""

VisitGate = Literal["body", "parse", "expand", "store"]
"""Of a document: before its body is fetched, when its head is known; before it is parsed, before its links are looked at, before
its body is archived."""

Gate = Literal["schedule", "fetch", "body", "parse", "expand", "follow", "store"]
"""All gates in the order of a page's journey; `follow` judges links."""

GATES: tuple[Gate, ...] = get_args(Gate)


class UrlFilter(Protocol):
    """Judges all links of a page at once: no work per link that can be done per page.

    Promises:
        1. One verdict for each link, in order: an empty string lets it pass, anything else names the rule that refused it.
        2. The verdict on a link does not depend on the other links.
        3. A filter that raises refuses the whole page's links, and is counted: it never fails open.
        4. There are few rules on any web, because each is a counter.
    """

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """A verdict for each of `links`, all found on `source`."""
        ...


class TaskFilter(Protocol):
    """Judges tasks, with the promises of :class:`UrlFilter`."""

    def judge_tasks(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[str]:
        """A verdict for each of `tasks`, in order."""
        ...


class VisitFilter(Protocol):
    """Judges fetched documents: an empty string, or the name of the rule that keeps this one out of the gate."""

    def judge_visit(self, gate: VisitGate, visit: Visit) -> str:
        """The verdict on one visit."""
        ...


class Goal(Protocol):
    """Knows the page that a crawl looks for.

    Promises:
        1. It judges every fetched answer except robots.txt, and returns True for the page at which the crawl ends.
        2. If it raises, this is counted and the crawl goes on, so that no crawl ends by mistake.
    """

    def is_reached(self, visit: Visit) -> bool: ...


def refusal(filters: Sequence[VisitFilter], gate: VisitGate, visit: Visit) -> str:
    """The first verdict that refuses a visit at a gate; empty if none does. A filter that raises refuses, under its own
    name."""
    for one in filters:
        try:
            verdict = one.judge_visit(gate, visit)
        except Exception as error:
            return f"broken filter {type(one).__name__}: {type(error).__name__}"
        if verdict:
            return verdict
    return ""


def verdicts_on(filters: Sequence[TaskFilter], gate: TaskGate, tasks: Sequence[Task]) -> list[str]:
    """The first verdict on each task; empty if all filters let it pass. A filter that raises refuses, under its own
    name."""
    found = [""] * len(tasks)
    for one in filters:
        try:
            verdicts = one.judge_tasks(gate, tasks)
            if len(verdicts) != len(tasks) or verdicts.count("") != len(tasks):
                found = [first or verdict for first, verdict in zip(found, verdicts, strict=True)]
        except Exception as error:
            return [first or f"broken filter {type(one).__name__}: {type(error).__name__}" for first in found]
    return found


class Predicate(msgspec.Struct, frozen=True, kw_only=True):
    """A word of the filter language (docs/filters.md). Other packages add theirs by entry point `gossamer.predicates`."""

    fact: str
    """The fact that it looks at, one of those of the language, as `url` or `depth`; it can stand where that is known."""
    doc: str
    """One sentence for the reference."""
    test: Callable[[tuple[str, ...]], Callable[[Any], bool]] | None = None
    """From the arguments in parentheses (none: written without them) the test of the fact's value.

    Raises ValueError for arguments that it does not take: the message says which would do.
    """
    number: Callable[[Any], float] | None = None
    """The number in the fact's value, for `NAME <= 3`."""
    text: Callable[[Any], str] | None = None
    """The text in the fact's value, for `NAME matches RE2`."""
    text_of: Callable[[tuple[str, ...]], Callable[[Any], str]] | None = None
    """From the arguments in parentheses what text of the fact's value is meant, for `NAME(VALUE) matches RE2`.

    Raises ValueError as :attr:`test` does.
    """
    number_of: Callable[[tuple[str, ...]], Callable[[Any], float]] | None = None
    """From the arguments in parentheses what number of the fact's value is meant, for `NAME(VALUE, ...) >= 3`.

    Raises ValueError as :attr:`test` does.
    """
    unit: str = ""
    """Unit of the number (`bytes`), if it has one."""
