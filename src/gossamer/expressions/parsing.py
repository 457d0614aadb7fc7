"""Tokens to a tree, by recursive descent: one method for each line of the grammar (see the package)."""

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gossamer.contracts.filtering import Predicate
from gossamer.expressions.given import Given, with_given
from gossamer.expressions.patterns import compile_pattern
from gossamer.expressions.scanning import ExpressionError, Token, scan
from gossamer.expressions.syntax import And, Node, Not, Or, Test
from gossamer.flow import quantities
from gossamer.flow.sheet import nearest

#: Parentheses and `not` within each other: deeper ones would exhaust the stack of the parser.
MAX_NESTING = 50

Built = TypeVar("Built")

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


def parse(source: str, vocabulary: Mapping[str, Predicate], given: Given | None = None) -> Node:
    """The tree of an expression; `given` are the values that it may name, where somebody gives any.

    Raises:
        ExpressionError: it is not one; points at the place and names the nearest known predicate.
    """
    return _Parser(source, vocabulary, given).whole()


class _Parser:
    def __init__(self, source: str, vocabulary: Mapping[str, Predicate], given: Given | None) -> None:
        self.source = source
        self.vocabulary = vocabulary
        tokens = scan(source)
        self.tokens = tokens if given is None else with_given(tokens, given, source)
        self.place = 0
        self.nesting = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def take(self) -> Token:
        token = self.token
        self.place += 1
        return token

    def fail(self, reason: str, token: Token | None = None) -> ExpressionError:
        return ExpressionError(reason, self.source, (token or self.token).start)

    def since(self, start: int) -> str:
        return " ".join(self.source[start : self.tokens[self.place - 1].end].split())

    def whole(self) -> Node:
        node = self.expression()
        if self.token.kind != "end":
            raise self.fail(f"expected 'and', 'or' or the end, not {self.token.text!r}")
        return node

    def expression(self) -> Node:
        return self._joined("or", self.conjunction, Or)

    def conjunction(self) -> Node:
        return self._joined("and", self.negation, And)

    def _joined(self, word: str, operand: Callable[[], Node], joined: type[And] | type[Or]) -> Node:
        start = self.token.start
        operands = [operand()]
        while self.token.says(word):
            self.take()
            operands.append(operand())
        if len(operands) == 1:
            return operands[0]
        return joined(tuple(operands), self.since(start), start)

    def negation(self) -> Node:
        token = self.token
        if not token.says("not", "("):
            return self.test()
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise self.fail(f"more than {MAX_NESTING} parentheses and 'not' within each other")
        self.take()
        if token.says("not"):
            operand = self.negation()
            node: Node = Not(operand, self.since(token.start), token.start)
        else:
            node = self.expression()
            if not self.token.says(")"):
                raise self.fail("expected ')'" if self.token.kind == "end" else "expected 'and', 'or' or ')'")
            self.take()
        self.nesting -= 1
        return node

    def test(self) -> Test:
        name = self.take()
        if name.kind != "word" or name.says("and", "or"):
            self.place -= 1
            found = "the end" if name.kind == "end" else repr(name.text)
            raise self.fail(f"expected a predicate, 'not' or '(', not {found}")
        predicate = self.vocabulary.get(name.text.lower())
        if predicate is None:
            raise self.fail(f"there is no predicate {name.text!r}{nearest(name.text.lower(), self.vocabulary)}", name)
        check = self._check(name, predicate)
        return Test(predicate.fact, check, self.since(name.start), name.start)

    def _check(self, name: Token, predicate: Predicate) -> Callable[[object], bool]:
        if self.token.says("matches"):
            self.take()
            return self._matching(name, predicate)
        if self.token.says(*_COMPARISONS):
            return self._comparing(name, predicate, self.take())
        if self.token.says("("):
            return self._calling(name, predicate)
        if predicate.test is None:
            raise self.fail(f"{name.text!r} has to be {_forms(name.text, predicate)}", name)
        return self._built(name, predicate.test, ())

    def _calling(self, name: Token, predicate: Predicate) -> Callable[[object], bool]:
        self.take()
        values = [self._value()]
        while self.token.says(","):
            self.take()
            values.append(self._value())
        if not self.token.says(")"):
            raise self.fail("expected ',' or ')'")
        self.take()
        texts = tuple(value.text for value in values)
        if self.token.says("matches") and predicate.text_of is not None:
            self.take()
            text = self._built(name, predicate.text_of, texts)
            return self._searching(self._value(), text)
        if self.token.says(*_COMPARISONS) and predicate.number_of is not None:
            sign = self.take()
            return self._counting(self._built(name, predicate.number_of, texts), sign, "")
        if predicate.test is not None:
            return self._built(name, predicate.test, texts)
        if predicate.number is None:
            raise self.fail(f"{name.text!r} has to be {_forms(name.text, predicate)}", name)
        number = predicate.number
        wanted = frozenset(self._number(value, predicate.unit) for value in values)
        return lambda fact: number(fact) in wanted

    def _comparing(self, name: Token, predicate: Predicate, sign: Token) -> Callable[[object], bool]:
        if predicate.number is not None:
            return self._counting(predicate.number, sign, predicate.unit)
        if not (sign.says("=", "!=") and predicate.test is not None):
            raise self.fail(f"{name.text!r} is not a number; it has to be {_forms(name.text, predicate)}", sign)
        same = self._built(name, predicate.test, (self._value().text,))
        return same if sign.says("=") else lambda fact: not same(fact)

    def _counting(self, number: Callable[[Any], float], sign: Token, unit: str) -> Callable[[object], bool]:
        compare, limit = _COMPARISONS[sign.text], self._number(self._value(), unit)
        return lambda fact: compare(number(fact), limit)

    def _matching(self, name: Token, predicate: Predicate) -> Callable[[object], bool]:
        value = self._value()
        if predicate.text is None:
            raise self.fail(f"{name.text!r} is not a text; it has to be {_forms(name.text, predicate)}", name)
        return self._searching(value, predicate.text)

    def _searching(self, pattern: Token, text: Callable[[Any], str]) -> Callable[[object], bool]:
        try:
            search = compile_pattern(pattern.text).search
        except ValueError as error:
            raise self.fail(str(error), pattern) from None
        return lambda fact: search(text(fact)) is not None

    def _built(
        self, name: Token, build: Callable[[tuple[str, ...]], Callable[[Any], Built]], values: tuple[str, ...]
    ) -> Callable[[Any], Built]:
        try:
            return build(values)
        except ValueError as error:
            raise self.fail(f"{name.text!r}: {error}", name) from None

    def _value(self) -> Token:
        token = self.take()
        if token.kind not in ("word", "quoted"):
            self.place -= 1
            found = "the end" if token.kind == "end" else repr(token.text)
            raise self.fail(f"expected a value, not {found}; quote texts that hold spaces, commas or parentheses")
        return token

    def _number(self, value: Token, unit: str) -> float:
        try:
            return quantities.parse(value.text, unit)
        except ValueError as error:
            raise self.fail(str(error), value) from None


def _forms(name: str, predicate: Predicate) -> str:
    """How a predicate may be written, for messages."""
    forms = []
    if predicate.test is not None or predicate.number is not None:
        forms.append(f"{name}(VALUE, ...)")
    if predicate.number is not None:
        forms.append(f"{name} <= NUMBER")
    if predicate.text is not None:
        forms.append(f"{name} matches RE2")
    if predicate.text_of is not None:
        forms.append(f"{name}(VALUE) matches RE2")
    if predicate.number_of is not None:
        forms.append(f"{name}(VALUE, ...) >= NUMBER")
    return " or ".join(f"'{form}'" for form in forms)
