"""Text of an expression to tokens, and tokens to a tree of frozen values, by recursive descent.

The tokens carry their places, so that the one error of the language points at one; the parser has one method for each line of the
grammar (see the package). Values that a person gives beside an expression, `keywords($health) >= $least` (docs/mobile.md), are
put among the tokens, so that a list may be longer than an expression, and a given value can never be anything but a value.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from gossamer.engine import sheet
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import nearest
from gossamer.expressions.contract import Predicate
from gossamer.expressions.predicates import compile_pattern
from gossamer.values.patterns import lazy_pattern

# -- tokens

#: Characters of the longest expression: longer ones are lists, which belong into files.
MAX_CHARACTERS = 16_384

#: Characters of it that a message shows around the place.
_SHOWN = 100

Kind = Literal["word", "quoted", "mark", "end"]

#: Stands before the place that an error is about.
ARROW = "-->"


class Token(msgspec.Struct, frozen=True):
    """A word, a quoted text (without its quotes), one of `( ) , < <= = != >= >`, or the end."""

    kind: Kind
    text: str
    start: int
    end: int

    def says(self, *words: str) -> bool:
        """Whether it is one of these key words or marks, in either case."""
        return self.kind in ("word", "mark") and self.text.lower() in words


class ExpressionError(SettingError):
    """An expression cannot be used. Its text is the reason, and the expression with an arrow before the place."""

    def __init__(self, reason: str, source: str, position: int) -> None:
        self.reason = reason
        self.position = position
        flat = "".join(letter if letter.isprintable() else " " for letter in source)
        start = max(0, position - _SHOWN // 2) if len(flat) > _SHOWN else 0
        before, behind = flat[start:position], flat[position : start + _SHOWN]
        back = "..." if start + _SHOWN < len(flat) else ""
        super().__init__(f"{reason}; here: {'...' if start else ''}{before}{ARROW}{behind}{back}")


_MARKS = r"[(),]|<=|>=|!=|[<>=]"
# Inside parentheses a word may hold what compares outside of them: `query(page=3)`.
_OUTSIDE = lazy_pattern(rf"(?P<mark>{_MARKS})|(?P<word>[^\s(),<>=!&|\"']+)")
_INSIDE = lazy_pattern(r"(?P<mark>[(),])|(?P<word>[^\s(),\"']+)")
_SPACE = lazy_pattern(r"\s*")


def scan(source: str) -> list[Token]:
    """The tokens of an expression, ended by one of kind `end`. Raises ExpressionError: it is too long, a quote is not closed,
    or a character cannot stand there."""
    if len(source) > MAX_CHARACTERS:
        raise ExpressionError(
            f"the expression has {len(source)} characters; at most {MAX_CHARACTERS} are allowed", source, 0
        )
    tokens: list[Token] = []
    arguments = False
    place = 0
    while True:
        if (space := _SPACE.match(source, place)) is not None:
            place = space.end()
        if place == len(source):
            tokens.append(Token("end", "", place, place))
            return tokens
        if source[place] in "\"'":
            token = _quoted(source, place)
        else:
            match = (_INSIDE if arguments else _OUTSIDE).match(source, place)
            if match is None:
                meant = {"!": "; write 'not'", "&": "; write 'and'", "|": "; write 'or'"}.get(source[place], "")
                raise ExpressionError(f"{source[place]!r} has no meaning here{meant}", source, place)
            token = Token("mark" if match["mark"] else "word", match[0], place, match.end())
        if token.says("("):
            arguments = bool(tokens) and tokens[-1].kind == "word" and not tokens[-1].says("and", "or", "not")
        elif token.says(")"):
            arguments = False
        tokens.append(token)
        place = token.end


def _quoted(source: str, start: int) -> Token:
    """A text between quotes. A backslash keeps its quote from ending it and otherwise stands for itself, as RE2 wants."""
    quote = source[start]
    parts: list[str] = []
    place = start + 1
    while place < len(source):
        letter = source[place]
        if letter == quote:
            return Token("quoted", "".join(parts), start, place + 1)
        following = source[place + 1 : place + 2]
        if letter == "\\" and following:
            parts.append(following if following == quote else letter + following)
            place += 2
        else:
            parts.append(letter)
            place += 1
    raise ExpressionError(f"a quote {quote} that is not closed", source, start)


# -- given values

#: The sign that a given value begins with.
SIGN = "$"

#: Values that are put into one expression, and their characters together: a list may be named again and again, and each value may
#: become a pattern. As many short ones, or as long ones, take a second to compile and some 50 MB.
MAX_VALUES, MAX_VALUE_CHARACTERS = 5_000, 64_000

Given = Mapping[str, Sequence[str]]


def with_given(tokens: Sequence[Token], given: Given, source: str) -> list[Token]:
    """The tokens of an expression, each `$NAME` replaced by the given values of that name, parted by commas. Raises
    ExpressionError: nothing is given by such a name, or they are too many values."""
    found: list[Token] = []
    values_left, characters_left = MAX_VALUES, MAX_VALUE_CHARACTERS
    for token in tokens:
        if token.kind != "word" or not token.text.startswith(SIGN):
            found.append(token)
            continue
        name = token.text.removeprefix(SIGN)
        values = given.get(name)
        if not values:
            raise ExpressionError(
                f"no value is given under the name {name!r}{nearest(name, given)}", source, token.start
            )
        values_left -= len(values)
        characters_left -= sum(map(len, values))
        if min(values_left, characters_left) < 0:
            most = f"{MAX_VALUES} values or {MAX_VALUE_CHARACTERS} characters"
            raise ExpressionError(f"the lists that it names hold more than {most} together", source, token.start)
        for place, value in enumerate(values):
            if place:
                found.append(Token("mark", ",", token.start, token.end))
            found.append(Token("quoted", value, token.start, token.end))
    return found


# -- the tree


class Test(msgspec.Struct, frozen=True, gc=False):
    """One predicate with its arguments, as a test of one fact's value."""

    __test__ = False  # no test case, whatever pytest makes of its name

    fact: str
    check: Callable[[object], bool]
    text: str
    """As it was written."""
    start: int


