"""Tags without a tree: a linear scan for pages that the parser must not see, and the check that tells which these are.

The parser is quadratic on nesting and on attributes of one tag (FAULTS 54, 55; measured with lexbor: 5,000 open
elements 50 ms, 20,000 765 ms; 5,000 attributes 57 ms, 20,000 906 ms; a million `<br>` are 50 times their bytes in
memory). :func:`suspicion` is asked before it; for ordinary pages it costs a count and a few searches. Its answer errs
to the safe side. It knows the tokenizer's rules but not the tree builder's, so who writes markup against this very code
can still cost a second or two; processes that can be killed are the answer to that.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
import re2

#: More `<` than this is a tree of over 100 MB (16 MB of `<br>`: 746 MB), whatever its shape (DESIGN 5).
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

#: Attributes of one tag: 9 ms. Real ones stay below 100; inline graphics have long values, not many.
MAX_ATTRIBUTES = 2_000

#: A tag with :data:`MAX_ATTRIBUTES` and no `<` in them is longer than two of these, so it covers one that begins at a
#: multiple of it: looking for a `<` in each tells at once that there is no such tag.
WINDOW = 2_048

_SPACE = rb"\t\n\f\r "
# One attribute (HTML, 13.2.5.32 to 39). A quote counts only where a value begins, as in the tokenizer; otherwise tags
# could be hidden from this scan that the parser sees. Possessive throughout: no byte is read twice.
_ONE = (
    rb"[^%(s)s/>][^%(s)s/>=]*+"
    rb"""(?:[%(s)s]*+=[%(s)s]*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^%(s)s"'>][^%(s)s>]*+|(?=>)|\Z))?+"""
) % {b"s": _SPACE}
_ALL = rb"(?:[%(s)s/]++|%(one)s)*+" % {b"s": _SPACE, b"one": _ONE}
# Comment, element with raw text (through to its end tag), tag, anything else that begins with `<`. Each alternative
# that begins to match matches, if need be to the end of the page, so nothing is scanned twice.
_TOKEN = re.compile(
    rb"<!(?=--).*?(?:--!?>|\Z)"
    rb"|<((script|style|textarea|title|xmp|iframe|noembed|noframes)(?=[%(s)s/>])(?P<raw>%(all)s)(?:>|\Z)"
    rb".*?(?=</\2[%(s)s/>]|\Z))"
    rb"|<(?P<closing>/?)(?P<name>[a-z][^%(s)s/>]*+)(?P<attributes>%(all)s)(?:>|\Z)"
    rb"|<[!?/][^>]*+" % {b"s": _SPACE, b"all": _ALL},
    re.DOTALL | re.IGNORECASE,
)
_BYTES = re2.Options()
_BYTES.encoding = re2.Options.Encoding.LATIN1
_BYTES.dot_nl = True

# Comments and raw text, which hide tags from the parser. RE2: many times faster than `re` over a whole page.
_HIDDEN = re2.compile(
    rb"<!--.*?--!?>"
    + b"".join(
        rb"|(?i:<%(n)s(?:[\t\n\f\r /][^<>]*)?>).*?(?i:</%(n)s)" % {b"n": name}
        for name in b"script style textarea title xmp iframe noembed noframes".split()
    ),
    _BYTES,
)
# A tag with another `<` in it; a quoted value with `<` or `>`; declarations, instructions and bogus comments; and the
# comments that end where they begin.
_CONFUSING = re2.compile(
    rb"<[a-zA-Z][^<>]*<"
    rb"""|=[\t\n\f\r ]*(?:"[^"<>]*[<>]|'[^'<>]*[<>])"""
    rb"|<(?:![^dD]|\?|/[^a-zA-Z])",
    _BYTES,
)
_SHORT_COMMENTS = (b"<!-->", b"<!--->")
_NAME = re.compile(rb"<(/?[a-zA-Z][^%(s)s/>]*+)" % {b"s": _SPACE})
_ATTRIBUTE = re.compile(
    rb"([^%(s)s/>][^%(s)s/>=]*+)"
    rb"""(?:[%(s)s]*+=[%(s)s]*+(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|([^%(s)s"'>][^%(s)s>]*+)|(?=>)|\Z))?+"""
    % {b"s": _SPACE}
)
# In attributes a name without semicolon stays as it is before `=` or a letter: `?a=1&copy=2` (HTML, 13.2.5.73).
_REFERENCE = re.compile(
    r"&(?:#[0-9]{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};|(?:amp|lt|gt|quot)(?![=A-Za-z0-9]))"
)

_BASE = re2.compile(rb"(?i)<base", _BYTES)

# What most pages lack. RE2 looks for all of it at once, 0.5 us a KB; a walk through the tree for one element costs three times
# as much. A word that is spelled with character references is not noticed.
_PECULIAR = re2.compile(
    rb"(?i)<(?:base|area|i?frame)|http-equiv[^>]*refresh|nofollow|sponsored|\bugc\b",
    _BYTES,
)

