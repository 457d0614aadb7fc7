"""The main part of an HTML page, as text and as markup: the article, or the content of a reference page; and its formulas as TeX.

Place in the flow: :mod:`gossamer.documents.text` takes the text of a page from here, :mod:`gossamer.words` its Markdown. It works
on the blocks of the markup (:mod:`gossamer.documents.blocks`), not on a tree, so pages in trouble have a main part too;
:mod:`main_element` chooses which of them it has. Of an *article*, which consists of paragraphs, lists of links are left out; a
reference page keeps them, since they are its content, and its code is no text.

Before blocks are looked for, :func:`with_formulas` writes each formula once as `\\(x^2\\)`, or `\\[x^2\\]` where it stands on its
own: MathML, and what KaTeX, MathJax and Wikipedia make of theirs. A browser draws MathML, so its text says nothing, but most
systems keep the TeX beside it; a formula without TeX becomes its text. TeX in the text of a page, as `$x^2$`, is text.

Promises: a function of the page alone; linear, whatever the page holds; after :data:`MOST_BLOCKS` blocks the rest is left out, and
:attr:`MainPart.is_cut` says so.
"""

import html
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from gossamer.documents.blocks import Blocks, Part
from gossamer.documents.element_names import PRE, TAG_BYTES, NameSet, as_number, end_of_advertisement
from gossamer.documents.elements import BlockElements
from gossamer.documents.main_element import ARTICLE_SHARE, ARTICLE_WORDS, COLUMNS, HEADING, LISTS, TABLE, MainElement
from gossamer.documents.text import HEAD, part_of

#: Bytes of markup whose tags are looked at together; arrays of one take some 50 times as much.
PART = 256 << 10

#: Blocks of a page that are looked at: 0.2 s. Large pages have 20,000.
MOST_BLOCKS = 300_000

# Blocks that are no elements and have end tags.
_TEXTS = NameSet("p h dt")
#: Elements that count, empty or not.
_PARTS_OF_TABLE = NameSet("td th tr tbody thead tfoot")
_IMAGE, _ITEM = as_number("img"), as_number("li")


