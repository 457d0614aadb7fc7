"""The elements of a page as ranges of its blocks; and their names, which give them points for being the content, or say that they
stand beside it.

Place in the flow: :mod:`main_part` makes them of the tags between blocks (:mod:`blocks`), and :mod:`main_element` chooses one.
There is no tree: each element knows the one around it, and a column of numbers is summed up for all of them at once.
:mod:`gossamer.documents.element_names` says what the names of one tag mean. A name alone errs: the id of a section is made of its
heading, so the chapter on comments of a manual is called `comments`, and a list of chapters is called `toc` like the list of the
headings of a page. What an element holds decides here.

Promises: a function of the page alone; linear, whatever the page holds.
"""

import re
from typing import Any, NamedTuple

import numpy as np

from gossamer.documents.blocks import Blocks
from gossamer.documents.element_names import (
    HIDES_BLOCK,
    HIDING,
    LINE_NUMBERS,
    NOTHING_SAID,
    SECTION,
    TAG_BYTES,
    NameSet,
    NameTable,
    SaidNames,
    as_number,
    as_numbers,
    names_of,
)
from gossamer.documents.markup import folded
from gossamer.values.patterns import lazy_automaton

#: Words that bring a point; and words that bring another, up to the most.
_WORDS_A_POINT, _WORDS_A_BONUS, _MOST_BONUS = 12, 16, 3
#: Which part of the points of a block the elements around it get, from the next one out.
_SHARES = (1, 1 / 2, 1 / 6, 1 / 9, 1 / 12)

# Tags that begin no element: those that hold nothing, paragraphs and headings, and what is not there (a comment's name is 0).
_NO_ELEMENT = NameSet(
    "p br hr img input link meta wbr source area col param embed track base dt html body head path", 0
)
# Elements that end where another begins, if it is the innermost one.
_ENDED_BY = {
    as_number(name): as_numbers(ended)
    for name, ended in {
        "li": "li", "dd": "dd", "option": "option", "td": "td th", "th": "td th", "tr": "td th tr", "tbody": "td th tr thead tbody",
    }.items()
}  # fmt: skip


class BlockElements(NamedTuple):
    """Elements in columns; the first is the page. Each is a range of blocks, from its start tag to its end tag."""

    names: Any
    starts: Any
    ends: Any
    parents: Any
    owners: Any
    """The innermost element of each block."""

    @classmethod
    def of(cls, tags: Any, closing: Any) -> "BlockElements":
        """The elements of blocks, by the names of the tags before them. An end tag without a start ends nothing."""
        some = ~_NO_ELEMENT.has(tags)
        starts = np.append(0, (some & ~closing).nonzero()[0])
        all_names = np.append(np.zeros(1, np.uint64), tags[starts[1:]])
        names, ends, parents, tops = all_names.tolist(), [len(tags)] * len(starts), [0], [0]
        stack, top, number = [0], 0, 0
        opened: dict[int, int] = {}
        for at, name, is_end in zip(
            some.nonzero()[0].tolist(), tags[some].tolist(), closing[some].tolist(), strict=True
        ):
            if is_end:
                if opened.get(name):
                    last = 0
                    while last != name:
                        ended = stack.pop()
                        ends[ended], last = at, names[ended]
                        opened[last] -= 1
                    top = stack[-1]
            else:
                if name in _ENDED_BY:
                    ended_by_it = _ENDED_BY[name]
                    while names[top] in ended_by_it:
                        ends[top] = at
                        opened[names[top]] -= 1
                        stack.pop()
                        top = stack[-1]
                parents.append(top)
                number += 1
                top = number
                stack.append(top)
                opened[name] = opened.get(name, 0) + 1
            tops.append(top)
        owners = np.array(tops)[some.cumsum()]
        return cls(all_names, starts, np.array(ends), np.array(parents), owners)

    def points(self, words: Any) -> Any:
        """The points that blocks of prose give to the elements around them."""
        points = (words > 0) * (1 + words / _WORDS_A_POINT + np.minimum(words / _WORDS_A_BONUS, _MOST_BONUS))
        # An element of one block is a paragraph by another name.
        around = self.owners
        around = np.where((self.ends - self.starts == 1)[around], self.parents[around], around)
        found = np.zeros(len(self.names))
        for share in _SHARES:
            found += np.bincount(around, points * share, len(found))
            outer = self.parents[around]
            points = points * (outer != around)  # the page is its own parent
            around = outer
        return found

    def sums(self, column: Any) -> Any:
        """The sum of a column of blocks for each element."""
        sums = np.concatenate(([0], column.cumsum()))
        return sums[self.ends] - sums[self.starts]

    def covered(self, some: Any) -> Any:
        """Whether each block lies in one of some self."""
        edges = np.zeros(len(self.owners) + 1, dtype=np.int64)
        np.add.at(edges, self.starts[some], 1)
        np.subtract.at(edges, self.ends[some], 1)
        return edges.cumsum()[:-1] > 0


