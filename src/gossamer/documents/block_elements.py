"""The elements of a page as ranges of its blocks, in columns, and what is counted in them.

Place in the flow: :mod:`main_part` makes them of the tags between blocks (:mod:`blocks`), and :mod:`main_element` chooses one.
There is no tree: each element knows the one around it, and a column of numbers is summed up for all of them at once.
"""

from typing import Any, NamedTuple

import numpy as np

from gossamer.documents.element_names import NameSet, as_number, as_numbers

#: Words that bring a point; and words that bring another, up to the most.
_WORDS_A_POINT, _WORDS_A_BONUS, _MOST_BONUS = 12, 16, 3
#: Which part of the points of a block the elements around it get, from the next one out.
_SHARES = (1, 1 / 2, 1 / 6, 1 / 9, 1 / 12)

# Tags that begin no element: those that hold nothing, paragraphs and headings, and what is not there (a comment's name is 0).
_NONE = NameSet("p br hr img input link meta wbr source area col param embed track base dt html body head path", 0)
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
        some = ~_NONE.has(tags)
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
