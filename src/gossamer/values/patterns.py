"""Regular expressions that are compiled when they are first used.

Place in the flow: modules of every room name their expressions at the top, where they are read best. A process imports far more of
them than it uses before its first request: to compile them all would take 6 % of the CPU until then.
"""

import re
from collections.abc import Callable
from typing import Any, AnyStr, cast


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The same as `re.compile`, which is called at the first use. Functions of the module `re` do not take it."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(lambda: re.compile(text, flags)))


def lazy_automaton(text: bytes) -> re.Pattern[bytes]:
    """The same by RE2, which takes linear time on every page, and reads it byte by byte, whatever it says in them."""

    def compiled() -> Any:
        import re2  # with the first page

        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        return re2.compile(text, options)

    return cast("re.Pattern[bytes]", _LazyPattern(compiled))


class _LazyPattern:
    """Each attribute is found once, and then stands in the place of this look-up: later calls cost what those of a pattern do."""

    def __init__(self, compiled: Callable[[], Any]) -> None:
        self._compiled = compiled

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._compiled(), name)
        setattr(self, name, found)
        return found
