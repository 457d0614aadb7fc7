"""The text of an HTML page as a reader means it: without boilerplate (menus, footers, link lists) and without code (MISSION S14).

Place in the flow: :class:`~gossamer.model.document.Document` asks for it once a page; language, fingerprint and index read
it. It works on the markup, not on the tree, so that pages in trouble have a text too, and in linear time.

Navigation, footers, asides and `pre` are cut out. The rest falls into blocks, at every tag that is not inline, and blocks
are kept or dropped by number of words and share of words in links, of a block and of its neighbours: the decision tree
`NumWordsRules` of C. Kohlschütter, P. Fankhauser, W. Nejdl, "Boilerplate Detection using Shallow Text Features", WSDM
2010, algorithm 2. Words in `code` count as words in links do.
"""

import html
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import re2

#: Characters of text that are kept of a page (FAULTS 76): longer ones are lists and dumps.
MAX_TEXT = 100_000

#: Bytes of markup that are looked at: 1 to 2 ms. What comes after them hardly ever changes a language or a fingerprint.
MAX_MARKUP = 64 << 10

_BYTES = re2.Options()
_BYTES.encoding = re2.Options.Encoding.LATIN1
_BYTES.dot_nl = True
_BYTES.case_sensitive = False
# Elements without prose, to the next end tag of their name: an element that nests in itself shows its end, which does not
# matter, and one that is never closed is kept, which is the safer error. `form` is not here: it holds whole pages.
_HIDDEN = re2.compile(
    rb"<!--.*?--!?>|"
    + b"|".join(
        rb"<%(n)s(?:[\t\n\f\r /][^<>]*)?>.*?</%(n)s[\t\n\f\r />]" % {b"n": name}
        for name in (
            b"script style textarea title xmp iframe noembed noframes noscript template svg math object video audio canvas "
            b"pre nav footer aside button select menu dialog"
        ).split()
    ),
    _BYTES,
)

# What a tag does to the text around it.
_ENDS, _INLINE, _OPENS_BARE, _CLOSES_BARE, _NO_TAG = range(5)


def _kinds() -> dict[str, int]:
    """By tag as it stands behind `<`, in lower case without attributes. Every tag that is not here ends a block."""
    inline = (
        "abbr acronym b bdi bdo big cite data del dfn em font i ins mark nobr q rp rt ruby s small span strike strong sub sup "
        "time u var wbr"
    )
    ends = "p div li ul ol dl dt dd td th tr table tbody thead h1 h2 h3 h4 h5 h6 br section article header blockquote"
    kinds = {}
    for kind, closing, names in (
        (_INLINE, _INLINE, inline),
        (_ENDS, _ENDS, ends),
        (_OPENS_BARE, _CLOSES_BARE, "a code samp kbd tt"),
    ):
        for name in names.split():
            kinds[name], kinds[f"/{name}"] = kind, closing
    return kinds


_KINDS = _kinds()

# Scripts without spaces between words; about two of their characters make a word.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_CHARACTERS_A_WORD = 2

#: Share of words in links above which a block is a menu (the tree's first question).
_MOSTLY_LINKS = 1 / 3
#: Share of words in links of the block before that speaks against a block.
_LINKS_BEFORE = 5 / 9


class Block(NamedTuple):
    """A run of text between two tags that are not inline."""

    text: str
    words: int
    bare: float
    """Share of the words that stand in links or code."""


def main_text(markup: bytes) -> str:
    """The prose of a page, one block a line; empty where it has none.

    Args:
        markup: well-formed UTF-8.
    """
    blocks = list(_blocks(_HIDDEN.sub(b"<p>", markup[:MAX_MARKUP]).decode("utf-8", "replace")))
    kept = [block.text for block, keep in zip(blocks, _kept(blocks), strict=True) if keep]
    if not kept:
        # A page of a few words: what is not a link is what there is.
        kept = [block.text for block in blocks if block.bare <= _MOSTLY_LINKS]
    return "\n".join(kept)[:MAX_TEXT]


def _kept(blocks: Sequence[Block]) -> list[bool]:
    """Which blocks are content: `NumWordsRules` as published."""
    nothing = Block("", 0, 0.0)
    verdicts = []
    before = nothing
    for position, block in enumerate(blocks):
        after = blocks[position + 1] if position + 1 < len(blocks) else nothing
        if block.bare > _MOSTLY_LINKS:
            keep = False
        elif before.bare <= _LINKS_BEFORE:
            keep = block.words > 16 or after.words > 15 or before.words > 4
        else:
            keep = block.words > 40 or after.words > 17
        verdicts.append(keep)
        before = block
    return verdicts


def _blocks(text: str) -> Iterator[Block]:
    """The blocks of a page that has lost what holds no prose. Links and code end with their block, closed or not."""
    kind_of = _KINDS.get
    prose: list[str] = []
    bare: list[str] = []
    depth = 0
    head, *pieces = text.split("<")
    prose.append(head)
    for piece in pieces:
        tag, _, behind = piece.partition(">")
        kind = kind_of(tag)
        if kind is None:
            kind = kind_of(tag.partition(" ")[0])
            if kind is None:
                kind = _kind(tag)
        if kind == _NO_TAG:
            behind = f"<{piece}"
        elif kind == _ENDS:
            if prose:
                yield from _block(prose, bare)
                prose, bare = [], []
            depth = 0
        elif kind == _OPENS_BARE:
            depth += 1
        elif kind == _CLOSES_BARE:
            depth = max(0, depth - 1)
        if behind:
            prose.append(behind)
            if depth:
                bare.append(behind)
    yield from _block(prose, bare)


def _kind(tag: str) -> int:
    """The kind of a tag that is rare, in capitals, or has another white space than one blank behind its name."""
    name = tag.split(None, 1)[0].lower() if tag and not tag[0].isspace() else ""
    if not name.lstrip("/")[:1].isalpha():
        return _ENDS if name[:1] in ("!", "?") else _NO_TAG
    return _KINDS.get(name.removesuffix("/"), _ENDS)


def _block(prose: list[str], bare: list[str]) -> Iterator[Block]:
    text = _folded("".join(prose))
    if text:
        words = _words(text)
        yield Block(text, words, min(1.0, _words(" ".join(bare)) / words) if bare else 0.0)


def _folded(text: str) -> str:
    """References resolved, runs of white space made one space."""
    return " ".join((html.unescape(text) if "&" in text else text).split())


def _words(text: str) -> int:
    """About how many words a folded text has; no text has none."""
    words = text.count(" ") + 1
    if not text.isascii():
        words += len(_UNSPACED.findall(text)) // _CHARACTERS_A_WORD
    return words
