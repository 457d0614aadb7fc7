"""The tree of an expression: frozen values that remember where in the text they stood."""

from collections.abc import Callable, Iterator

import msgspec


class Test(msgspec.Struct, frozen=True, gc=False):
    """One predicate with its arguments, as a test of one fact's value."""

    __test__ = False  # no test case, whatever pytest makes of its name

    fact: str
    check: Callable[[object], bool]
    text: str
    """As it was written."""
    start: int


class Not(msgspec.Struct, frozen=True):
    """What is true where its operand is not."""

    operand: "Node"
    text: str
    start: int


class And(msgspec.Struct, frozen=True):
    """What is true where all operands are."""

    operands: "tuple[Node, ...]"
    text: str
    start: int


class Or(msgspec.Struct, frozen=True):
    """What is true where any operand is."""

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
