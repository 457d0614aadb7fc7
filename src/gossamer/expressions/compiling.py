"""A tree to closures, and the facts that these read: properties of a visit, and text, keywords and types of a whole page.

Place in the flow: stages ask an :class:`Expression` at every gate. The depth of links is put in before these are looked at, and
leaves the expression. No stage puts the facts of a whole page into the visit: they are made of the body when the first
expression asks at `expand` or `store`, and kept for the page that was asked about last, since its gates are asked one after the
other. A processor that has just read the page hands over its document with :func:`keep_document`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any

from gossamer.documents.document import Document
from gossamer.documents.terms import keywords
from gossamer.documents.text import all_text
from gossamer.expressions.contract import GATES, Gate, Predicate
from gossamer.expressions.predicates import itself, vocabulary
from gossamer.expressions.syntax import And, ExpressionError, Given, Node, Not, Or, Test, parse, tests
from gossamer.values.errors import ReadApart
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.task import Task, keeps_depth
from gossamer.values.visit import Link, Visit

#: The facts that are made here.
OF_PAGES = ("text", "keywords", "types")

#: The property that tells the type of a thing.
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


class PageFacts:
    """The facts of one page, each made when it is asked for."""

    def __init__(self, visit: Visit, document: Document | None = None) -> None:
        """No fact is made yet. `document` is the one of this visit, where it was read already; its text is its prose."""
        self.visit = visit
        self._document = document or Document(visit, holds_up=True)

    @property
    def _is_html(self) -> bool:
        return self.visit.media_type in HTML_TYPES

    @cached_property
    def text(self) -> str:
        """Every word that a reader sees, a block on each line; of plain text the text; empty for all else. Nothing is cut."""
        if self._is_html:
            return all_text(self._document.markup, len(self._document.markup))
        if not self.visit.media_type.startswith("text/"):
            return ""
        return self._document.markup.decode("utf-8", "replace")

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        """The weightiest first (:mod:`gossamer.documents.terms`): of the title and of the prose without menus."""
        prose = self._document.text if self._is_html else self.text
        return keywords(self.visit.title, prose)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The types of the things that the page describes in RDFa, JSON-LD and microdata, as IRIs."""
        triples = self.visit.triples
        if not triples and self._is_html:
            from gossamer.rdf.page import structured_data  # few crawls ask

            # A page that is too dear to be read here has triples if they are asked for, and says nothing otherwise.
            with suppress(ReadApart):
                triples = tuple(structured_data(self._document, rules=()).triples)
        return tuple({triple[2]: None for triple in triples if triple[1] == RDF_TYPE})


class _Last:
    """The page that was asked about last. Another gets its place whole, so that threads never mix two pages."""

    def __init__(self) -> None:
        self._facts: PageFacts | None = None

    def of(self, visit: Visit) -> PageFacts:
        """The facts of a page. Later stages hand on copies of a visit, with the same answer."""
        facts = self._facts
        if facts is None or facts.visit.response is not visit.response or facts.visit.title != visit.title:
            facts = self._facts = PageFacts(visit)
        return facts

    def keep(self, visit: Visit, document: Document) -> None:
        """Make the facts of this page, when they are asked for, of a document that was read already: it is decoded once."""
        self._facts = PageFacts(visit, document)


_last = _Last()
facts_of = _last.of
keep_document = _last.keep

# -- facts of each kind of thing that a gate judges

Read = Callable[[Any], Any]

_OF_LINK: Mapping[str, Read] = {
    "url": lambda link: link.url,
    "relation": lambda link: link.relation,
    "anchor": lambda link: link.anchor,
    "nofollow": lambda link: link.nofollow,
}

_OF_TASK: Mapping[str, Read] = {
    "url": lambda task: task.url,
    "depth": lambda task: task.depth,
    "relation": lambda task: task.relation,
    "label": lambda task: task.request.label if task.request is not None else "",
}

_OF_HEAD: Mapping[str, Read] = {
    "url": lambda visit: visit.task.url,
    "depth": lambda visit: visit.task.depth,
    "relation": lambda visit: visit.task.relation,
    "label": lambda visit: visit.task.request.label if visit.task.request is not None else "",
    "status": lambda visit: visit.response.status,
    "mime": lambda visit: visit.media_type,
}

_OF_ANSWER: Mapping[str, Read] = {
    **_OF_HEAD,
    "outcome": lambda visit: str(visit.response.outcome),
    "size": lambda visit: len(visit.response.body),
}

_OF_DOCUMENT: Mapping[str, Read] = {
    **_OF_ANSWER,
    "title": lambda visit: visit.title,
    "language": lambda visit: visit.language,
    "headers": lambda visit: visit.response.headers,
    # A filter may have taken some away; the page has them all.
    "links": lambda visit: len(visit.links) + len(visit.refused),
    "text": lambda visit: facts_of(visit).text,
    "keywords": lambda visit: facts_of(visit).keywords,
    "types": lambda visit: facts_of(visit).types,
}

#: Gate -> fact -> how it is read from what is judged there: a `Link` at `follow`, a `Task` or a `Visit` elsewhere. The depth
#: of links is a matter of their page: the judge of links puts it into the expression first.
READS: Mapping[Gate, Mapping[str, Read]] = {
    "schedule": _OF_TASK,
    "fetch": _OF_TASK,
    "body": _OF_HEAD,
    "parse": _OF_ANSWER,
    "expand": _OF_DOCUMENT,
    "follow": {**_OF_LINK, "depth": lambda _: 0},
    "store": _OF_DOCUMENT,
}