#: A block of so many words may be prose; one of so many is a paragraph, as articles have them and lists do not; a page with less
#: prose than the third has hardly any.
PROSE, PARAGRAPH, LITTLE_PROSE = 6, 25, 30
#: Share of words in links above which a block is no prose, and above which an element is a list of links.
LINKED, MOSTLY_LINKS = 0.5, 0.6
#: Bytes of a tag before a word of it.
BEFORE = 300
#: Elements of one kind are the content where the rest has fewer words in paragraphs, and less of prose by this factor.
_NO_TEXT, _MANY = 50, 3
#: An element that calls itself boilerplate is none if it holds so much of the page; a hidden one needs more for it to be believed.
_TOO_MUCH, _TOO_MUCH_HIDDEN = 0.5, 0.9
#: A menu may hold so much if the page has so many words of prose without it.
_REST = 10

# Elements whose names are asked for, with the lengths of their own.
_NAMES = "div section ul ol table td form article header dl aside main figure details"
_NAMED = NameTable({as_number(name): len(name) for name in _NAMES.split()})
# Elements that are never dropped for their names.
_SAFE = as_numbers("article main td")
_CELL = as_number("td")
#: Points that elements have by their kind, as Readability has them.
_POINTS = {
    as_number(name): points
    for name, points in {
        "article": 8.0, "div": 5.0, "main": 5.0, "pre": 3.0, "td": 3.0, "ol": -3.0, "ul": -3.0, "dl": -3.0,
        "dd": -3.0, "li": -3.0, "form": -3.0, "th": -5.0, "header": -5.0,
    }.items()
}  # fmt: skip

# A paragraph above that of an author, as forums and blogs call it.
_SIGNED = lazy_automaton(rb"""(?i)<p\s+class=["']?(?:author|byline|(?:post-?|entry-?|comment-?)?meta|tagline)["'\s>]""")
# Links to the pages beside this one, as manuals of Texinfo and blogs have them: "Next: ..., Previous: ...".
_BESIDE = lazy_automaton(rb"""(?i)<a\s[^<>]*\brel=["']?(?:next|prev|up)["'\s>]""")
# A page of which the replies of readers are the content says so.
_FORUM = lazy_automaton(
    rb"(?i)schema\.org/(?:DiscussionForumPosting|QAPage|Question)\b|\"(?:DiscussionForumPosting|QAPage)\""
    rb"|<meta\s+name=.?generator.?\s+content=.?(?:phpBB|vBulletin|Discourse|XenForo|MyBB|SMF|Flarum|NodeBB|Invision)",
)
# The id of a section, up to the arguments of a function, and the heading with which it begins.
_HEADED = re.compile(
    rb"""(?is)<[^<>]*?\bid=["']?([^"'<>\s(]++)[^<>]*+>\s*+(?:<span\b[^<>]*>\s*</span>\s*+)?(<h[1-6]\b[^<>]*>.{0,600}?)</h[1-6]\b"""
)
# The first link of an element, and bytes within which it stands.
_HREF = re.compile(rb"""(?i)\shref\s*=\s*["']?([^"'\s<>]*)""")
_NEAR = 1_000