class MainPart:
    """The main part of a page."""

    def __init__(self, markup: bytes) -> None:
        """It is found at once."""
        self.markup = markup = with_formulas(markup)
        self.is_cut = False
        """The page has more blocks than are looked at."""
        self.parts: list[Part] = []
        start, blocks = head.end() if (head := HEAD.match(markup)) else 0, 0
        kept: set[int | bytes] = {PRE}
        while start < len(markup) and not self.is_cut:
            part = Part(markup, *part_of(markup, start, PART), kept)
            self.parts.append(part)
            start, blocks = part.behind, blocks + part.number
            self.is_cut = blocks > MOST_BLOCKS and start < len(markup)
        every = [part.blocks() for part in self.parts]
        self._ends = np.cumsum([0, *(len(blocks.words) for blocks in every)]).tolist()
        columns = zip(*every, strict=True) if every else [[np.zeros(0, np.int64)]] * len(Blocks._fields)
        self._blocks = Blocks(*map(np.concatenate, columns))
        self._elements = BlockElements.of(self._blocks.names, self._blocks.closing)
        self._chosen = MainElement(markup, self._blocks, self._elements)
        self.shown = self._chosen.shown
        """Which blocks belong to it, code among them."""
        self.is_article = self._chosen.is_article
        """It consists of paragraphs; otherwise it is a reference page, an index or a front page."""
        self.range = self._chosen.range
        """The blocks of the element that it is, those that are left out among them, and of its title above."""

    def texts(self) -> Iterator[bytes]:
        """The texts of its blocks, part by part, as :meth:`gossamer.documents.blocks.Part.texts` has them."""
        kept = self.shown if self.is_article else self.shown & ~self._chosen.is_code
        for part, (start, end) in zip(self.parts, pairwise(self._ends), strict=True):
            yield part.texts(kept[start:end].nonzero()[0])

    def fragments(self) -> Iterator[bytes]:
        """Its markup, part by part: the blocks that belong to it with their inline tags, and tags of the elements around."""
        if not len(self.shown):
            return
        elements, (first, end) = self._elements, self.range
        names, closing = self._blocks.names, self._blocks.closing
        some = elements.sums(self.shown) > 0
        some |= COLUMNS.has(elements.names) & some[elements.parents]
        some &= ~self._layout()
        tagged = np.zeros(len(self.shown) + 1, dtype=bool)
        tagged[elements.starts[some]] = tagged[elements.ends[some]] = True
        images = (names == _IMAGE) & some[elements.owners]
        tagged[:-1] |= images
        tagged[:first] = tagged[end:] = False
        tagged[end] = end < len(names) and closing[end] and names[end] == names[self._chosen.begins]
        # The converter takes half the time where the end tag of each block is there.
        texts = _TEXTS.has(names).nonzero()[0]
        begin, behind = texts[:-1], texts[1:]
        tagged[behind[self.shown[begin] & ~closing[begin] & closing[behind] & (names[begin] == names[behind])]] = True
        shown = self.shown | (images & tagged[:-1] & (self._blocks.words == 0))  # links end behind them
        for part, (start, end) in zip(self.parts, pairwise(self._ends), strict=True):
            yield part.fragments(shown[start:end], tagged[start:end])

    def _layout(self) -> Any:
        """Elements that only lay out: lists of sections and their items, as in javadoc, by which Markdown would indent all of the
        page; frames of old pages, and code beside the numbers of its lines."""
        elements, names, parents = self._elements, self._elements.names, self._elements.parents
        is_heading, items = self.shown & (self._blocks.names == HEADING), names == _ITEM
        lists = np.zeros(len(names), dtype=bool)
        lists[parents[items & (elements.sums(is_heading) > 0)]] = True
        lists[parents[items & self.shown.take(elements.starts, mode="clip")]] = False  # those with text of their own
        lists &= LISTS.has(names)
        # Tables of which one cell has the text, or most of an article, or that have sections in their cells, or mostly code of
        # several lines, go with all that they are made of.
        tables, cells = names == TABLE, COLUMNS.has(names)
        around = np.where(_PARTS_OF_TABLE.has(names), parents, 0)
        for _ in range(2):
            around = np.where(_PARTS_OF_TABLE.has(names[around]), parents[around], around)
        words = elements.sums(self._blocks.words * self.shown)
        shown = cells & (elements.sums(self.shown) > 0)
        single = tables & (np.bincount(around[shown], minlength=len(names)) == 1)
        # A cell with a heading and something under it is a section.
        headings = elements.sums(self._blocks.words * is_heading)
        sections = around[cells & (headings > 0) & (words > headings)]
        single[sections] = tables[sections]
        frames = around[shown & (words >= ARTICLE_WORDS) & (words >= ARTICLE_SHARE * words[around])]
        single[frames] = tables[frames]
        # A cell of Markdown cannot have code of several lines.
        code, places = np.zeros(len(self.shown), dtype=np.int64), self._blocks.places
        for block in (self._chosen.is_code & self.shown).nonzero()[0].tolist() if tables.any() else ():
            text = self.markup[places[block] : places[block + 1] if block + 1 < len(places) else None]
            code[block] = self._blocks.words[block] * (b"\n" in text.partition(b">")[2].strip())
        single |= tables & (2 * elements.sums(code) > words) & (words > 0)
        return lists | (items & lists[parents]) | single | (_PARTS_OF_TABLE.has(names) & single[around])


# -- formulas as TeX: those of MathML, and those that KaTeX, MathJax and Wikipedia make of theirs
# A browser draws MathML, so its text says nothing; most systems keep the TeX that it was made of beside it. TeX in the text of a
# page, as `$x^2$`, is text. A formula stands once, as `\(x^2\)`, or `\[x^2\]` where it stands on its own; one without TeX is its
# text. Each formula is looked at once, and no further than its own end.

