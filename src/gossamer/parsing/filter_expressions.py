"""Filter by the user's own expressions, at every gate: `--filter`, and the settings of this unit.

Place in the flow: one provider that the filter stage asks at `follow` and `expand`, and the stages that own the other gates
at theirs; the commit asks it for the page at which the crawl ends (`--until`). The language is in
:mod:`gossamer.expressions`; for users in docs/filters.md.
"""

from collections.abc import Sequence
from typing import Annotated

from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Sheet, nearest, setting
from gossamer.engine.unit import Provider
from gossamer.expressions.compiling import Expression
from gossamer.expressions.contract import GATES, Gate, TaskGate, VisitGate
from gossamer.expressions.syntax import ExpressionError
from gossamer.values.task import Task
from gossamer.values.visit import Link, Visit

#: The gate of an expression that names none.
USUAL: Gate = "follow"

Expressions = tuple[str, ...]


class ExpressionSheet(Sheet, frozen=True):
    """Settings of :class:`ExpressionFilter`: at each gate, expressions that all have to hold."""

    schedule: Annotated[Expressions, setting("Queue a task only if this is true of it.")] = ()
    fetch: Annotated[Expressions, setting("Hand a task to a fetcher only if this is true of it.")] = ()
    body: Annotated[Expressions, setting("Fetch the body of an answer only if this is true of its head.")] = ()
    parse: Annotated[Expressions, setting("Parse a document only if this is true of it.")] = ()
    expand: Annotated[Expressions, setting("Follow links of a document only if this is true of it.")] = ()
    follow: Annotated[Expressions, setting("Follow a link only if this is true of it.")] = ()
    store: Annotated[Expressions, setting("Archive the body of a document only if this is true of it.")] = ()
    until: Annotated[str, setting("End the crawl at the first answer that this expression is true of.")] = ""


class ExpressionFilter(Provider[ExpressionSheet]):
    """Refuses whatever makes an expression false, and names the part of it that decided, as `filter: PART`. Contracts:
    all of `contracts.filtering`.

    Raises:
        SettingError: an expression cannot be read, or asks for what is not known at its gate.
    """

    def __init__(self, sheet: ExpressionSheet | None = None) -> None:
        super().__init__(sheet)
        self._compile()

    def changed(self, before: ExpressionSheet) -> None:
        """Take the new expressions, or keep the old ones if a new one is bad."""
        self._compile()

    def _compile(self) -> None:
        gates: dict[Gate, list[Expression]] = {gate: self._of(gate) for gate in GATES}
        try:
            # At `store` the most is known of an answer.
            goal = Expression(self.sheet.until, "store") if self.sheet.until.strip() else None
        except ExpressionError as error:
            raise SettingError(f"filter `until`: {error}") from None
        self._gates, self._goal = gates, goal

    def _of(self, gate: Gate) -> list[Expression]:
        try:
            return [Expression(source, gate) for source in getattr(self.sheet, gate)]
        except ExpressionError as error:
            raise SettingError(f"filter at gate {gate!r}: {error}") from None

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """`filter: PART` for each link that is refused."""
        expressions = self._gates["follow"]
        if not expressions:
            return [""] * len(links)
        verdicts = expressions[0].judge_links(links, source)
        for expression in expressions[1:]:
            others = expression.judge_links(links, source)
            verdicts = [one or other for one, other in zip(verdicts, others, strict=True)]
        return verdicts

    def judge_tasks(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[str]:
        """`filter: PART` for each task that is refused."""
        expressions = self._gates[gate]
        if not expressions:
            return [""] * len(tasks)
        return [_first(expressions, task) for task in tasks]

    def judge_visit(self, gate: VisitGate, visit: Visit) -> str:
        """`filter: PART` for a document that is refused."""
        return _first(self._gates[gate], visit)

    def is_reached(self, visit: Visit) -> bool:
        """Whether the crawl ends with this answer. Contract: `contracts.filtering.Goal`."""
        return self._goal is not None and not self._goal.judge(visit)


def _first(expressions: Sequence[Expression], thing: Task | Visit) -> str:
    return next((verdict for one in expressions if (verdict := one.judge(thing))), "")


def by_gate(filters: Sequence[str]) -> dict[str, Expressions]:
    """Expressions of the command line by gate: `EXPR`, or `GATE: EXPR`.

    Raises:
        SettingError: there is no such gate.
    """
    found: dict[str, Expressions] = {}
    for text in filters:
        gate, expression = split_gate(text)
        found[gate] = (*found.get(gate, ()), expression)
    return found


def split_gate(text: str) -> tuple[Gate, str]:
    """The gate in front of an expression, `follow` where none is named; no predicate is followed by a colon.

    Raises:
        SettingError: there is no such gate.
    """
    name, colon, rest = text.partition(":")
    word = name.strip().lower()
    if not colon or not word.isalpha():
        return USUAL, text
    for gate in GATES:
        if gate == word:
            return gate, rest.strip()
    raise SettingError(f"there is no gate {name.strip()!r} in filter {text!r}{nearest(word, GATES)}")
