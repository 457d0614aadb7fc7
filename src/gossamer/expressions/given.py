"""Values that an expression names and somebody else gives: `keywords($health) >= $least` (docs/mobile.md).

Place in the flow: :mod:`gossamer.expressions.parsing` puts them among the tokens, so that a list may be longer than an expression,
and so that no value can be anything but a value, whatever it holds.
"""

from collections.abc import Mapping, Sequence

from gossamer.expressions.scanning import ExpressionError, Token
from gossamer.flow.sheet import nearest

#: What a given value begins with.
SIGN = "$"

#: Values that are put into one expression, and their characters together: a list may be named again and again, and each value may
#: become a pattern. As many short ones, or as long ones, take a second to compile and some 50 MB.
MAX_VALUES, MAX_VALUE_CHARACTERS = 5_000, 64_000

Given = Mapping[str, Sequence[str]]


def with_given(tokens: Sequence[Token], given: Given, source: str) -> list[Token]:
    """The tokens of an expression, each `$NAME` replaced by the values of that name, parted by commas.

    Args:
        tokens: of :func:`gossamer.expressions.scanning.scan`.
        given: name -> values.
        source: the expression, for the message.

    Raises:
        ExpressionError: nothing is given by such a name, or they are too many values.
    """
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