def gates_of(fact: str) -> list[str]:
    """The gates where a fact is known."""
    return [gate for gate in GATES if fact in READS[gate]]


# -- expressions

#: URLs whose verdict is remembered: a pattern costs 2 us by way of Python, and the pages of a site repeat their links.
REMEMBERED_URLS = 32_768

#: Depths for which a page's expression is kept ready; a crawl that is deeper than that makes it anew now and then.
REMEMBERED_DEPTHS = 64

#: Characters of an expression's part in the name of its rule.
_SHOWN = 80

Judge = Callable[[Any], str]


class Expression:
    """An expression that was compiled for one gate. Judging it never raises, unless a predicate of the user's own does. Raises
    ExpressionError: it cannot be read, names a fact that is not known at the gate, or a value that is not given."""

    def __init__(
        self, source: str, gate: Gate, words: Mapping[str, Predicate] | None = None, given: Given | None = None
    ) -> None:
        self.source = source
        self.gate = gate
        self.tree = parse(source, vocabulary() if words is None else words, given)
        for test in tests(self.tree):
            if test.fact not in READS[gate]:
                elsewhere = ", ".join(gates_of(test.fact))
                where = f"; it is at: {elsewhere}" if elsewhere else ""
                raise ExpressionError(f"{test.fact!r} is not known at gate {gate!r}{where}", source, test.start)
        self._asks_depth = any(test.fact == "depth" for test in tests(self.tree))
        self._of_page = lru_cache(REMEMBERED_DEPTHS)(self._bound)

    @property
    def facts(self) -> frozenset[str]:
        """The facts that it looks at; the others need not be prepared."""
        return frozenset(test.fact for test in tests(self.tree))

    def judge_links(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """A verdict for each link of a page (gate `follow`)."""
        if not self._asks_depth:
            return self._judged(links, 0)
        verdicts = self._judged(links, source.depth + 1)
        for place, link in enumerate(links):
            if keeps_depth(link.relation):
                verdicts[place] = self._judged([link], source.depth)[0]
        return verdicts

    def _judged(self, links: Sequence[Link], depth: int) -> list[str]:
        judge, wants_url = self._of_page(depth)
        return [judge(link.url) for link in links] if wants_url else [judge(link) for link in links]

    def judge(self, thing: Any) -> str:
        """The verdict on one task or visit (the other gates)."""
        return self._of_page(None)[0](thing)

    def _bound(self, depth: int | None) -> tuple[Judge, bool]:
        """The judge of a page's links, or of tasks and visits (None); and whether it wants nothing but the URL."""
        known = {} if depth is None else {"depth": depth}
        conjuncts = self.tree.operands if isinstance(self.tree, And) else (self.tree,)
        rules = [(fold(one, known), f"filter: {one.text[:_SHOWN]}") for one in conjuncts]
        open_facts = {test.fact for one, _ in rules if not isinstance(one, bool) for test in tests(one)}
        if depth is not None and open_facts <= {"url"}:
            return lru_cache(REMEMBERED_URLS)(_judge(rules, {"url": itself})), True
        return _judge(rules, READS[self.gate]), False


def fold(node: Node, known: Mapping[str, Any]) -> Node | bool:
    """The rest of an expression when some facts are known: a smaller expression, or its value."""
    if isinstance(node, Test):
        return node.check(known[node.fact]) if node.fact in known else node
    if isinstance(node, Not):
        inside = fold(node.operand, known)
        return not inside if isinstance(inside, bool) else Not(inside, node.text, node.start)
    decides = isinstance(node, Or)
    left = [one for one in (fold(operand, known) for operand in node.operands) if one is not (not decides)]
    if decides in left:
        return decides
    rest = tuple(one for one in left if not isinstance(one, bool))
    if not rest:
        return not decides
    return type(node)(rest, node.text, node.start)


def _judge(rules: Sequence[tuple[Node | bool, str]], reads: Mapping[str, Callable[[Any], Any]]) -> Judge:
    """The name of the first rule that does not hold."""
    checks = [(_closure(node, reads), rule) for node, rule in rules if node is not True]

    def judge(thing: Any) -> str:
        for check, rule in checks:
            if not check(thing):
                return rule
        return ""

    return judge


def _closure(node: Node | bool, reads: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], bool]:
    if isinstance(node, bool):
        return lambda _: node
    if isinstance(node, Test):
        check, read = node.check, reads[node.fact]
        return check if read is itself else lambda thing: check(read(thing))
    if isinstance(node, Not):
        inside = _closure(node.operand, reads)
        return lambda thing: not inside(thing)
    parts = [_closure(operand, reads) for operand in node.operands]
    if isinstance(node, And):
        return lambda thing: all(part(thing) for part in parts)
    return lambda thing: any(part(thing) for part in parts)


def explain(node: Node, values: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether an expression holds for these facts, and the smallest part of it that decides so. Of an `and` that fails it is the
    first operand that does, of an `or` that holds the first that does; where all operands decide together, it is the whole."""
    if isinstance(node, Test):
        return node.check(values[node.fact]), node.text
    if isinstance(node, Not):
        holds, part = explain(node.operand, values)
        if part == node.operand.text:
            return not holds, node.text
        return not holds, f"not ({part})" if " " in part else f"not {part}"
    decides = isinstance(node, Or)
    for operand in node.operands:
        holds, part = explain(operand, values)
        if holds is decides:
            return holds, part
    return not decides, node.text