class Not(msgspec.Struct, frozen=True):
    """True where its operand is not."""

    operand: "Node"
    text: str
    start: int


class And(msgspec.Struct, frozen=True):
    """True where all operands are."""

    operands: "tuple[Node, ...]"
    text: str
    start: int


class Or(msgspec.Struct, frozen=True):
    """True where any operand is."""

    operands: "tuple[Node, ...]"
    text: str
    start: int


Node = Test | Not | And | Or


def tests(node: Node) -> Iterator[Test]:
    """All tests of a tree, in the order of the text."""
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, Test):
            yield one
        elif isinstance(one, Not):
            stack.append(one.operand)
        else:
            stack.extend(reversed(one.operands))


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
    """The tree of an expression; `given` are values that it may name. Raises ExpressionError: it is not one; points at the
    place and names the nearest known predicate."""
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
            value = self._value()
            if predicate.text is None:
                raise self.fail(f"{name.text!r} is not a text; it has to be {_forms(name.text, predicate)}", name)
            return self._searching(value, predicate.text)
        if self.token.says(*_COMPARISONS):
            sign = self.take()
            if predicate.number is not None:
                return self._counting(predicate.number, sign, predicate.unit)
            if not (sign.says("=", "!=") and predicate.test is not None):
                raise self.fail(f"{name.text!r} is not a number; it has to be {_forms(name.text, predicate)}", sign)
            same = self._built(name, predicate.test, (self._value().text,))
            return same if sign.says("=") else lambda fact: not same(fact)
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

    def _counting(self, number: Callable[[Any], float], sign: Token, unit: str) -> Callable[[object], bool]:
        compare, limit = _COMPARISONS[sign.text], self._number(self._value(), unit)
        return lambda fact: compare(number(fact), limit)

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
            return sheet.parse(value.text, unit)
        except ValueError as error:
            raise self.fail(str(error), value) from None


def _forms(name: str, predicate: Predicate) -> str:
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
