"""The filter stage, and filters by pattern, domain constraint, `nofollow` and the user's own expressions.

Place in the flow: links ─► **filter** ─► URL-seen. Links that any filter refuses do not go on; the stage owns the gates
`expand` and `follow` (row M5). The frontier may ask filters of domains for tasks, too, seeds among them. Filters by where a link
leads are in :mod:`~gossamer.parsing.scope`.

Expressions (`--filter`) are asked at every gate: by this stage at `follow` and `expand`, by the stages that own the other gates at
theirs; and by the commit for the page at which the crawl ends (`--until`). The language is in :mod:`gossamer.expressions`; for
users in docs/filters.md.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated

import msgspec

from gossamer.engine.component import Filter
from gossamer.engine.ends import In, Out, UsesMany
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import NoSettings, Sheet, nearest, setting
from gossamer.engine.unit import Provider
from gossamer.expressions.compiling import Expression
from gossamer.expressions.contract import GATES, Gate, TaskGate, UrlFilter, VisitFilter, VisitGate, refusal
from gossamer.expressions.predicates import DomainConstraint, any_of
from gossamer.expressions.syntax import ExpressionError
from gossamer.values.hosts import Remembered
from gossamer.values.settings import Exclude, FollowNofollow, Include, Never, Only, Until
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import Link, Visit

# Judging is pure: the stage does it, and so does code that judges away from a crawl's graph.


def judged(
    visit: Visit, gates: Sequence[VisitFilter], filters: Sequence[UrlFilter], count: Callable[[str], None]
) -> Visit:
    """The visit with the links that every filter lets pass; the others are refused, and counted by rule in `rejected`.

    Args:
        visit: of a page whose links are resolved.
        gates: asked of the whole page at `expand`; a page that is refused keeps no link.
        filters: asked of its links, in order: later ones see only what earlier ones let pass.
        count: told `broken:CLASS` of a filter that raises, or that gives too few verdicts.
    """
    links: Sequence[Link] = visit.links
    if not links:
        return visit
    rejected = dict(visit.rejected)
    if gates and (whole := refusal(gates, "expand", visit)):
        rejected[whole] = rejected.get(whole, 0) + len(links)
        return msgspec.structs.replace(visit, links=(), refused=visit.links, rejected=rejected)
    refused: list[Link] = []
    for rule in filters:
        try:
            verdicts = rule.judge(links, visit.task)
            error = "" if len(verdicts) == len(links) else f"{len(verdicts)} verdicts for {len(links)} links"
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        if error:  # a filter that breaks never fails open: it refuses, and is counted
            count(f"broken:{type(rule).__name__}")
            verdicts = [f"broken filter {type(rule).__name__}: {error:.200}"] * len(links)
        if verdicts.count("") == len(links):
            continue
        kept: list[Link] = []
        for link, verdict in zip(links, verdicts, strict=True):
            if verdict:
                rejected[verdict] = rejected.get(verdict, 0) + 1
                refused.append(link)
            else:
                kept.append(link)
        links = kept
    return msgspec.structs.replace(visit, links=tuple(links), refused=tuple(refused), rejected=rejected)


class Filtering(Filter[NoSettings]):
    """Keeps the links that every filter of the gate `follow` lets pass, and counts the others by the rule that refused
    them.

    A page that the gate `expand` refuses keeps no link.
    """

    inbox: In[Visit]
    outbox: Out[Visit]
    filters: UsesMany[UrlFilter]
    gates: UsesMany[VisitFilter]

    def filter(self, visit: Visit) -> tuple[Visit]:
        """Judge a page's links, filter by filter: later ones see only what earlier ones let pass."""
        return (judged(visit, self.gates.get("expand", ()), self.filters.get("follow", ()), self.metrics.count),)


# Links that their own page does not vouch for (`rel=nofollow`, `ugc`, `sponsored`, or a whole page's `nofollow`) are found, counted
# and written to the link table all the same; another page that vouches for one lets it in. Decision 13 says why they are not
# followed by default.


class NofollowSheet(Sheet, frozen=True):
    follow: FollowNofollow = False


class NofollowFilter(Provider[NofollowSheet]):
    """Refuses links that say `nofollow`. Contract: `UrlFilter`."""

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """`nofollow` for each link that is refused."""
        if self.sheet.follow:
            return [""] * len(links)
        return ["nofollow" if link.nofollow else "" for link in links]


# `--include` and `--exclude`. Patterns are RE2: linear, whatever they are (fault 63).

#: URLs whose verdict is remembered: a match costs 2 us by way of Python, and the pages of a site repeat their links.
REMEMBERED_URLS = 32_768


