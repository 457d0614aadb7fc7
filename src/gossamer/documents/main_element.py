"""Which element of an HTML page is its main part, and which blocks of that.

Place in the flow: :mod:`main_part` asks here, with the blocks of a page and the elements that their tags make.

Two steps. Blocks of prose give points to the elements around them, the more the nearer, as Arc90's Readability (2009) did it; links
take points, and so do names (:mod:`gossamer.documents.element_names`). The best element then grows: to elements around it as long
as prose is added and no menus, and to the content of the page where the best one is a section of a reference page.

Promises: a function of the page alone; linear, whatever the page holds.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from gossamer.documents.blocks import Blocks
from gossamer.documents.element_names import TAG_BYTES, NameSet, SaidNames, as_number, as_numbers, names_of
from gossamer.documents.elements import (
    BEFORE,
    LINKED,
    LITTLE_PROSE,
    MOSTLY_LINKS,
    PARAGRAPH,
    PROSE,
    BlockElements,
    NamedElements,
)
from gossamer.documents.markup import folded
from gossamer.documents.text import kept_as_prose
from gossamer.values.patterns import lazy_automaton

#: An element is an article if its paragraphs have so many words, and so much of all of its words.
ARTICLE_WORDS, ARTICLE_SHARE = 200, 0.6
#: Share of prose in that by which a main part grows, and words of it at least.
_GROWS, _GROWS_BY = 0.5, 10
#: A page that is no article widens: share of words in links of what is added, and of a landmark of what it adds, at most.
_WIDENS, _LITTLE = 0.4, 0.2
#: A page of which a rule leaves a smaller share than one of so many, and no prose, has its links as its content.
_MANY_TIMES = 20
#: An element must have this share of the best one's points for it to grow so far, unless the best has few words.
_STILL_GOOD, _FEW_WORDS = 0.5, 100
#: Elements around another that are looked at; in real pages there are fewer than a hundred.
_MOST_AROUND = 1_000
#: Prose of which a page without any main part has less, in so few blocks: its landmark is taken for that.
_NO_PROSE, _FEW_BLOCKS = 10, 3


# Parts of a content: the best element is one around these.
_INNER = as_numbers("tbody tr table ul ol dl li dd")
# Elements that stay though they consist of links, if what is around them stays; and those whose blocks do.
_ROWS, _CELLS = NameSet("tbody tr td th li dd dt dl h"), NameSet("td th li dd dt")
_ITEMS = NameSet("li dd dt")
# A list of links stays behind prose that introduces it: "The modules are:".
LISTS = NameSet("ul ol")
# Elements that hold menus.
_MENUS = NameSet("div section ul ol table header p")
_COLON = re.compile(rb"(?::|\xef\xbc\x9a)\s*(?:</?[a-z][^<>]*>\s*)*\Z")
HEADING = as_number("h")  # a name ends before a digit
# A section as generators of documentation write it.
_SECTION = re.compile(rb"""(?i)\bclass=["']?(?:ref)?sect(?:ion|[1-9])?["'\s>]""")
# Elements that hold footnotes.
_NOTES = lazy_automaton(
    rb"""(?i)<(?:div|section|aside|ol)\s[^<>]*(?:class|role)=["']?[^"'<>]*(?:foot|end)notes?["'\s>]"""
)
_TITLE = re.compile(rb"(?i)<title\b[^<>]*>([^<]*)")
_OWN_ANCHOR = re.compile(rb"""(?i)<h[1-6][^<>]*>[^<]*<a\b[^<>]*\bhref\s*=\s*["']?[^"'\s<>]*#""")
COLUMNS = NameSet("td th")
_ARTICLE, _MAIN, _P, _PRE, _TERMS, TABLE = map(as_number, ("article", "main", "p", "pre", "dl", "table"))
# Headings of lists of links that belong to the text before them.
_REFERENCES = lazy_automaton(
    rb"(?i)<h[1-6]\b[^<>]*>\s*(?:<[^<>]*>\s*){0,4}(?:see\s+also|references|sources|further\s+reading|external\s+links|"
    rb"bibliography|literatur\w*|(?:einzel)?nachweise|weblinks|siehe\s+auch|r\xc3\xa9f\xc3\xa9rences|voir\s+aussi|"
    rb"v\xc3\xa9ase\s+tambi\xc3\xa9n|referencias)\b",
)


class MainElement:
    """The element that is the main part of a page."""

    def __init__(self, markup: bytes, blocks: Blocks, elements: BlockElements) -> None:
        """It is chosen at once."""
        self._markup = markup
        self._blocks = blocks
        self._elements = elements
        self._named = NamedElements(markup, blocks, elements)
        self.is_article = False
        """It consists of paragraphs; otherwise it is a reference page, an index or a front page."""
        self.shown = np.zeros(len(blocks.words), dtype=bool)
        """Which blocks belong to it, code among them."""
        self.range = (0, len(blocks.words))
        """Its blocks, those that are left out among them, and those of its title above."""
        self.begins = 0
        """The block with which it begins."""
        if len(blocks.words):
            self._choose()

    @cached_property
    def is_code(self) -> Any:
        elements = self._elements
        return elements.covered(elements.names == _PRE)

    def _choose(self) -> None:
        names, starts, ends, parents, _ = elements = self._elements
        words, linked = self._blocks.words, self._blocks.linked
        total, density = elements.sums(words), elements.sums(linked)
        density = density / np.maximum(total, 1)
        is_prose = (words >= PROSE) & (linked <= LINKED * words)
        weights, dropped = self._named.judged(
            total, elements.sums(linked), np.where(is_prose & ~self.is_code, words, 0)
        )
        every_word = (words > 0) & ~self._named.hidden()
        shown = kept = every_word & ~elements.covered(dropped)
        plain = shown & ~self.is_code
        prose = plain & is_prose

        points = elements.points(np.where(prose, words, 0))
        points = np.where(points > 0, (points + weights) * (1 - density), 0)
        best = int(points.argmax()) if points.max() > 0 else 0
        while best and int(names[best]) in _INNER:
            best = int(parents[best])

        good, every = elements.sums(words * prose), elements.sums(words * plain)
        paragraphs = elements.sums(words * (prose & (words >= PARAGRAPH)))
        self.is_article = bool(paragraphs[best] >= ARTICLE_WORDS and paragraphs[best] >= ARTICLE_SHARE * every[best])
        while best and self._is_one_of_sections(best):
            best = int(parents[best])
        main = self._grown(best, points, paragraphs if self.is_article else good, good, every)
        if not self.is_article:
            main = self._widened(main, every, elements.sums(linked * plain))
        if good[main] < LITTLE_PROSE and prose[starts[main] : ends[main]].sum() <= _FEW_BLOCKS:
            bare = ((names == _MAIN) & (total > 0)).nonzero()[0]
            marked = filter(self._is_landmark, sorted({*bare.tolist(), *self._named.with_attributes(total).tolist()}))
            main = max(marked, key=lambda element: int(total[element]), default=0) or main  # the largest one
        if (
            not main
            and total[0]
            and good[0] < LITTLE_PROSE
            and (main := self._headed(total, density, shown & (linked == 0)))
        ):
            shown = every_word  # a table of contents is a menu beside other content, and is all of this one
        self.begins, last = int(starts[main]), int(ends[main])
        if main and not self.is_article:
            shown = shown & ~self._in_front(self.begins, last, shown, prose, density)
        first, last = self._with_its_title(shown), self._with_its_notes(last, shown)
        self.range = first, last
        self.shown[first:last] = shown[first:last]
        is_content = density[main] < MOSTLY_LINKS or good[main] < _NO_PROSE
        if not main or self.is_article or not (is_content or self._is_landmark(main)):
            self._leave_out_links(bool(main), prose, total)
        told = words[self.shown].sum()
        if told < LITTLE_PROSE and not (main and self._is_landmark(main)):
            # A page of links alone, as a list of news or the index of a manual: most of them are its content.
            left = elements.sums(words * kept)
            if left[0] >= max(_NO_PROSE, _MANY_TIMES * told):
                main = int(((left >= ARTICLE_SHARE * left[0]) & ~np.isin(names, [*_INNER])).nonzero()[0][-1])
                begins, last = int(starts[main]), int(ends[main])
                self.shown[begins:last] |= kept[begins:last]
                self.begins = begins if not told else min(self.begins, begins)
                self.range = min(self.begins, begins), max(last, self.range[1] if told else last)

    def _with_its_title(self, shown: Any) -> int:
        """The block from which a reference page has its content: that of the main heading right above it, as manual pages have
        it, if it has none itself and this one begins as the title of the page does, or the other way round."""
        blocks, elements, begins = self._blocks, self._elements, self.begins
        headings = (shown & (blocks.names == HEADING)).nonzero()[0].tolist()
        last = max((block for block in headings if self._markup[blocks.places[block] + 2] == ord("1")), default=begins)
        if last >= begins or (self.is_article and int(shown[begins:].argmax()) + begins not in headings):
            return begins  # the title of an article is told elsewhere
        first, at = last, int(elements.owners[last])
        while at and elements.ends[at] <= begins:
            first, at = int(elements.starts[at]), int(elements.parents[at])
        between = shown[first:begins]
        # A path of links is no part of it.
        between &= blocks.linked[first:begins] <= LINKED * blocks.words[first:begins]
        stated = _TITLE.search(self._markup)
        own = self._markup[blocks.places[last] : blocks.places[last + 1]]
        short, long = sorted((folded(own).lower(), folded(stated[1]).lower() if stated else ""), key=len)
        is_title = short and long.startswith(short) and blocks.words[first:begins][between].sum() <= _FEW_WORDS
        return first if is_title else begins

    def _with_its_notes(self, last: int, shown: Any) -> int:
        """The block with which a main part ends: that of the footnotes right behind it, as manuals of Texinfo have them."""
        found = _NOTES.search(self._markup, int(self._blocks.places[last])) if last < len(shown) else None
        begins = len(shown) if found is None else int(self._blocks.places.searchsorted(found.start()))
        if begins >= len(shown) or shown[last:begins].any():
            return last
        return int(self._elements.ends[self._elements.owners[begins]])

    def _in_front(self, begins: int, last: int, shown: Any, prose: Any, density: Any) -> Any:
        """Whether each block belongs to a menu in front of the main heading of a reference page and all of its prose: some
        generators put the column of the menu into the same element as that of the page."""
        elements, words = self._elements, self._blocks.words * shown
        headings = (shown & (self._blocks.names == HEADING))[begins:last].nonzero()[0] + begins
        first = next((one for one in headings.tolist() if self._markup[self._blocks.places[one] + 2] in b"12"), begins)
        if not prose[begins:first].any():
            menus = (density > MOSTLY_LINKS) & (elements.starts > begins) & (elements.ends <= first)
            found = elements.covered(menus & _MENUS.has(elements.names))
            if (words * prose)[first:last].sum() >= words[found].sum():
                return found
        return np.zeros(len(shown), dtype=bool)

    def _leave_out_links(self, is_part: bool, prose: Any, total: Any) -> None:
        """Take lists of links and blocks of them away, but those that belong to the text around them."""
        names, starts, ends, _, _ = elements = self._elements
        words, linked, (first, last) = self._blocks.words, self._blocks.linked.copy(), self.range
        of_links = (self.shown & (linked > LINKED * words)).nonzero()[0]
        ends_of_text = np.append(self._blocks.places[1:], len(self._markup))
        edges = zip(self._blocks.places[of_links].tolist(), ends_of_text[of_links].tolist(), strict=True)
        # No menu is code, or a heading that links to itself.
        own = [
            self._markup.find(b"<code", start, end) >= 0
            or _OWN_ANCHOR.match(self._markup, start, start + TAG_BYTES) is not None
            for start, end in edges
        ]
        linked[of_links[own]] = 0
        density = elements.sums(linked) / np.maximum(total, 1)
        share, paragraph = linked / np.maximum(words, 1), prose & (words >= PARAGRAPH)
        some = words.nonzero()[0]
        in_cells = elements.covered(COLUMNS.has(names) & (total < PARAGRAPH))
        of_links = (density > np.where(names == TABLE, MOSTLY_LINKS, LINKED)) & (total > 0) & ~self._rows(total)
        of_links &= (starts > first) & (ends <= last) & ~in_cells.take(starts, mode="clip")
        lists = (of_links & LISTS.has(names)).nonzero()[0]
        for element, before in zip(lists.tolist(), some.searchsorted(starts[lists]).tolist(), strict=True):
            place = int(self._blocks.places[starts[element]])
            is_introduced = (
                before and prose[some[before - 1]] and _COLON.search(self._markup, max(0, place - BEFORE), place)
            )
            of_links[element] = not is_introduced
        referring = self._referring()
        self.shown &= ~elements.covered(of_links) | referring
        is_cell = _CELLS.has(names[elements.owners]) | (_CELLS.has(self._blocks.names) & ~self._blocks.closing)
        linking = self.shown & (share > MOSTLY_LINKS) & ~is_cell & ~in_cells & ~referring
        # A paragraph right beside those of an article is its own: a credit of a picture, "read also", "published in".
        is_p = self._blocks.names == _P
        held = np.bincount(elements.owners, words * (paragraph & is_p), len(names)) >= ARTICLE_WORDS
        linking &= ~(is_p & ~self._blocks.closing & held[elements.owners])
        headings = (linking & (self._blocks.names == HEADING)).nonzero()[0]
        for block, behind in zip(headings.tolist(), some.searchsorted(headings, "right").tolist(), strict=True):
            is_of_text = behind < len(some) and bool((paragraph if self.is_article else ~linking)[some[behind]])
            linking[block] = not is_of_text
        self.shown &= ~linking
        if not is_part:  # all of the page is as good as any part of it
            kept = np.array(kept_as_prose(words[some].tolist(), linked[some].tolist()), dtype=bool)
            kept |= (is_p & held[elements.owners])[some]
            is_row = _ITEMS.has(names) | (_ROWS.has(names) & (total < _FEW_WORDS))  # a cell may hold all of a page
            rows = elements.covered(is_row & (density <= LINKED))
            kept[:-1] |= kept[1:] & (self._blocks.names[some] == HEADING)[:-1]
            self.shown[some] &= kept | rows[some]

    def _referring(self) -> Any:
        """Whether each block stands in a section of references, from its heading to the next one, or to the end of the element
        that the heading stands in."""
        found = np.zeros(len(self.shown), dtype=bool)
        blocks, elements = self._blocks, self._elements
        headings = ((blocks.names == HEADING) & ~blocks.closing).nonzero()[0]
        for match in _REFERENCES.finditer(self._markup):
            block = int(blocks.places.searchsorted(match.start()))
            if block < len(found) and blocks.places[block] == match.start() and blocks.names[block] == HEADING:
                behind = int(headings.searchsorted(block, "right"))
                end = int(elements.ends[elements.parents[elements.owners[block]]])
                found[block : min(end, int(headings[behind])) if behind < len(headings) else end] = True
        return found

    def _rows(self, total: Any) -> Any:
        """Elements that stay though they consist of links: rows, cells, and what holds nothing but a list of terms."""
        names, parents = self._elements.names, self._elements.parents
        rows = _ROWS.has(names)
        for element in (names == _TERMS).nonzero()[0].tolist():
            at = int(parents[element])
            while at and not rows[at] and total[at] == total[element]:
                rows[at] = True
                at = int(parents[at])
        return rows

    def _is_landmark(self, element: int) -> bool:
        return bool(self._elements.names[element] == _MAIN) or names_of(self._named.tag(element)).is_landmark

    def _is_one_of_sections(self, element: int) -> bool:
        """Whether it is a section of a reference page, and stands beside others."""
        if not _SECTION.search(self._named.tag(element)):
            return False
        beside = (self._elements.parents == self._elements.parents[element]).nonzero()[0].tolist()
        return sum(bool(_SECTION.search(self._named.tag(one))) for one in beside) > 1

    def _grown(self, best: int, points: Any, good: Any, prose: Any, every: Any) -> int:
        """The element around the best one to which the main part grows."""
        names = self._elements.names
        single = int((names == _ARTICLE).sum()) == 1

        def is_body(name: int, said: SaidNames) -> bool:
            return said.is_body or (single and name == _ARTICLE)

        main = best
        has_body = bool(best) and is_body(int(names[best]), names_of(self._named.tag(best)))
        for at in self._around(best):
            name, said = int(names[at]), names_of(self._named.tag(at))
            added, of = good[at] - good[main], every[at] - every[main]
            has_prose = of > 0 and added >= _GROWS * of
            if not has_body and (name == _MAIN or said.is_landmark):
                main = at if of > 0 and prose[at] - prose[main] >= _GROWS * of else main
                continue
            has_body = has_body or is_body(name, said)
            still_good = points[at] >= _STILL_GOOD * points[best] or good[main] < _FEW_WORDS
            if has_prose and added >= _GROWS_BY and still_good:
                main = at
        return main

    def _around(self, element: int) -> Iterator[int]:
        """The elements around one, the nearest first, but for the page."""
        for _ in range(_MOST_AROUND):
            if not (element := int(self._elements.parents[element])):
                return
            yield element

    def _widened(self, main: int, every: Any, linked: Any) -> int:
        """The element to which the main part of a page that is no article widens: its sections stand side by side, so all that
        is around belongs to it, but for menus. It ends at the element that calls itself the content."""
        for at in (*self._around(main), 0):
            first_end, last_start = self._named.bodies
            # The body of an article is alone: a question has several answers.
            is_alone = self._elements.starts[main] < first_end and last_start < self._elements.ends[main]
            if self._is_landmark(main) or (is_alone and names_of(self._named.tag(main)).is_body):
                break
            is_landmark = at > 0 and self._is_landmark(at)
            added = every[at] - every[main]
            has_text = added > 0 and linked[at] - linked[main] <= _WIDENS * added
            if has_text or (is_landmark and added <= _LITTLE * every[at]):
                main = at
            if is_landmark:
                break
        return main

    def _headed(self, total: Any, density: Any, unlinked: Any) -> int:
        """The largest list of links that begins with a main heading, of a page without prose; 0 if none does. The page
        around it belongs to it only if that has most of the words."""
        elements, most, found = self._elements, 0, 0
        some = self._blocks.words.nonzero()[0]
        firsts = some.take(some.searchsorted(elements.starts), mode="clip")
        for block in ((self._blocks.names == HEADING) & unlinked).nonzero()[0].tolist():
            at = main = int(elements.owners[block])
            while at and firsts[at] == block and self._markup[self._blocks.places[block] + 2] in b"12":
                if at == main or total[at] > 2 * total[main]:
                    main = at
                if total[main] > most and density[main] > LINKED:
                    most, found = total[main], main
                at = int(elements.parents[at])
        return found
