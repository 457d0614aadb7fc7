"""The text of an HTML page as a reader means it: without boilerplate (menus, footers, link lists) and without code (row S14).

Place in the flow: :class:`~gossamer.reading.document.Document` asks for it; language, fingerprint and index read it. It works
on the markup, not on the tree, so that pages in trouble have a text too, and in linear time.

Navigation, footers, asides and `pre` are left out. The rest falls into blocks, at every tag that is not inline
(:mod:`gossamer.reading.blocks`), and blocks are kept or dropped by number of words and share of words in links, of a block and
of its neighbours: the decision tree `NumWordsRules` of C. Kohlschütter, P. Fankhauser, W. Nejdl, "Boilerplate Detection
using Shallow Text Features", WSDM 2010, algorithm 2. Words in `code` count as words in links do.

NumPy is imported on the first text, so that a plain crawl does without it.
"""

import html
from collections.abc import Sequence

from gossamer.reading.language import SAMPLE

#: Characters of text that are kept of a page (fault 76): longer ones are lists and dumps.
MAX_TEXT = 100_000

#: Bytes of markup that are read at once: for most pages they are enough to tell language and fingerprint.
PART = 16 << 10

#: Parts that are read: 1 to 2 ms. What goes on without prose behind the end of one is passed over.
MAX_PARTS = 8

#: Characters behind which no further part is read for language and fingerprint.
GIST = SAMPLE

#: Bytes in which `<body` is looked for: what stands before is no prose.
MAX_HEAD = 64 << 10

#: Bytes of markup behind which nothing is read.
MAX_MARKUP = 1 << 20

#: Share of words in links above which a block is a menu (the tree's first question).
_MOSTLY_LINKS = 1 / 3
#: Share of words in links of the block before that speaks against a block.
_LINKS_BEFORE = 5 / 9


def main_text(markup: bytes, enough: int = MAX_TEXT) -> str:
    """The prose of a page, one block a line; empty where it has none.

    Args:
        markup: well-formed UTF-8.
        enough: characters behind which no further part is read.
    """
    from gossamer.reading.blocks import Part

    texts: list[str] = []
    spare: list[bytes] = []
    unclosed: set[int] = set()
    start, limit, length = max(markup.find(b"<body", 0, MAX_HEAD), 0), min(len(markup), MAX_MARKUP), 0
    for _ in range(MAX_PARTS):
        part = Part(markup, start, _end(markup, start, limit), limit, unclosed)
        shares = [few / number for few, number in zip(part.bare, part.words, strict=True)]
        keep = _kept(part.words, shares)
        if True in keep:
            texts.append(_prose(part.texts(keep)))
            length += len(texts[-1])
        elif not texts:
            # A page of a few words: what is not a link is what there is.
            spare.append(part.texts([share <= _MOSTLY_LINKS for share in shares]))
        start = part.behind
        if start >= limit or length >= enough:
            break
    return ("\n".join(texts) if texts else _prose(b"".join(spare)))[:MAX_TEXT]


def _end(markup: bytes, start: int, limit: int) -> int:
    """Where a part ends: before a tag, if there is one."""
    end = start + PART
    if end >= limit:
        return limit
    before = markup.rfind(b"<", start + 1, end)
    return end if before < 0 else before


def _kept(words: Sequence[int], shares: Sequence[float]) -> list[bool]:
    """Which blocks are content, by their words and the shares of them in links: `NumWordsRules` as published."""
    verdicts = []
    before = 0
    share_before = 0.0
    for count, share, after in zip(words, shares, (*words[1:], 0), strict=False):
        if share > _MOSTLY_LINKS:
            keep = False
        elif share_before <= _LINKS_BEFORE:
            keep = count > 16 or after > 15 or before > 4
        else:
            keep = count > 40 or after > 17
        verdicts.append(keep)
        before, share_before = count, share
    return verdicts


def _prose(blocks: bytes) -> str:
    """One block a line, with references resolved and runs of white space made one space."""
    if b"&" in blocks:
        text = " ".join(html.unescape(blocks.decode("utf-8", "replace")).split())
    else:
        text = b" ".join(blocks.split()).decode("utf-8", "replace")
    return "\n".join([line.strip() for line in text.split("\0")[1:]])