#: A page without formulas has none of these.
_SIGNS = (b"<math", b"math/tex")

# A formula of MathML; and what may be a script with TeX, or an element that a library drew beside them.
_BEGINS = re.compile(rb"<(?:math|script|span)\b[^<>]*+>")
_OF_FORMULAS = re.compile(
    rb"""\A<(?:math\b|script\b.*\btype\s*=\s*["']?math/tex|"""
    rb"""span\b.*\bclass\s*=\s*["']?(?:katex-html|MathJax(?:_Preview|_Display|_SVG|_CHTML)?)\b)""",
    re.DOTALL,
)
_TEX = re.compile(rb"""<annotation\b[^<>]*application/x-tex[^<>]*>([^<]*)</annotation>""")
_SAID = re.compile(rb"""\balttext\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)')""")
_ON_ITS_OWN = re.compile(rb"""\bdisplay\s*=\s*["']?block\b|mode=display""")
_TAG = re.compile(rb"<[^<>]*>")
# Two symbols of MathML of which one stands above, below or under the other, and how TeX writes them.
_SYMBOL = rb"\s*+(<m[ino]\b[^<>]*+>[^<>]*+</m[ino]>)"
_PAIR = re.compile(rb"<(msup|msub|mfrac)\b[^<>]*+>" + 2 * _SYMBOL + rb"\s*+</\1>")
_BETWEEN = {b"msup": b"^", b"msub": b"_", b"mfrac": b"/"}
# The wrapper that Wikipedia puts around each formula.
_STYLE = re.compile(rb"\A\{\\displaystyle\s+(.*)\}\Z", re.DOTALL)
# A picture of the formula beside it.
_PICTURE = re.compile(rb"\s*+(?:</span>)?\s*+<(?:img|meta)\b[^<>]*\bmwe-math-fallback-image[^<>]*>")


def with_formulas(markup: bytes) -> bytes:
    """The same page with TeX for its formulas; the page itself where it has none."""
    if not any(map(markup.__contains__, _SIGNS)):
        return markup
    pieces: list[bytes] = []
    at, is_closed = 0, True
    for begin in _BEGINS.finditer(markup):
        tag = begin[0][:TAG_BYTES]
        if begin.start() < at or not _OF_FORMULAS.search(tag):
            continue
        if tag.startswith(b"<span"):
            end = -1 if not is_closed else end_of_advertisement(markup, begin.start(), b"span")
            made, behind = (b"", markup.find(b">", end) + 1) if end >= 0 else (begin[0], begin.end())
            is_closed = end >= 0  # each search costs up to 64 KB
        else:
            closing = b"</math>" if tag.startswith(b"<math") else b"</script>"
            end = markup.find(closing, begin.end())
            if end < 0:  # the page is cut, or very odd: nothing behind is looked at
                break
            inner, behind = markup[begin.end() : end], end + len(closing)
            made = _formula(tag, inner)
            if picture := _PICTURE.match(markup, behind):
                made, behind = made + b"</span>" * picture[0].startswith(b"</span>"), picture.end()
        pieces += markup[at : begin.start()], made
        at = behind
    return b"".join([*pieces, markup[at:]])


def _formula(tag: bytes, inner: bytes) -> bytes:
    if tag.startswith(b"<script"):
        tex = html.escape(inner.decode("utf-8", "replace"), quote=False).encode()
    elif found := _TEX.search(inner):
        tex = found[1]
    elif said := _SAID.search(tag):
        tex = said[1] or said[2] or b""
    else:
        shown = _PAIR.sub(lambda pair: pair[2] + _BETWEEN[pair[1]] + pair[3], inner.partition(b"<annotation")[0])
        text = b"".join(_TAG.sub(b"", shown).split())
        return b" " + text + b" " if text else b""
    tex = tex.strip()
    if style := _STYLE.match(tex):
        tex = style[1].strip()
    if not tex:
        return b""
    return b"\\[" + tex + b"\\]" if _ON_ITS_OWN.search(tag) else b"\\(" + tex + b"\\)"
