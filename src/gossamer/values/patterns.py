"""Regular expressions that are compiled when they are first used.

Place in the flow: modules of every room name their expressions at the top, where they are read best. A process imports far more of
them than it uses before its first request: compiling those took 6 % of the CPU until then.
"""

import re
from typing import Any, AnyStr, cast


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The same as `re.compile`, which is called at the first use. Functions of the module `re` do not take it."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(text, flags))


class _LazyPattern:
    """Each attribute is found once, and then stands in the place of this look-up: later calls cost what those of a pattern do."""

    def __init__(self, text: Any, flags: int) -> None:
        self._arguments = (text, flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._arguments), name)
        setattr(self, name, found)
        return found
