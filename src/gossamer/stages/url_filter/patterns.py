"""Filter by the user's own patterns: `--include` and `--exclude`.

Place in the flow: links ─► **filter** ─► URL-seen. Patterns are RE2: linear, whatever they are (fault 63).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any

import re2

from gossamer.flow.errors import SettingError
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.task import Task
from gossamer.model.visit import Link

#: Bytes of the longest pattern (fault 63): longer ones are lists, which belong into a filter of their own.
MAX_PATTERN_BYTES = 1024

#: URLs whose verdict is remembered: a match costs 2 us by way of Python, and the pages of a site repeat their links.
REMEMBERED_URLS = 32_768


class PatternSheet(Sheet, frozen=True):
    """Settings of :class:`PatternFilter`."""

    include: Annotated[
        tuple[str, ...], setting("If there are any, let pass only URLs in which one of these RE2 patterns is found.")
    ] = ()
    exclude: Annotated[
        tuple[str, ...], setting("Refuse URLs in which one of these RE2 patterns is found; this wins over `include`.")
    ] = ()


class PatternFilter(Provider[PatternSheet]):
    """Refuses links by pattern: `exclude`, or `include` where none of those matches. Contract: `filtering.UrlFilter`.

    Raises:
        SettingError: a pattern is too long, or RE2 refuses it.
    """

    def __init__(self, sheet: PatternSheet | None = None) -> None:
        super().__init__(sheet)
        self._compile()

    def changed(self, before: PatternSheet) -> None:
        """Take the new patterns, or keep the old ones if a new one is bad."""
        self._compile()

    def _compile(self) -> None:
        include, exclude = any_of("include", self.sheet.include), any_of("exclude", self.sheet.exclude)

        def verdict(url: str) -> str:
            if exclude is not None and exclude.search(url) is not None:
                return "exclude"
            return "include" if include is not None and include.search(url) is None else ""

        self._idle = include is None and exclude is None
        self._verdict = lru_cache(REMEMBERED_URLS)(verdict)

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """`exclude` or `include` for each link that is refused."""
        if self._idle:
            return [""] * len(links)
        verdict = self._verdict
        return [verdict(link.url) for link in links]


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
        raise ValueError(f"{pattern!r} is no RE2 pattern: {shown}") from None


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
