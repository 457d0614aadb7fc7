"""The blocks of an HTML page: runs of text between two tags that are not inline, with their numbers of words.

Place in the flow: :mod:`gossamer.model.text` imports it on the first text, and asks for a page part by part. All tags of a
part are looked at together, with NumPy: one of 24 kB takes 0.15 ms, where a loop over its 700 tags takes three times as long.

Every array has one element for each tag, or one for each byte, and there is a fixed number of steps: linear whatever a page
holds. Elements that hide their content are the one loop; it passes over its tags once for each of their names at most.
"""

import itertools
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

# What a tag does to the text around it. Kinds from _HIDES on are elements whose content is no prose, one kind for each name.
_ENDS, _INLINE, _BARE, _COMMENT, _HIDES = range(5)

#: Every tag that is not named here ends a block.
_INLINE_TAGS = (
    "abbr acronym b bdi bdo big cite data del dfn em font i ins mark nobr q rp rt ruby s small span strike strong sub sup "
    "time u var wbr"
).split()

#: Words in these count as words in links do.
_BARE_TAGS = "a code samp kbd tt".split()

# Elements without prose, to the next end tag of their name: an element that nests in itself shows its end, which does not
# matter, and one that is never closed is kept, which is the safer error. `form` is not here: it holds whole pages.
_HIDDEN_TAGS = (
    "script style textarea title xmp iframe noembed noframes noscript template svg math object video audio canvas pre nav "
    "footer aside button select menu dialog"
).split()

#: Bytes of a name that are looked at, as one number; no name of the lists is longer.
_NAME = 8

# For each byte of such a number: the bit that makes capitals small, and the bit that letters have, and white space, `/`, `>`
# and digits have not.
_SMALL, _LETTER = (int.from_bytes(bytes([bit]) * _NAME, "little") for bit in (0x20, 0x40))

_COMMENT_BEGINS = int.from_bytes(b"!--", "little")

# Bytes by what they say of where words begin: one does where the number rises by two. White space; the end of a tag, and what
# most symbols of Latin-1 begin with, the no-break space first of all; what follows a word or stands for a character (`</a>, `,
# `&nbsp;`), and the rest of characters beyond ASCII; everything else.
_SHAPES = bytes(
    0 if code in b" \t\n\f\r\0" else 1 if code in b">\xc2" else 2 if code in b".,;:)]}!?'\"|&<\xe2" or 0x80 <= code < 0xC0 else 3
    for code in range(256)
)
_RISE = 2

#: Bytes with which a character of a script without spaces begins (Thai, Lao, Burmese, Khmer, kana, Chinese), by pairs; about
#: two of their characters make a word.
_UNSPACED_PAIRS = np.zeros(0x1000, dtype=bool)
for _first, _last in ((0xE0B8, 0xE0BB), (0xE180, 0xE182), (0xE19E, 0xE19F), (0xE381, 0xE383), (0xE390, 0xE9BF), (0xEFA4, 0xEFAB)):
    _UNSPACED_PAIRS[_first - 0xE000 : _last - 0xE000 + 1] = True
_CHARACTERS_A_WORD = 2

#: First byte of quotation marks, dashes and most symbols, which nearly every page has.
_QUOTES = 0xE2


def _as_number(name: str) -> int:
    return int.from_bytes(name.encode().ljust(_NAME, b"\0"), "little")


def _kinds() -> tuple[Any, Any]:
    """Names as numbers and their kinds, each at the remainder of its number: one table look-up a tag."""
    kinds = dict.fromkeys(map(_as_number, _INLINE_TAGS), _INLINE) | dict.fromkeys(map(_as_number, _BARE_TAGS), _BARE)
    kinds |= {_as_number(name): _HIDES + place for place, name in enumerate(_HIDDEN_TAGS)}
    size = next(size for size in itertools.count(len(kinds)) if len({name % size for name in kinds}) == len(kinds))
    names, found = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.uint8)
    for name, kind in kinds.items():
        names[name % size], found[name % size] = name, kind
    return names, found


