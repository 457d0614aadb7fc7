"""Names of tags as numbers, whole columns of which are looked up at once, and what a tag does to the text around it.

Place in the flow: :mod:`gossamer.documents.blocks` finds blocks of a page by it, :mod:`gossamer.documents.main_part` elements.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

# What a tag does to the text around it. Kinds from HIDES on are elements whose content is no prose, one kind for each name.
ENDS, INLINE, CODE, LINK, COMMENT, HIDES = range(6)

#: Every tag that is not named here ends a block.
_INLINE_TAGS = (
    "abbr acronym b bdi bdo big cite data del dfn em font i ins mark nobr q rp rt ruby s small span strike strong sub sup "
    "time u var wbr"
)

#: Words in these count as words in links do, where a part alone is judged.
_CODE_TAGS = "code samp kbd tt"

# Elements without prose, to the next end tag of their name: an element that nests in itself shows its end, which does not
# matter, and one that is never closed is kept, which is the safer error. `form` is not here: it holds whole pages.
_HIDDEN_TAGS = (
    "script style textarea title xmp iframe noembed noframes noscript template svg math object video audio canvas pre nav "
    "footer aside button select menu dialog"
)
HIDDEN_NAMES = tuple(_HIDDEN_TAGS.split())

#: Those of them that hold words for readers all the same: menus, footers, code.
WORDED = frozenset(
    HIDES + HIDDEN_NAMES.index(name) for name in ["pre", "nav", "footer", "aside", "button", "select", "menu", "dialog"]
)

#: The kind of preformatted text, which is code or an author's.
PRE = HIDES + HIDDEN_NAMES.index("pre")

#: Bytes of a name that are looked at, as one number: longer names stand for themselves by these.
NAME_BYTES = 8

#: The first multiplier of a table that is tried, and the bits of a place in it.
_SPREAD, _SLOT_BITS = 0x612E7696A6CECC1B, 11
_HIGH = np.array(64 - _SLOT_BITS, np.uint64)


def as_number(name: str) -> int:
    """A name as tags of a part have it: its first eight letters."""
    return int.from_bytes(name.encode()[:NAME_BYTES].ljust(NAME_BYTES, b"\0"), "little")


class NameTable:
    """A small number for each of some names, which a column of names gets by one look-up each; 0 for all others."""

    def __init__(self, numbers: Mapping[int, int]) -> None:
        names = np.array(list(numbers), np.uint64)
        self._spread = np.array(_SPREAD, np.uint64)
        while len(set(self._slots(names).tolist())) < len(names):  # two names share a place
            self._spread = self._spread + np.uint64(2)
        self._names, self._numbers = np.zeros(1 << _SLOT_BITS, np.uint64), np.zeros(1 << _SLOT_BITS, np.uint8)
        slots = self._slots(names)
        self._names[slots], self._numbers[slots] = names, list(numbers.values())

    def _slots(self, names: Any) -> Any:
        """Places of names: the high bits of a product (D. Knuth, TAOCP 3, section 6.4)."""
        return (np.asarray(names, np.uint64) * self._spread >> _HIGH).view(np.int64)

    def of(self, names: Any) -> Any:
        """The numbers of a column of names."""
        slots = self._slots(names)
        return self._numbers.take(slots) * (self._names.take(slots) == names)


class NameSet:
    """Some names, and which of a column of names are among them."""

    def __init__(self, names: str, *more: int) -> None:
        self._table = NameTable(dict.fromkeys([*map(as_number, names.split()), *more], 1))

    def has(self, names: Any) -> Any:
        return self._table.of(names).view(bool)


#: The kind of each tag; 0 is :data:`ENDS`.
KINDS = NameTable(
    dict.fromkeys(map(as_number, _INLINE_TAGS.split()), INLINE)
    | dict.fromkeys(map(as_number, _CODE_TAGS.split()), CODE)
    | {as_number("a"): LINK}
    | {as_number(name): HIDES + place for place, name in enumerate(HIDDEN_NAMES)}
)

#: Inline tags that no form of a text shows: highlighted code is full of them.
BARE = NameSet("span font big small nobr time wbr bdi bdo")
