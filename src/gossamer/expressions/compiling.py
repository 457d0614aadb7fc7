"""A tree to closures. Facts of a whole page are put in before its links are looked at, and leave the expression."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from gossamer.expressions.contract import Gate, Predicate
from gossamer.expressions.facts import READS, gates_of
from gossamer.expressions.predicates import itself, vocabulary
from gossamer.expressions.syntax import And, ExpressionError, Given, Node, Not, Or, Test, parse, tests
from gossamer.values.task import Task, keeps_depth
from gossamer.values.visit import Link

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

    def __repr__(self) -> str:
        return f"<Expression {self.gate}: {self.source}>"

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