#: Elements that never stay open, or that the next of their kind closes.
_NOT_NESTED = frozenset(
    b"area base br col embed hr img input link meta param source track wbr p li dt dd option td th tr".split()
)


class Tag(msgspec.Struct, frozen=True, gc=False):
    """One tag, as it stands in the bytes."""

    name: bytes
    """In lower case."""
    closing: bool
    attributes: bytes
    """Everything between name and `>`."""


def tags(markup: bytes) -> Iterator[Tag]:
    """Every tag outside comments and raw text, in order. Linear. A tag that the page ends in is none."""
    for match in _TOKEN.finditer(markup):
        if match["name"] is not None and match.end("attributes") < len(markup):
            yield Tag(match["name"].lower(), bool(match["closing"]), match["attributes"])
        elif match[2] is not None and match.end("raw") < len(markup):
            yield Tag(match[2].lower(), False, match["raw"])


def attributes(tag: Tag) -> dict[str, str]:
    """A tag's attributes, names in lower case, the first of each name, references resolved."""
    found: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(tag.attributes):
        name = match[1].decode("utf-8", "replace").lower()
        value = (match[2] or match[3] or match[4] or b"").decode("utf-8", "replace")
        if name not in found:
            found[name] = _REFERENCE.sub(lambda m: html.unescape(m[0]), value) if "&" in value else value
        if len(found) >= MAX_ATTRIBUTES:
            break
    return found


def is_plain(markup: bytes) -> bool:
    """Whether the page surely has none of these: `base`, `area`, `iframe`, `frame`, a refresh, a link that it disowns."""
    return _PECULIAR.search(markup) is None


def has_base(markup: bytes) -> bool:
    """Whether the page may have a `base` element."""
    return _BASE.search(markup) is not None


def speaks_to(markup: bytes, agent: str) -> bool:
    """Whether a `meta` tag of the page may speak to robots: to all of them, or to `agent`."""
    return _meta_for(agent).search(markup) is not None


@lru_cache(maxsize=16)
def _meta_for(agent: str) -> Any:
    # What all matches begin with lets RE2 skip to the next tag: three times as fast as a search for the names alone.
    names = b"|".join(re2.escape(name.encode()) for name in ("robots", agent) if name)
    return re2.compile(rb"(?i)<meta[^>]*(?:%s)" % names, _BYTES)


def suspicion(markup: bytes) -> str:
    """Why a page must not be parsed in this process; empty if it may.

    The reasons: `too_many_tags`, `too_deep`, `too_many_attributes`.
    """
    # No tag is shorter than three bytes, so there is nothing to count on a small page.
    count = markup.count(b"<") if len(markup) > 3 * TRUSTED_TAGS else 0
    if count > MAX_TAGS:
        return "too_many_tags"
    if count <= TRUSTED_TAGS:
        find = markup.find
        if all(find(b"<", start, start + WINDOW) >= 0 for start in range(0, len(markup) - WINDOW, WINDOW)):
            return ""
    elif (count <= COUNTED_TAGS and _most_open(markup) <= MAX_DEPTH) or _is_plainly_flat(markup):
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


def _is_plainly_flat(markup: bytes) -> bool:
    """Whether tags counted by name, 0.1 us each, already show that little is open at once; :func:`_shape` costs 1.5 us each.

    Counting is right only where every `<name` and `</name` that is seen is a tag to the tokenizer as well. So comments and
    raw text are taken out first, and a page that has `<` or `>` inside a tag or a quoted value, or markup of any other
    kind, is not judged here.
    """
    plain = _HIDDEN.sub(b"", markup)
    if _CONFUSING.search(plain) or any(comment in markup for comment in _SHORT_COMMENTS):
        return False
    surplus: Counter[bytes] = Counter()
    for start in range(0, len(plain), SLICE):
        for name, count in Counter(_NAME.findall(plain, start, start + SLICE)).items():
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


def _shape(markup: bytes) -> str:
    """The same answer from every tag: how many elements are open at once, at the most, and attributes to a tag."""
    depth = 0
    opened: Counter[bytes] = Counter()
    for match in _TOKEN.finditer(markup):
        _, _, raw, closing, name, text = match.groups()
        if name is None:
            if raw is None:
                continue
            text = raw
        if len(text) > WINDOW and sum(1 for _ in _ATTRIBUTE.finditer(text)) > MAX_ATTRIBUTES:
            return "too_many_attributes"
        if name is None or (name := name.lower()) in _NOT_NESTED:
            continue
        if not closing:
            opened[name] += 1
            depth += 1
            if depth > MAX_DEPTH:
                return "too_deep"
        elif opened[name]:
            opened[name] -= 1
            depth -= 1
    return ""