class NamedElements:
    """The names that the elements of a page give themselves."""

    def __init__(self, markup: bytes, blocks: Blocks, elements: BlockElements) -> None:
        """Nothing is judged yet."""
        self._markup, self._blocks, self._elements = markup, blocks, elements
        self.bodies = (len(blocks.words) + 1, -1)
        """Of elements that call themselves the body of an article, where the first ends and the last begins."""

    def tag(self, element: int) -> bytes:
        return self.tag_at(int(self._blocks.places[self._elements.starts[element]]))

    def tag_at(self, place: int) -> bytes:
        end = self._markup.find(b">", place, place + TAG_BYTES)
        return self._markup[place : end + 1 if end >= 0 else place + TAG_BYTES]

    def judged(self, total: Any, linked: Any, prose: Any) -> tuple[Any, Any]:
        """The points of each element by its kind and names, and which elements call themselves boilerplate.

        Args:
            total: the words of each element.
            linked: those of them that stand in links.
            prose: the words of blocks of prose.
        """
        elements = self._elements
        names = elements.names.tolist()
        points = [_POINTS.get(name, 0.0) for name in names]
        words, of_links = total.tolist(), linked.tolist()
        dropped, equals, talk, bodies = np.zeros((4, len(names)), dtype=bool)
        some, held = self.with_attributes(total), elements.sums(prose)
        places = self._blocks.places[elements.starts[some]].tolist()
        for element, tag in zip(some.tolist(), map(self.tag_at, places), strict=True):
            if b"=" in tag or b"hidden" in tag:
                if names[element] == _CELL and LINE_NUMBERS.search(tag):
                    dropped[element] = True
                    continue
                said = names_of(tag)
                if said == NOTHING_SAID or (said.is_beside and self._is_about_that(element, tag)):
                    continue
                points[element] += said.weight
                bodies[element] = said.is_body
                is_menu = said.is_menu and of_links[element] and not self._lists_pages(element, said)
                is_beside = said.is_beside or is_menu or (said.is_menu and words[element] < PROSE)
                if is_beside and names[element] not in _SAFE:
                    most = _TOO_MUCH_HIDDEN if said.is_hidden else _TOO_MUCH
                    dropped[element] = words[element] < most * words[0] or (
                        is_menu
                        and of_links[element] > MOSTLY_LINKS * words[element]
                        and held[0] >= held[element] + _REST
                    )
                    equals[element] = dropped[element] and said.is_equal
                    talk[element] = dropped[element] and said.is_talk
        weights = np.array(points)
        if (bodies := bodies & ~dropped).any():
            self.bodies = (int(elements.ends[bodies].min()), int(elements.starts[bodies].max()))
        if equals.any():
            left = prose * ~elements.covered(dropped)
            is_bare = left[left >= PARAGRAPH].sum() < _NO_TEXT and prose.sum() > (1 + _MANY) * left.sum()
            content = equals if is_bare else talk & bool(talk.any() and _FORUM.search(self._markup))
            dropped &= ~content
            weights[content] = np.maximum(weights[content], 0)
        return weights, dropped

    def _is_about_that(self, element: int, tag: bytes) -> bool:
        """Whether an element is a section of a text, and has its id of its heading: this one links to itself, or is that id."""
        place = int(self._blocks.places[self._elements.starts[element]])
        if (
            not SECTION.search(tag)
            or not tag.endswith(b">")
            or not (found := _HEADED.match(self._markup, place, place + 2 * TAG_BYTES))
        ):
            return False
        return b'href="#' in found[2] or folded(found[2]) == found[1].decode("utf-8", "replace")

    def _lists_pages(self, element: int, said: SaidNames) -> bool:
        """Whether an element that calls itself a table of contents lists other pages, as one of chapters does."""
        if not said.is_contents:
            return False
        place, last = (int(self._blocks.places[self._elements.starts[element]]), int(self._elements.ends[element]))
        end = int(self._blocks.places[last]) if last < len(self._blocks.places) else len(self._markup)
        found = _HREF.search(self._markup, place, min(end, place + _NEAR))
        return found is not None and b"#" not in found[1]

    def with_attributes(self, total: Any) -> Any:
        """Elements with words whose names are asked for: half of them have no attribute."""
        elements = self._elements
        lengths = _NAMED.of(elements.names)
        some = ((total > 0) & (lengths > 0)).nonzero()[0]
        some = some[some > 0]
        behind = self._blocks.places[elements.starts[some]] + 1 + lengths[some]
        tags = np.frombuffer(self._markup, np.uint8).take(behind, mode="clip")
        return some[tags != ord(">")]

    def hidden(self) -> Any:
        """Blocks that a browser does not show, that say who wrote the next ones, or that lead to the pages beside this one."""
        places, hidden = self._blocks.places, np.zeros(len(self._blocks.places), dtype=bool)
        leading = places.searchsorted([match.start() for match in _BESIDE.finditer(self._markup)], "right") - 1
        hidden[leading[self._blocks.linked[leading] >= LINKED * self._blocks.words[leading]]] = True
        signed = places.searchsorted([match.start() for match in _SIGNED.finditer(self._markup)])
        hidden[signed[signed < len(places)]] = True
        for match in HIDES_BLOCK.finditer(self._markup) if any(map(self._markup.__contains__, HIDING)) else ():
            place = self._markup.rfind(b"<", max(0, match.start() - BEFORE), match.start() + 1)
            block = int(places.searchsorted(place))
            if block < len(places) and places[block] == place and names_of(self.tag_at(place)).is_hidden:
                hidden[block] = True
        return hidden
