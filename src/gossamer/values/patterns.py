"""Regular expressions that are compiled when they are first used, and those that people give.

Place in the flow: modules of every room name their expressions at the top, where they are read best. A process imports far more of
them than it uses before its first request: to compile them all would take 6 % of the CPU until then.
"""

import re
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, AnyStr, cast


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The same as `re.compile`, which is called at the first use. Functions of the module `re` do not take it."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(lambda: re.compile(text, flags)))


def lazy_automaton(text: bytes) -> re.Pattern[bytes]:
    """The same by RE2, which takes linear time on every page, and reads it byte by byte, whatever it says in them."""
    return cast("re.Pattern[bytes]", _LazyPattern(partial(_automaton, text)))


class LazySpans:
    """An automaton that is asked for positions alone: the library's own interface makes a generator and an object of each match, at
    three times the cost. Functions take bytes, start and end; they give `[(-1, -1)]` where nothing is found."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    @cached_property
    def first(self) -> "Spans":
        """The first match."""
        return spans_of(_automaton(self._text), is_anchored=False)

    @cached_property
    def here(self) -> "Spans":
        """The match that begins at the start."""
        return spans_of(_automaton(self._text), is_anchored=True)


Spans = Callable[[bytes, int, int], list[tuple[int, int]]]


def spans_of(automaton: Any, *, is_anchored: bool) -> Spans:
    """The first match as a span, or the one at the start. The library promises its interface alone, so its inside may be gone."""
    inner = getattr(automaton, "_regexp", None)
    if inner is not None:
        return cast(Spans, partial(inner.Match, inner.Anchor.ANCHOR_START if is_anchored else inner.Anchor.UNANCHORED))
    find = automaton.match if is_anchored else automaton.search
    return lambda text, start, end: [found.span() if (found := find(text, start, end)) else (-1, -1)]


def _automaton(text: bytes) -> Any:
    import re2  # with the first page

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(text, options)


def compiled_re2(pattern: str) -> Any:
    """A pattern of a person's, compiled by RE2. Raises ValueError: it is none; says why."""
    import re2  # few crawls give patterns, and it takes 3 ms

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if error.args else error
        raise ValueError(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)) from None


class _LazyPattern:
    """Each attribute is found once, and then stands in the place of this look-up: later calls cost what those of a pattern do."""

    def __init__(self, compiled: Callable[[], Any]) -> None:
        self._compiled = compiled

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._compiled(), name)
        setattr(self, name, found)
        return found
