"""Whether the parser may see a page: a check of what a tree would cost, before one is built.

The parser is quadratic on nesting and on attributes of one tag (faults 54, 55; measured with lexbor: 5,000 open
elements 50 ms, 20,000 765 ms; 5,000 attributes 57 ms, 20,000 906 ms; a million `<br>` are 50 times their bytes in
memory). :func:`suspicion` is asked before it, and for the flag that a page carries (`trouble`); for ordinary pages it
costs one count. Its answer errs to the safe side. It knows the tokenizer's rules but not the tree builder's, so who writes
markup against this very code can still cost a second or two; processes that can be killed are the answer to that.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from gossamer.reading.markup import ATTRIBUTES, SPACE
from gossamer.reading.skim import Skim, Span

#: More `<` than this is a tree of over 100 MB (16 MB of `<br>`: 746 MB), whatever its shape.
MAX_TAGS = 150_000

#: Up to this many `<` cost the parser 0.13 s at the very worst, so nothing more is looked at.
TRUSTED_TAGS = 8_000

#: Up to this many, opening and closing tags are only counted against each other: who hides closing tags from the parser
#: (in comments, as `</x>`) gains 0.4 s. Beyond it they are counted by name, and where that is not plain, looked at one by one.
COUNTED_TAGS = 30_000

#: How much is counted at a time, so that closing tags at the end do not hide the depth before them: the count is off by
#: no more than a slice's tags.
SLICE = 16_384

#: Open elements at once: 50 ms. Real pages stay far below 500.
MAX_DEPTH = 5_000

# Comment, element with raw text (through to its end tag), tag, anything else that begins with `<`. Each alternative
# that begins to match matches, if need be to the end of the page, so nothing is scanned twice.
_TOKEN = re.compile(
    rb"<!(?=--).*?(?:--!?>|\Z)"
    rb"|<((script|style|textarea|title|xmp|iframe|noembed|noframes)(?=[%(s)s/>])(?P<raw>%(all)s)(?:>|\Z)"
    rb".*?(?=</\2[%(s)s/>]|\Z))"
    rb"|<(?P<closing>/?)(?P<name>[a-z][^%(s)s/>]*+)(?P<attributes>%(all)s)(?:>|\Z)"
    rb"|<[!?/][^>]*+" % {b"s": SPACE, b"all": ATTRIBUTES},
    re.DOTALL | re.IGNORECASE,
)
_NAME = re.compile(rb"<(/?[a-zA-Z][^%(s)s/>]*+)" % {b"s": SPACE})
#: Elements that never stay open, or that the next of their kind closes.
_NOT_NESTED = frozenset(
    b"area base br col embed hr img input link meta param source track wbr p li dt dd option td th tr".split()
)


def suspicion(markup: bytes, skim: Skim | None = None) -> str:
    """Why a page must not be parsed in this process; empty if it may.

    The reasons: `too_many_tags`, `too_deep`, `too_many_attributes`.

    Args:
        markup: well-formed UTF-8.
        skim: the page, skimmed, if it is already.
    """
    # No tag is shorter than three bytes, so there is nothing to count on a small page.
    count = markup.count(b"<") if len(markup) > 3 * TRUSTED_TAGS else 0
    if count > MAX_TAGS:
        return "too_many_tags"
    skim = skim or Skim(markup)
    if skim.is_crowded:
        return "too_many_attributes"
    if (
        count <= TRUSTED_TAGS
        or (count <= COUNTED_TAGS and _most_open(markup) <= MAX_DEPTH)
        or _is_plainly_flat(skim, count)
    ):
        return ""
    return _shape(markup)


def _most_open(markup: bytes) -> int:
    """The largest surplus of opening over closing tags, from the beginning to the end of any slice."""
    surplus = most = 0
    for start in range(0, len(markup), SLICE):
        end = start + SLICE
        surplus += markup.count(b"<", start, end) - 2 * markup.count(b"</", start, end + 1)
        most = max(most, surplus)
    return most


def _is_plainly_flat(skim: Skim, count: int) -> bool:
    """Whether tags counted by name, 0.1 us each, already show that little is open at once; :func:`_shape` costs 1.5 us each.

    Counting is right in spans, where every `<name` and `</name` is a tag to the tokenizer as well. A page with more `<`, of its
    `count`, outside of them than may be open is not judged here.
    """
    markup = skim.markup
    if count - sum(markup.count(b"<", begin, end) for begin, end in skim.spans) > MAX_DEPTH:
        return False
    surplus: Counter[bytes] = Counter()
    for start, end in _slices(skim.spans):
        for name, count in Counter(_NAME.findall(markup, start, end)).items():
            if name[:1] == b"/":
                surplus[name[1:].lower()] -= count
            else:
                surplus[name.lower()] += count
        for name, count in list(surplus.items()):
            if count <= 0 or name in _NOT_NESTED:
                del surplus[name]
        if surplus.total() > MAX_DEPTH:
            return False
    return True


def _slices(spans: Iterable[Span]) -> Iterator[Span]:
    """Spans in parts of at most :data:`SLICE`. A tag that a part's end cuts in two may count by another name: one a slice."""
    return ((at, min(at + SLICE, end)) for begin, end in spans for at in range(begin, end, SLICE))


def _shape(markup: bytes) -> str:
    """The same answer from every tag: how many elements are open at once, at the most."""
    depth = 0
    opened: Counter[bytes] = Counter()
    for match in _TOKEN.finditer(markup):
        if match["name"] is None or (name := match["name"].lower()) in _NOT_NESTED:
            continue
        if not match["closing"]:
            opened[name] += 1
            depth += 1
            if depth > MAX_DEPTH:
                return "too_deep"
        elif opened[name]:
            opened[name] -= 1
            depth -= 1
    return ""