_NAMES, _KINDS = _kinds()
_LENGTHS = np.array([len(int(name).to_bytes(_NAME, "little").rstrip(b"\0")) for name in _NAMES])

#: Bytes behind which a name has ended; `nav-bar` is no `nav`.
_NAME_ENDS = np.isin(np.arange(256), np.frombuffer(b"\t\n\f\r />", dtype=np.uint8))

#: Between blocks: no text that is parsed may hold it (HTML, 13.2.5.1).
BETWEEN = b"\0"

#: What stands before the first tag belongs to one, too; and one that ends nothing stands behind the last.
_FIRST, _LAST = b"<p>", b"<" + bytes(2 * _NAME)


class _Tags(NamedTuple):
    """The tags of a part, and the text behind each, up to the next tag."""

    places: Any
    kinds: Any
    closing: Any
    starts: Any
    ends: Any


class Part:
    """The blocks of `markup[start:end]` that have words, in order. Links and code end with their block, closed or not."""

    words: list[int]
    bare: list[int]
    """Words of a block that stand in links or code."""
    behind: int
    """Where the next part begins: at the end of the element without prose that this one ends in, if it does."""

    def __init__(self, markup: bytes, start: int, end: int, limit: int) -> None:
        """Everything but the texts.

        Args:
            markup: well-formed UTF-8.
            start: where the part begins.
            end: where it ends, before a tag if it can.
            limit: how far the end of an element without prose is looked for.
        """
        data = _FIRST + markup[start:end] + _LAST
        offset = start - len(_FIRST)
        tags = _tags(data, len(data) - len(_LAST))
        self.behind = end
        for first, last, until in _hidden(tags, markup, offset, limit):
            tags.kinds[first : last + 1] = _ENDS
            tags.starts[first:last] = tags.ends[first:last]
            if last < len(tags.starts):
                tags.starts[last] = max(tags.starts[last], until - offset)
            self.behind = max(self.behind, until)
        words = _words(data, tags)
        heads = ((tags.kinds == _ENDS) | (tags.kinds >= _COMMENT)).nonzero()[0]
        lengths = np.append(heads[1:], len(words)) - heads
        # How many links and elements of code are open behind a tag, less what was open behind the last that ended a block.
        depth = ((tags.kinds == _BARE) * np.where(tags.closing, -1, 1)).cumsum()
        depth -= np.repeat(depth[heads], lengths)
        total = np.add.reduceat(words, heads)
        bare = np.add.reduceat(words * (depth > 0), heads)
        self._some = total.nonzero()[0]
        self.words = total[self._some].tolist()
        self.bare = bare[self._some].tolist()
        self._data, self._tags, self._heads, self._lengths = data, tags, heads, lengths

    def texts(self, keep: list[bool]) -> bytes:
        """The blocks that are kept, without their tags, each with :data:`BETWEEN` before it; references are not resolved."""
        tags, heads = self._tags, self._heads
        kept = self._some[keep]
        starts = tags.starts.copy()
        starts[heads[kept]] -= 1
        wanted = np.zeros(len(heads), dtype=bool)
        wanted[kept] = True
        some = (np.repeat(wanted, self._lengths) & (starts < tags.ends)).nonzero()[0]
        data = bytearray(self._data)
        np.frombuffer(data, dtype=np.uint8)[starts[heads[kept]]] = ord(BETWEEN)
        whole = bytes(data)
        return b"".join([whole[s:e] for s, e in zip(starts[some].tolist(), tags.ends[some].tolist(), strict=True)])


