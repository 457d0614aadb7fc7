"""Text of an expression to tokens; and the one error of the language, which points at the place."""

import re
from typing import Literal

import msgspec

from gossamer.flow.errors import SettingError

#: Characters of the longest expression: longer ones are lists, which belong into files.
MAX_CHARACTERS = 16_384

#: Characters of it that a message shows around the place.
_SHOWN = 100

Kind = Literal["word", "quoted", "mark", "end"]


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
    """An expression cannot be used. Its text is the reason, the expression, and a caret under the place."""

    def __init__(self, reason: str, source: str, position: int) -> None:
        self.reason = reason
        self.position = position
        line, place = _around(source, position)
        super().__init__(f"{reason}\n  {line}\n  {' ' * place}^")


def _around(source: str, position: int) -> tuple[str, int]:
    """One line of the expression with the place in it, and where it is there."""
    flat = "".join(letter if letter.isprintable() else " " for letter in source)
    start = max(0, position - _SHOWN // 2) if len(flat) > _SHOWN else 0
    shown = flat[start : start + _SHOWN]
    front = "..." if start else ""
    back = "..." if start + _SHOWN < len(flat) else ""
    return f"{front}{shown}{back}", len(front) + position - start


_MARKS = r"[(),]|<=|>=|!=|[<>=]"
# Inside parentheses a word may hold what compares outside of them: `query(page=3)`.
_OUTSIDE = re.compile(rf"(?P<mark>{_MARKS})|(?P<word>[^\s(),<>=!&|\"']+)")
_INSIDE = re.compile(r"(?P<mark>[(),])|(?P<word>[^\s(),\"']+)")
_SPACE = re.compile(r"\s*")


def scan(source: str) -> list[Token]:
    """The tokens of an expression, ended by one of kind `end`.

    Raises:
        ExpressionError: it is too long, a quote is not closed, or a character cannot stand there.
    """
    if len(source) > MAX_CHARACTERS:
        raise ExpressionError(
            f"the expression has {len(source)} characters; at most {MAX_CHARACTERS} are allowed", source, 0
        )
    tokens: list[Token] = []
    arguments = False
    place = 0
    while True:
        place = _skip(source, place)
        if place == len(source):
            tokens.append(Token("end", "", place, place))
            return tokens
        if source[place] in "\"'":
            token = _quoted(source, place)
        else:
            match = (_INSIDE if arguments else _OUTSIDE).match(source, place)
            if match is None:
                raise ExpressionError(f"{source[place]!r} has no meaning here{_meant(source, place)}", source, place)
            token = Token("mark" if match["mark"] else "word", match[0], place, match.end())
        if token.says("("):
            arguments = bool(tokens) and tokens[-1].kind == "word" and not tokens[-1].says("and", "or", "not")
        elif token.says(")"):
            arguments = False
        tokens.append(token)
        place = token.end


def _skip(source: str, place: int) -> int:
    match = _SPACE.match(source, place)
    return match.end() if match is not None else place


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


def _meant(source: str, place: int) -> str:
    words = {"!": "not", "&": "and", "|": "or"}
    return f"; write {words[source[place]]!r}" if source[place] in words else ""
