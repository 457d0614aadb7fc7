"""The blocks of an HTML page: runs of text between two tags that are not inline, with their numbers of words.

Place in the flow: :mod:`gossamer.documents.text` imports it on the first text, and asks for a page part by part. All tags of a
part are looked at together, with NumPy: half the time of a loop over them.

Linear, whatever a page holds: every array has one element for each byte or tag, and there is a fixed number of steps. Elements
without prose are the one loop; it passes over their tags once for each name at most.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from gossamer.documents.element_names import (
    BARE,
    CODE,
    COMMENT,
    ENDS,
    HIDDEN_NAMES,
    HIDES,
    INLINE,
    KINDS,
    LINK,
    NAME_BYTES,
    advertisements,
    as_number,
    end_of_advertisement,
)
from gossamer.documents.markup import end_of_declaration
from gossamer.values.patterns import lazy_automaton

#: Among the kinds that are kept like any other: elements that call themselves advertisements.
ADVERTISEMENTS = b""

# For each byte of such a number: the bit that makes capitals small, and the bit that letters have, and white space, `/`, `>`
# and digits have not.
# As arrays, which NumPy takes at once: numbers of Python are read anew with every operation.
_SMALL, _LETTER = (np.array(int.from_bytes(bytes([bit]) * NAME_BYTES, "little"), np.uint64) for bit in (0x20, 0x40))
_LETTER_BIT, _ONE = np.array(6, np.uint64), np.array(1, np.uint64)

# A button right within a heading opens what stands under it, and its text is that of the heading.
_BUTTON, _HEADING = HIDES + HIDDEN_NAMES.index("button"), as_number("h")

#: Elements that nothing but an end tag of their own ends, or else the page (HTML, 13.2.5.4): a script in which a page was cut.
_RAW = {HIDES + HIDDEN_NAMES.index(name): re.compile(rb"(?i)</" + name.encode()) for name in ("script", "style")}

_COMMENT_BEGINS = int.from_bytes(b"!--", "little")

#: By how much bytes rise (:func:`_shape`) where a word begins.
_RISE = 2

#: First bytes of characters that are told from letters by the second byte only: most symbols of Latin-1; quotation marks and
#: dashes, which nearly every page has.
_LATIN_SYMBOL, _PUNCTUATION = 0xC2, 0xE2

#: The no-break space, as pages write it: menus are full of it. Spaces stand for it, as many as it has bytes. With each the byte
#: that is looked for before it, at once: a search for more than one takes 7 to 15 us for a part.
_NO_BREAK = ((b"\xa0", b"\xc2\xa0"), (b"&", b"&nbsp;"))

#: White space of ASCII that is not a space.
_SPACES = (b"\n", b"\t", b"\r", b"\f", b"\v")

#: First two bytes of characters of scripts without spaces: Thai and Lao, Burmese, Khmer, kana, Chinese.
_UNSPACED = ((0xE0B8, 0xE0BB), (0xE180, 0xE182), (0xE19E, 0xE19F), (0xE381, 0xE383), (0xE390, 0xE9BF), (0xEFA4, 0xEFAB))
#: With what their characters begin: nearly every page does without.
_UNSPACED_LEADS = tuple(
    bytes([lead]) for lead in sorted({pair >> 8 for first, last in _UNSPACED for pair in (*range(first, last), last)})
)
#: So many of them make about one word.
_CHARACTERS_A_WORD = 2

#: Bytes behind which a name has ended: `nav-bar` is no `nav`.
_NAME_ENDS = b"\t\n\f\r />"

#: Between blocks: no parser lets it into a text (HTML, 13.2.5.1).
BETWEEN = b"\0"

#: Spaces for what begins and ends tags.
_NO_MARKS = bytes.maketrans(b"<>", b"  ")
# Finds such a value. Most pages have none, and the search takes a third of the time of a look at all tags.
_MARK_IN_VALUE = lazy_automaton(rb"""="[^"<>]*[<>]|='[^'<>]*[<>]""")
#: So many values of one tag are looked at in which a tag seems to end: each takes another look at the whole part.
_MOST_IN_A_TAG = 8

#: Text before the first tag belongs to one, too; and a tag that ends nothing stands behind the last.
_FIRST, _LAST = b"<p>", b"<" + bytes(2 * NAME_BYTES)


def _shape(code: int) -> int:
    """A byte as evidence of the beginnings of words.

    White space is 0. The end of a tag is 1: a word may follow, but not a comma. A byte that goes on with a word, or stands for
    another character (`&nbsp;`), is 2. Everything else is 3.
    """
    if code in b" \t\n\f\r\0":
        return 0
    if code == ord(">"):
        return 1
    return 2 if code in b".,;:)]}!?'\"|&<" or 0x80 <= code < 0xC0 or code in (_LATIN_SYMBOL, _PUNCTUATION) else 3


#: Whether a tag begins where such a byte stands behind `<`; NUL does behind the last one.
_BEGINS = np.array([(chr(code).isalpha() and code < 0x80) or code in b"/!?\0" for code in range(256)])


_SHAPES = bytes(map(_shape, range(256)))
# Words consist of these: bytes that begin one, and those of all characters beyond ASCII.
_SPOKEN = bytes(_shape(code) == 3 or code >= 0x80 for code in range(256))
# Whether a character of such a script begins with two bytes, by these less 0xE000.
_UNSPACED_PAIRS = np.zeros(0x1000, dtype=bool)
for _pair, _last in _UNSPACED:
    _UNSPACED_PAIRS[_pair - 0xE000 : _last - 0xE000 + 1] = True
# The steps of an opening and a closing tag in the number of open elements.
_STEPS = np.array([1, -1])


class _Tags(NamedTuple):
    """The tags of a part, and the text behind each, up to the next tag."""

    places: Any
    names: Any
    kinds: Any
    closing: Any
    starts: Any
    ends: Any


class Blocks(NamedTuple):
    """The blocks of a part in columns."""

    names: Any
    """Of the tags before them (:func:`~gossamer.documents.element_names.as_number`); 0 where they are hidden."""
    closing: Any
    places: Any
    words: Any
    linked: Any


class Part:
    """The blocks of `markup[start:end]`, in order. Links and code end with their block, closed or not."""

    behind: int
    """Where the next part begins: at the end of the element without prose that this one ends in, if it does."""

    def __init__(self, markup: bytes, start: int, end: int, unclosed: set[int | bytes]) -> None:
        """Everything but the words and the texts. It ends before a tag if it can. `unclosed`: kinds of elements that are kept like
        any other; those that are looked for in vain are added to it, for the parts behind this one, those of advertisements by
        their names."""
        data = markup[start:end]
        for byte, space in _NO_BREAK:
            if byte in data:
                data = data.replace(space, b" " * len(space))
        data = _FIRST + data + _LAST
        offset = start - len(_FIRST)
        tags = _tags(data, len(data) - len(_LAST))
        self.behind = end
        hidden = list(_hidden(tags, data, markup, offset, unclosed))
        for _ in range(_MOST_IN_A_TAG):
            if (plain := _without_marks_in_values(data, tags, hidden)) is None:
                break
            data, tags = plain, _tags(plain, len(data) - len(_LAST))
            hidden = list(_hidden(tags, data, markup, offset, unclosed))
        if ADVERTISEMENTS not in unclosed:
            hidden += list(_advertised(tags, data, markup, offset, hidden, unclosed))
        hides = np.zeros(len(tags.kinds), dtype=bool)
        if hidden:
            self.behind = max(end, *(until for _, _, until in hidden))
            # The text is taken out of all of them at once, since pages have many.
            first, last, until = np.array(hidden).T
            edges = np.zeros(len(tags.kinds) + 2, dtype=np.int64)
            np.add.at(edges, first, 1)
            np.subtract.at(edges, last, 1)  # some end together
            hides = edges.cumsum()[:-2].astype(bool)
            tags.starts[hides] = tags.ends[hides]
            tags.kinds[hides] = INLINE
            tags.kinds[first] = ENDS
            within = last < len(tags.kinds)
            last = last[within]
            tags.kinds[last] = ENDS
            tags.starts[last] = np.maximum(tags.starts[last], until[within] - offset)
            hides[last] = True
        heads = ((tags.kinds == ENDS) | (tags.kinds >= COMMENT)).nonzero()[0]
        lengths = np.empty_like(heads)
        np.subtract(heads[1:], heads[:-1], lengths[:-1])
        lengths[-1] = len(tags.kinds) - heads[-1]
        self._data, self._tags, self._heads, self._lengths = data, tags, heads, lengths
        self._hides, self._markup, self._offset = hides, markup, offset
        self.number = len(heads)
        """Of its blocks."""

    def prose(self, kept: Callable[[Sequence[int], Sequence[int]], list[bool]]) -> bytes:
        """The texts of some of the blocks that have words. `kept`: which of them, by their words, and by those of these that
        stand in links or code."""
        total, bare = self._counts((self._tags.kinds == CODE) | (self._tags.kinds == LINK))
        some = total.nonzero()[0]
        return self.texts(some[kept(total[some].tolist(), bare[some].tolist())])

    def _counts(self, inside: Any) -> tuple[Any, Any]:
        """How many words each block has, and how many of them stand in elements of some kinds. `inside`: whether each tag is of
        these kinds."""
        tags, heads = self._tags, self._heads
        shapes = np.frombuffer(self._data.translate(_SHAPES), dtype=np.int8)
        begins = np.zeros(len(self._data), dtype=bool)
        np.greater_equal(shapes[1:] - shapes[:-1], _RISE, begins[1:])
        words = _between(begins, tags)
        if max(map(self._data.find, _UNSPACED_LEADS)) >= 0:
            codes = np.frombuffer(self._data, dtype=np.uint8)
            leads = ((codes >= 0xE0) & (codes < 0xF0) & (codes != _PUNCTUATION)).nonzero()[0]
            unspaced = leads[_UNSPACED_PAIRS[(codes[leads].astype(np.int64) << 8 | codes[leads + 1]) - 0xE000]]
            begins = np.zeros(len(self._data), dtype=bool)
            begins[unspaced] = True
            words += _between(begins, tags) // _CHARACTERS_A_WORD
        # How many of them are open behind a tag, less what was open behind the last that ended a block.
        depth = (inside * _STEPS.take(tags.closing)).cumsum()
        depth -= np.repeat(depth[heads], self._lengths)
        if depth.min() < 0:  # an end tag without a start: that of a link in which the part before ended, say
            # Each block lies deeper than all before it, so the lowest depth so far is that in the block; it is 0 at its first tag.
            steps = np.repeat(np.arange(len(heads)), self._lengths) * (2 * np.abs(depth).max() + 1)
            depth -= np.minimum.accumulate(depth - steps) + steps
        return np.add.reduceat(words, heads), np.add.reduceat(words * (depth > 0), heads)

    def blocks(self) -> Blocks:
        """All blocks, empty ones among them: for each the tag before it, its words, and those of them in links."""
        tags, heads = self._tags, self._heads
        words, linked = self._counts(tags.kinds == LINK)
        places = tags.places[heads] + self._offset
        places[0] = max(places[0], 0)
        names = np.where(self._hides, 0, tags.names)[heads]
        return Blocks(names, tags.closing[heads], places, words, linked)

    def fragments(self, shown: Any, tagged: Any) -> bytes:
        """Markup: of some blocks all, without elements that hold no prose and tags that say nothing; of others the tag before
        them. `shown`: of each block whether all of it is wanted; `tagged`: of each block whether the tag before it is."""
        tags, shift = self._tags, self._offset
        every, tag_alone = np.repeat(shown, self._lengths), np.zeros(len(tags.kinds), dtype=bool)
        tag_alone[self._heads[tagged & ~shown]] = True
        starts = np.where(self._hides | BARE.has(tags.names), tags.starts, tags.places)
        ends = np.where(every, tags.ends, np.where(tag_alone & ~self._hides, tags.starts, starts))
        starts[0] = tags.starts[0]  # the part's own first tag stands in no markup
        some = starts < ends
        starts, ends = starts[some] + shift, ends[some] + shift
        apart = starts[1:] != ends[:-1]
        edge = np.ones(min(1, len(starts)), dtype=bool)
        pieces = zip(starts[np.append(edge, apart)].tolist(), ends[np.append(apart, edge)].tolist(), strict=True)
        return b"".join([self._markup[start:end] for start, end in pieces])

    def all_words(self) -> bytes:
        """The texts of all blocks in which a letter, a digit or another sign of a word stands."""
        tags = self._tags
        edges = np.empty(2 * len(tags.starts), dtype=np.int64)
        edges[::2], edges[1::2] = tags.starts, tags.ends
        spoken = np.frombuffer(self._data.translate(_SPOKEN), dtype=bool)
        # Where nothing stands between two tags, what is asked for is the byte there.
        told = np.logical_or.reduceat(spoken, edges)[::2] & (tags.starts < tags.ends)
        return self.texts(np.logical_or.reduceat(told, self._heads).nonzero()[0])

    def texts(self, kept: Any) -> bytes:
        """Blocks without their tags, each with :data:`BETWEEN` before it.

        References are not resolved; a run of white space of ASCII is one space.
        """
        tags, heads = self._tags, self._heads[kept]
        starts = tags.starts.copy()
        starts[heads] -= 1
        wanted = np.zeros(len(self._heads), dtype=bool)
        wanted[kept] = True
        some = (np.repeat(wanted, self._lengths) & (starts < tags.ends)).nonzero()[0]
        codes = np.frombuffer(bytearray(self._data), dtype=np.uint8)
        codes[starts[heads]] = ord(BETWEEN)
        # By turns, bytes that are left out and bytes of a text.
        edges = np.zeros(2 * len(some) + 1, dtype=np.int64)
        edges[1::2], edges[2::2] = starts[some], tags.ends[some]
        are_text = np.zeros(2 * len(some), dtype=bool)
        are_text[1::2] = True
        text: bytes = codes[: edges[-1]][np.repeat(are_text, edges[1:] - edges[:-1])].tobytes()
        for space in _SPACES:
            if space in text:
                text = text.replace(space, b" ")
        codes = np.frombuffer(text, dtype=np.uint8)
        spaces = codes == ord(" ")
        again = spaces[1:] & spaces[:-1]
        return text[:1] + codes[1:][~again].tobytes() if again.any() else text


def _tags(data: bytes, length: int) -> _Tags:
    """All tags of a part: what begins with `<` and a letter, `/` and a letter, `!` or `?`, and ends before the next `<`."""
    codes = np.frombuffer(data, dtype=np.uint8)
    marks = ((codes & 0xFD) == ord("<")).nonzero()[0]  # `>` differs in one bit
    opens = codes.take(marks) == ord("<")
    # A `<` that begins no tag ends none either: pages write `alt="<-"`.
    useless = opens & ~_BEGINS.take(codes.take(marks + 1, mode="clip"))
    if useless.any():
        marks, opens = marks[~useless], opens[~useless]
    opening = opens.nonzero()[0]
    places = marks.take(opening)
    closes = marks.take(opening[:-1] + 1)
    starts = closes + (codes.take(closes) == ord(">"))
    ends, places = places[1:], places[:-1]
    closing = codes.take(places + 1) == ord("/")
    # At every byte the number that begins there.
    numbers: Any = np.ndarray((length,), "<u8", data, 1, (1,))
    name = numbers[places + closing] | _SMALL
    # One bit for each byte that is no letter; below the lowest of them stands the name.
    ended = (~name & _LETTER) >> _LETTER_BIT
    name &= (ended - _ONE) & ~ended
    kinds = KINDS.of(name)
    nameless = (name == 0).nonzero()[0]
    if len(nameless):
        what = numbers[places[nameless]]
        comments = nameless[what & 0xFFFFFF == _COMMENT_BEGINS]
        # One that the next `>` ends does no more than end a block.
        behind = starts[comments]
        is_over = (codes[behind - 3] == ord("-")) & (codes[behind - 2] == ord("-")) & (codes[behind - 1] == ord(">"))
        kinds[comments[~is_over]] = COMMENT
        none = nameless[(what & 0xFF != ord("!")) & (what & 0xFF != ord("?"))]
        if len(none):
            places, name, kinds, closing, starts = (
                np.delete(column, none) for column in (places, name, kinds, closing, starts)
            )
            ends = np.append(places[1:], length)
    return _Tags(places, name, kinds, closing, starts, ends)


def _without_marks_in_values(data: bytes, tags: _Tags, hidden: list[tuple[int, int, int]]) -> bytes | None:
    """The same with spaces for `<` and `>` in values of attributes, as in `<a title="a > b">`, which seem to end tags; None where
    there are none. Such a tag seems to have an odd number of quotation marks. A value behind that one in the same tag is found
    in another call."""
    if not _MARK_IN_VALUE.search(data):
        return None
    codes = np.frombuffer(data, dtype=np.uint8)
    named = (tags.names != 0) & ~tags.closing
    plain: bytearray | None = None
    for quote in (b'"', b"'"):
        if b"=" + quote not in data:
            continue
        marks = (codes == ord(quote)).nonzero()[0]
        last = marks.searchsorted(tags.starts)
        odd = (named & ((last - marks.searchsorted(tags.places)) & 1 > 0)).nonzero()[0]
        behind = 0
        for one, begin in zip(odd.tolist(), marks.take(last[odd] - 1).tolist(), strict=True):
            before = bisect_right(hidden, one, key=itemgetter(0)) - 1
            if begin < behind or (before >= 0 and one <= hidden[before][1]) or data[begin - 1] != ord("="):
                continue
            end = data.find(quote, begin + 1)
            if end < 0:
                break
            behind = end
            plain = plain or bytearray(data)
            plain[begin:end] = data[begin:end].translate(_NO_MARKS)
    return None if plain is None else bytes(plain)


def _between(marks: Any, tags: _Tags) -> Any:
    """How many bytes of the text behind each tag are marked."""
    before = marks.astype(np.int32).cumsum(dtype=np.int32)  # in half the time of numbers of 64 bits
    return before.take(tags.ends - 1) - before.take(tags.starts - 1)


def _hidden(
    tags: _Tags, data: bytes, markup: bytes, offset: int, unclosed: set[int | bytes]
) -> Iterator[tuple[int, int, int]]:
    """Comments and elements without prose: the first tag, the last, and where in the page the prose goes on behind that."""
    some = (tags.kinds >= COMMENT).nonzero()[0]
    at: list[int] = some.tolist()
    kinds: list[int] = tags.kinds[some].tolist()
    closing: list[bool] = tags.closing[some].tolist()
    places: list[int] = tags.places[some].tolist()
    next_one = 0
    while next_one < len(at):
        one, kind = next_one, kinds[next_one]
        next_one += 1
        if closing[one] or kind in unclosed:
            continue
        if kind != COMMENT:
            if kind == _BUTTON and tags.names[at[one] - 1] == _HEADING and not tags.closing[at[one] - 1]:
                continue
            if data[places[one] + 1 + len(HIDDEN_NAMES[kind - HIDES])] not in _NAME_ENDS:
                continue
            other = next_one
            while other < len(at) and not (closing[other] and kinds[other] == kind):
                other += 1
            if other < len(at):
                next_one = other + 1
                yield at[one], at[other], 0
                continue
        until = _end_of(kind, markup, offset + places[one])
        if until < 0:
            unclosed.add(kind)
            continue
        last = int(tags.ends.searchsorted(until - offset))
        next_one = bisect_right(at, last, next_one)
        yield at[one], last, until


def _advertised(
    tags: _Tags, data: bytes, markup: bytes, offset: int, hidden: list[tuple[int, int, int]], unclosed: set[int | bytes]
) -> Iterator[tuple[int, int, int]]:
    """Advertisements, as :func:`_hidden` has other elements; those within what is hidden already are none."""
    behind = 0
    for start, name in advertisements(data):
        if start < behind or name in unclosed:
            continue
        at = int(tags.places.searchsorted(start))
        before = bisect_right(hidden, at, key=itemgetter(0)) - 1
        if (before >= 0 and at <= hidden[before][1]) or at == len(tags.places) or tags.places[at] != start:
            continue
        until = end_of_advertisement(markup, offset + start, name)
        if until < 0:
            unclosed.add(name)
            continue
        behind = until - offset
        yield at, int(tags.ends.searchsorted(behind)), until


def _end_of(kind: int, markup: bytes, place: int) -> int:
    """The place where prose goes on behind the thing at `place`; -1 if nowhere."""
    if kind == COMMENT:
        end = end_of_declaration(markup, place)
        return end if end < len(markup) or markup.endswith((b"-->", b"--!>")) else -1
    tag = f"</{HIDDEN_NAMES[kind - HIDES]}".encode()
    end = markup.find(tag, place)
    if end < 0:
        end = markup.find(tag.upper(), place)
    if end < 0 and kind in _RAW:
        other = _RAW[kind].search(markup, place)
        return len(markup) if other is None else other.start()
    return end