def _tags(data: bytes, length: int) -> _Tags:
    """All tags of a part: what begins with `<` and a letter, `/` and a letter, `!` or `?`, and ends before the next `<`."""
    codes = np.frombuffer(data, dtype=np.uint8)
    marks = ((codes & 0xFD) == ord("<")).nonzero()[0]  # `>` differs in one bit
    opening = (codes[marks] == ord("<")).nonzero()[0]
    places = marks[opening]
    closes = marks[opening[:-1] + 1]
    starts = closes + (codes[closes] == ord(">"))
    places = places[:-1]
    closing = codes[places + 1] == ord("/")
    # At every byte the number that begins there.
    numbers: Any = np.ndarray((length,), "<u8", data, 1, (1,))
    name = numbers[places + closing] | _SMALL
    ended = ~name & _LETTER
    name &= ((ended & (~ended + 1)) >> 6) - 1  # what stands before the first byte that is no letter
    slot = name % len(_NAMES)
    named = (_NAMES[slot] == name) & _NAME_ENDS[codes[places + closing + _LENGTHS[slot] + 1]]
    kinds = _KINDS[slot] * named
    nameless = (name == 0).nonzero()[0]
    if len(nameless):
        what = numbers[places[nameless]]
        kinds[nameless[what & 0xFFFFFF == _COMMENT_BEGINS]] = _COMMENT
        none = nameless[(what & 0xFF != ord("!")) & (what & 0xFF != ord("?"))]
        if len(none):
            places, kinds, closing, starts = (np.delete(column, none) for column in (places, kinds, closing, starts))
    return _Tags(places, kinds, closing, starts, np.append(places[1:], length))


def _words(data: bytes, tags: _Tags) -> Any:
    """How many words the text behind each tag has."""
    shapes = np.frombuffer(data.translate(_SHAPES), dtype=np.int8)
    found = _between((shapes[1:] - shapes[:-1] >= _RISE).nonzero()[0] + 1, tags)
    if data.isascii():
        return found
    codes = np.frombuffer(data, dtype=np.uint8)
    leads = ((codes >= 0xE0) & (codes < 0xF0) & (codes != _QUOTES)).nonzero()[0]
    if not len(leads):
        return found
    unspaced = leads[_UNSPACED_PAIRS[(codes[leads].astype(np.int64) << 8 | codes[leads + 1]) - 0xE000]]
    return found + _between(unspaced, tags) // _CHARACTERS_A_WORD


def _between(places: Any, tags: _Tags) -> Any:
    """How many of `places`, which are sorted, lie in the text behind each tag."""
    return places.searchsorted(tags.ends) - places.searchsorted(tags.starts)


def _hidden(tags: _Tags, markup: bytes, offset: int, limit: int) -> Iterator[tuple[int, int, int]]:
    """Comments and elements without prose: the first tag, the last, and where in the page the prose goes on behind that."""
    some = (tags.kinds >= _COMMENT).nonzero()[0]
    at: list[int] = some.tolist()
    kinds: list[int] = tags.kinds[some].tolist()
    closing: list[bool] = tags.closing[some].tolist()
    unclosed: set[int] = set()
    next_one = 0
    while next_one < len(at):
        one, kind = next_one, kinds[next_one]
        next_one += 1
        if closing[one] or kind in unclosed:
            continue
        place = offset + int(tags.places[at[one]])
        if kind != _COMMENT:
            other = next((other for other in range(next_one, len(at)) if closing[other] and kinds[other] == kind), None)
            if other is not None:
                next_one = other + 1
                yield at[one], at[other], 0
                continue
        until = _end_of(kind, markup, place, limit)
        if until < 0:
            unclosed.add(kind)
            continue
        last = int(tags.ends.searchsorted(until - offset))
        next_one = bisect_right(at, last, next_one)
        yield at[one], last, until


def _end_of(kind: int, markup: bytes, place: int, limit: int) -> int:
    """Where the prose goes on behind what begins at `place`; -1 if nowhere before `limit`."""
    if kind == _COMMENT:
        end = markup.find(b"-->", place + 2, limit)
        return end + 3 if end >= 0 else end
    tag = f"</{_HIDDEN_TAGS[kind - _HIDES]}".encode()
    end = markup.find(tag, place, limit)
    return end if end >= 0 else markup.find(tag.upper(), place, limit)