class PatternSheet(Sheet, frozen=True):
    include: Include = ()
    exclude: Exclude = ()


class PatternFilter(Provider[PatternSheet]):
    """Refuses links that match a pattern of `exclude` or, if `include` has patterns, match none of them. Contract:
    `UrlFilter`.

    Raises:
        SettingError: a pattern is too long, or RE2 refuses it.
    """

    def read_sheet(self) -> None:
        include, exclude = any_of("include", self.sheet.include), any_of("exclude", self.sheet.exclude)

        def verdict(url: str) -> str:
            if exclude is not None and exclude.search(url) is not None:
                return "exclude"
            return "include" if include is not None and include.search(url) is None else ""

        self.says_nothing = include is None and exclude is None
        self._verdict = lru_cache(REMEMBERED_URLS)(verdict)

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """`exclude` or `include` for each link that is refused."""
        verdict = self._verdict
        return [verdict(link.url) for link in links]


# `--only` and `--never`: domain constraints (Hunyadi 2007, section 5.3.2), as :mod:`gossamer.expressions.predicates` reads them.

#: Hosts whose verdict is remembered at once.
REMEMBERED_HOSTS = 65_536


class ConstraintSheet(Sheet, frozen=True):
    only: Only = ()
    never: Never = ()


class ConstraintFilter(Provider[ConstraintSheet]):
    """Refuses hosts by domain constraint (`never`, `only`). Contracts: `UrlFilter`, `TaskFilter`.

    Raises:
        SettingError: a constraint cannot be read.
    """

    def read_sheet(self) -> None:
        try:
            only = [DomainConstraint(one) for one in self.sheet.only]
            never = [DomainConstraint(one) for one in self.sheet.never]
        except ValueError as error:
            raise SettingError(str(error)) from None
        self._only, self._never, self.says_nothing = only, never, not (only or never)
        self._of_host = Remembered(self._judge, REMEMBERED_HOSTS)

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """`never` or `only` for each link that is refused."""
        return [self._of_host[host_of(link.url)] for link in links]

    def judge_tasks(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[str]:
        return [self._of_host[task.host] for task in tasks]

    def _judge(self, host: str) -> str:
        if any(one.holds(host) for one in self._never):
            return "never"
        return "only" if self._only and not any(one.holds(host) for one in self._only) else ""


# `--filter`, `--until`, and the settings of this unit, at every gate.

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
    until: Until = ""


class ExpressionFilter(Provider[ExpressionSheet]):
    """Refuses whatever makes an expression false, and names the part of it that decided, as `filter: PART`. Contracts:
    all of `expressions.contract`.

    Raises:
        SettingError: an expression cannot be read, or asks for what is not known at its gate.
    """

    def read_sheet(self) -> None:
        gates: dict[Gate, list[Expression]] = {gate: self._of(gate) for gate in GATES}
        try:
            # At `store` the most is known of an answer.
            goal = Expression(self.sheet.until, "store") if self.sheet.until.strip() else None
        except ExpressionError as error:
            raise SettingError(f"filter `until`: {error}") from None
        self._gates, self._goal = gates, goal
        self.says_nothing = goal is None and not any(gates.values())

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
        expressions = self._gates[gate]
        return _first(expressions, visit) if expressions else ""

    def is_reached(self, visit: Visit) -> bool:
        """Whether the crawl ends with this answer. Contract: `expressions.contract.Goal`."""
        return self._goal is not None and not self._goal.judge(visit)


def _first(expressions: Sequence[Expression], thing: Task | Visit) -> str:
    return next((verdict for one in expressions if (verdict := one.judge(thing))), "")


def by_gate(filters: Sequence[str]) -> dict[str, Expressions]:
    """Expressions of the command line by gate: `EXPR`, or `GATE: EXPR`. Raises SettingError: there is no such gate."""
    found: dict[str, Expressions] = {}
    for text in filters:
        gate, expression = split_gate(text)
        found[gate] = (*found.get(gate, ()), expression)
    return found


def split_gate(text: str) -> tuple[Gate, str]:
    """The gate in front of an expression, `follow` where none is named; no predicate is followed by a colon. Raises
    SettingError: there is no such gate."""
    name, colon, rest = text.partition(":")
    word = name.strip().lower()
    if not colon or not word.isalpha():
        return USUAL, text
    for gate in GATES:
        if gate == word:
            return gate, rest.strip()
    raise SettingError(f"there is no gate {name.strip()!r} in filter {text!r}{nearest(word, GATES)}")
