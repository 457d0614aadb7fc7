"""The text of an HTML page as a reader means it: without boilerplate (menus, footers, link lists) and without code (row S14).

Place in the flow: :class:`~gossamer.documents.document.Document` asks for it; the index, exports and tables read it. It works on
the markup, not on the tree, so that pages in trouble have a text too, and in linear time. Navigation, footers, asides and elements
that call themselves advertisements (:mod:`gossamer.documents.element_names`) are left out; of the blocks of the others, between
tags that are not inline (:mod:`gossamer.documents.blocks`), :mod:`gossamer.documents.main_part` chooses those that are the text.

Language and fingerprint of every page that a crawl fetches need only the beginning of its prose, and need it cheaply:
:func:`prose` reads no more of the page than that, part by part. Words in `code` count as words in links do; a block that consists
of them for the most part is a menu. Of the others, those are kept that look like prose by their words and their neighbours': the
decision tree `NumWordsRules` of C. Kohlschütter, P. Fankhauser, W. Nejdl, "Boilerplate Detection using Shallow Text Features",
WSDM 2010, algorithm 2. Where it takes away much, no menu is all that is asked for (decision 48).

NumPy is imported on the first text, so that a plain crawl does without it.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING, Literal

from gossamer.documents.language import SAMPLE
from gossamer.documents.markup import SPACE
from gossamer.values.patterns import lazy_pattern

if TYPE_CHECKING:
    from gossamer.documents.blocks import Part
    from gossamer.documents.main_part import MainPart


# -- blocks as lines of text: references resolved, white space made single spaces
# Most pages have few references and only ASCII white space; the rest of the work is done where something else is found.

#: References that are remembered: pages have a few, over and over.
REMEMBERED_REFERENCES = 1_024

#: A reference as `html.unescape` finds them: by a number of any length, or with a name of 32 characters at most.
_REFERENCE = lazy_pattern(r"(&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[^\t\n\f <&#;]{1,32};?))")
#: Characters of the longest one with a name.
_LONGEST_NAMED = 34
#: Digits of the largest number of a character, and one more.
_MOST_DIGITS = 8

#: White space that `str.split` knows and `bytes.split` does not. Where it has several bytes, the first is looked for first,
#: which is quick.
_SEPARATORS = (b"\x1c", b"\x1d", b"\x1e", b"\x1f")
_WIDE_SPACES = tuple(
    (pattern[:1], lazy_pattern(pattern))
    for pattern in (
        b"\xc2(?:\x85|\xa0)",
        b"\xe1(?:\x9a\x80)",
        b"\xe2(?:\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)",
        b"\xe3(?:\x80\x80)",
    )
)


def lines(blocks: bytes) -> str:
    """One block a line, with references resolved and runs of white space made one space. `blocks`: UTF-8, a NUL before each
    block; of the white space of ASCII they have single spaces alone."""
    text = blocks.decode("utf-8", "replace")
    if "&" in text:
        # Some references stand for white space, or for nothing between two spaces. White space of every script counts here.
        pieces = _REFERENCE.split(text)
        characters = pieces[1::2] = list(map(_character, pieces[1::2]))
        text = "".join(pieces)
        if (
            any(not one or any(map(str.isspace, one)) for one in set(characters))
            or any(map(blocks.__contains__, _SEPARATORS))
            or (not blocks.isascii() and any(first in blocks and whole.search(blocks) for first, whole in _WIDE_SPACES))
        ):
            text = " ".join(text.split())
    return "\n".join(map(str.strip, text.split("\0")[1:]))


def _character(reference: str) -> str:
    """The character of a reference, as the standard library has it; that library raises for thousands of digits."""
    if len(reference) > _LONGEST_NAMED:
        digits = 3 if reference[2] in "xX" else 2
        number = reference[digits:].rstrip(";").lstrip("0")
        if not 0 < len(number) <= _MOST_DIGITS:
            return "\ufffd"
        reference = f"{reference[:digits]}{number};"
    return _remembered(reference)


@lru_cache(REMEMBERED_REFERENCES)
def _remembered(reference: str) -> str:
    import html  # with the first page

    return html.unescape(reference)


#: The part of a page that is its text: its prose, or every word that a browser shows.
TextChoice = Literal["main", "all"]

#: Characters of text that are kept of a page (fault 76): longer ones are lists and dumps. The caller that cuts a text tells it.
MAX_TEXT = 100_000

#: The trouble of a page whose text was cut.
TEXT_CUT = "text_cut"

#: Bytes of markup that are read at once: for most pages they are enough to tell language and fingerprint.
PART = 16 << 10

#: Bytes of a part behind others that held no text: each is twice as long as the one before it, up to this. Long ones cost half as
#: much a byte, and what there is to read of them is judged as well.
MAX_PART = 256 << 10

#: Characters behind which no further part is read for language and fingerprint.
GIST = SAMPLE

#: Share of words in links and code above which a block is a menu, and above which the tree says so.
_MENU, _MOSTLY_LINKS = 1 / 2, 1 / 3
#: Share of words in links of the block before that speaks against a block.
_LINKS_BEFORE = 5 / 9
#: Share of the words of blocks that are no menus that the tree has to leave for it to be believed.
_BELIEVED = 3 / 4


# The markup before the body, as far as it is plain: half a part, most often. The rest is read like anything else.
HEAD = lazy_pattern(
    rb"(?i)(?:[%(s)s]++|<!--(?!-?>)[^-]*+(?:-(?!-!?>)[^-]*+)*+-->|%(raw)s"
    rb"|<(?:!doctype|/?(?:html|head|meta|link|base))(?=[%(s)s/>])(?:=[%(s)s]*+(?:\"[^\"]*+\"|'[^']*+')?+|[^>=])*+>)*+"
    % {
        b"s": SPACE,
        b"raw": b"|".join(
            rb"<%(n)s(?=[%(s)s>])[^>]*+>[^<]*+(?:<(?!/%(n)s)[^<]*+)*+</%(n)s[^>]*+>" % {b"n": name, b"s": SPACE}
            for name in (b"script", b"style", b"title")
        ),
    }
)


_TAG_BEGINS = lazy_pattern(rb"<[a-zA-Z/]")


def main_text(markup: bytes, enough: int = MAX_TEXT, main: "MainPart | None" = None) -> str:
    """The text of the main part of a page, one block a line; empty where it has none. `enough`: characters behind which no further
    part is added; `main`: that part, where it is known. The text can be longer by one part; the caller cuts it."""
    if main is None:
        from gossamer.documents.main_part import MainPart

        main = MainPart(markup)
    if main.is_cut:  # a list or a dump of hundreds of thousands of blocks: no article, and nothing of it is lost
        return prose(markup, enough)
    found: list[str] = []
    length = 0
    for blocks in main.texts():
        if blocks:
            found.append(lines(blocks))
            length += len(found[-1])
        if length >= enough:
            break
    return "\n".join(found)


def prose(markup: bytes, enough: int) -> str:
    """The beginning of the prose of a page, one block a line, read no further than is needed. `enough`: characters behind which
    no further part is read. The text can be longer by one part; the caller cuts it."""
    return _text(markup, enough, set(), lambda part: part.prose(kept_as_prose))


def all_text(markup: bytes, enough: int = MAX_TEXT) -> str:
    """Every word of a page that is for readers, menus and code among them, one block a line. `enough`: characters behind which no
    further part is read."""
    from gossamer.documents.blocks import ADVERTISEMENTS
    from gossamer.documents.element_names import WORDED

    return _text(markup, enough, {*WORDED, ADVERTISEMENTS}, lambda part: part.all_words())


#: The functions that make a page's text of its markup, by the choice.
TEXTS = {"main": main_text, "all": all_text}


def _text(markup: bytes, enough: int, shown: set[int | bytes], texts: Callable[["Part"], bytes]) -> str:
    """Blocks that are kept, part by part; `shown` are kinds of elements that are text though no prose."""
    from gossamer.documents.blocks import Part

    found: list[str] = []
    head = HEAD.match(markup)
    start, length, size = head.end() if head else 0, 0, PART
    while start < len(markup) and length < enough:
        start, end = part_of(markup, start, size)
        part = Part(markup, start, end, shown)
        blocks = texts(part)
        if blocks:
            found.append(lines(blocks))
            length += len(found[-1])
        size = PART if blocks else min(2 * size, MAX_PART)
        start = part.behind
    return "\n".join(found)


def kept_as_prose(words: Sequence[int], bare: Sequence[int]) -> list[bool]:
    """The blocks that are prose, by their words and the shares of them in links, or at least no menu."""
    shares = [few / number for few, number in zip(bare, words, strict=True)]
    kept, before, share_before = [], 0, 0.0
    for count, share, after in zip(words, shares, (*words[1:], 0), strict=False):  # `NumWordsRules` as published
        if share > _MOSTLY_LINKS:
            keep = False
        elif share_before <= _LINKS_BEFORE:
            keep = count > 16 or after > 15 or before > 4
        else:
            keep = count > 40 or after > 17
        kept.append(keep)
        before, share_before = count, share
    no_menu = [share <= _MENU for share in shares]
    left, most = (sum(compress(words, some)) for some in (kept, no_menu))
    return kept if left >= _BELIEVED * most else no_menu


def part_of(markup: bytes, start: int, size: int) -> tuple[int, int]:
    """Start and end of a part: before a tag, if there is one. Tags longer than it, as images in their URLs, are left out."""
    end = start + size
    while end < len(markup) and _TAG_BEGINS.match(markup, start) and markup.find(b">", start, end) < 0:
        start = (markup.find(b">", end) + 1) or len(markup)
        end = start + size
    if end >= len(markup):
        return start, len(markup)
    before = markup.rfind(b"<", start + 1, end)
    return start, end if before < 0 else before
