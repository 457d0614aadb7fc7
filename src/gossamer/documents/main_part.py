"""The main part of an HTML page, as text and as markup: the article, or the content of a reference page.

Place in the flow: :mod:`gossamer.documents.text` takes the text of a page from here, :mod:`gossamer.words` its Markdown. It works
on the blocks of the markup (:mod:`gossamer.documents.blocks`), not on a tree, so pages in trouble have a main part too;
:mod:`main_element` chooses which of them it has. Of an *article*, which consists of paragraphs, lists of links are left out; a
reference page keeps them, since they are its content, and its code is no text.

Promises: a function of the page alone; linear, whatever the page holds; after :data:`MOST_BLOCKS` blocks the rest is left out, and
:attr:`MainPart.is_cut` says so.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from gossamer.documents.block_elements import BlockElements
from gossamer.documents.blocks import Blocks, Part
from gossamer.documents.element_names import PRE, NameSet, as_number
from gossamer.documents.formulas import with_formulas
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
        self.parts = list(self._parts())
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

    def _parts(self) -> Iterator[Part]:
        start, blocks = head.end() if (head := HEAD.match(self.markup)) else 0, 0
        kept: set[int | bytes] = {PRE}
        while start < len(self.markup):
            start, end = part_of(self.markup, start, PART)
            part = Part(self.markup, start, end, kept)
            yield part
            start, blocks = part.behind, blocks + part.number
            if blocks > MOST_BLOCKS and start < len(self.markup):
                self.is_cut = True
                return

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
        some &= ~(self._layout() | self._layout_tables())
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
        """Lists that lay out sections, and their items, as in javadoc: Markdown would indent all of the page."""
        elements, parents = self._elements, self._elements.parents
        items = elements.names == _ITEM
        headed = items & (elements.sums(self.shown & (self._blocks.names == HEADING)) > 0)
        found = np.zeros(len(items), dtype=bool)
        found[parents[headed]] = True
        with_text = items & self.shown.take(elements.starts, mode="clip")
        found[parents[with_text]] = False
        found &= LISTS.has(elements.names)
        return found | (items & found[parents])

    def _code_in_lines(self) -> Any:
        """The words of each block of code of several lines, which a cell of Markdown cannot have."""
        found, places = np.zeros(len(self.shown), dtype=np.int64), self._blocks.places
        if (self._elements.names == TABLE).any():
            for block in (self._chosen.is_code & self.shown).nonzero()[0].tolist():
                text = self.markup[places[block] : places[block + 1] if block + 1 < len(places) else None]
                found[block] = self._blocks.words[block] * (b"\n" in text.partition(b">")[2].strip())
        return found

    def _layout_tables(self) -> Any:
        """Tables of which one cell has the text, or most of an article, or that have sections in their cells, or mostly code of
        several lines, with all that they are made of: frames of old pages, and code beside the numbers of its lines."""
        names, parents = self._elements.names, self._elements.parents
        tables, cells = names == TABLE, COLUMNS.has(names)
        around = np.where(_PARTS_OF_TABLE.has(names), parents, 0)
        for _ in range(2):
            around = np.where(_PARTS_OF_TABLE.has(names[around]), parents[around], around)
        words = self._elements.sums(self._blocks.words * self.shown)
        shown = cells & (self._elements.sums(self.shown) > 0)
        single = tables & (np.bincount(around[shown], minlength=len(names)) == 1)
        # A cell with a heading and something under it is a section.
        headings = self._elements.sums(self._blocks.words * (self.shown & (self._blocks.names == HEADING)))
        sections = around[cells & (headings > 0) & (words > headings)]
        single[sections] = tables[sections]
        frames = around[shown & (words >= ARTICLE_WORDS) & (words >= ARTICLE_SHARE * words[around])]
        single[frames] = tables[frames]
        single |= tables & (2 * self._elements.sums(self._code_in_lines()) > words) & (words > 0)
        return single | (_PARTS_OF_TABLE.has(names) & single[around])
