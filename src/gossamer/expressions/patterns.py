"""RE2 patterns and globs, as filters and expressions write them: linear, whatever they are (fault 63)."""

from collections.abc import Sequence
from typing import Any

import re2

from gossamer.flow.errors import SettingError

#: Bytes of the longest pattern (fault 63): longer ones are lists, which belong into a filter of their own.
MAX_PATTERN_BYTES = 1024


def compile_pattern(pattern: str) -> Any:
    """A compiled RE2 pattern, which searches in linear time.

    Raises:
        ValueError: it is too long, or RE2 refuses it; in one line.
    """
    if len(pattern.encode("utf-8", "replace")) > MAX_PATTERN_BYTES:
        raise ValueError(f"{pattern[:40]!r}... is too long; at most {MAX_PATTERN_BYTES} bytes a pattern")
    try:
        return re2.compile(pattern, _quiet())
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if error.args else error
        shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise ValueError(f"{pattern!r} is not an RE2 pattern: {shown}") from None


def _quiet() -> Any:
    """Options of a compilation that prints nothing on standard error."""
    options = re2.Options()
    options.log_errors = False
    return options


def glob(pattern: str, *, segments: bool) -> str:
    """A glob as an RE2 pattern for a whole text: `*` any run (in paths: without `/`), `**` any run, `?` one character."""
    found = []
    place = 0
    while place < len(pattern):
        letter = pattern[place]
        if pattern.startswith("**", place):
            found.append(".*")
            place += 1
        elif letter == "*":
            found.append("[^/]*" if segments else ".*")
        elif letter == "?":
            found.append("[^/]" if segments else ".")
        else:
            found.append(letter if letter.isalnum() or ord(letter) > 127 else f"\\{letter}")
        place += 1
    return f"(?s)^{''.join(found)}$"


def any_of(name: str, patterns: Sequence[str]) -> Any:
    """One pattern that matches where any of them does; None without any. Each must be whole by itself."""
    if not patterns:
        return None
    try:
        for pattern in patterns:
            compile_pattern(pattern)
    except ValueError as error:
        raise SettingError(f"{name}: {error}") from None
    try:
        return re2.compile("|".join(f"(?:{pattern})" for pattern in patterns), _quiet())
    except re2.error:
        raise SettingError(f"{name}: {len(patterns)} patterns are too much for one expression; use fewer") from None
