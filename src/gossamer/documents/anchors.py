"""The text of a link: what stands between its tag and its end, folded.

Place in the flow: :mod:`gossamer.parsing.html` asks for it where anchors are wanted. A link ends at its end tag, at the
next link and at the border of a table's cell, where the parser would end it too; what paragraphs it runs through, it keeps.
Scripts and style sheets in it are no text.
"""

import re
from collections.abc import Sequence

from gossamer.documents.markup import RAW, TAG, end_of_declaration, end_of_raw, resolved

#: Characters of an anchor text that are kept: enough for an index, bounded whatever the page (fault 76).
MAX_ANCHOR = 500

#: Bytes behind a link that are looked at for its text, where it has to be looked for: inline graphics come before it.
MAX_LOOKED_AT = 64 * MAX_ANCHOR

#: Bytes of a text that are folded: every character may be a reference, with white space around.
MAX_FOLDED = 16 * MAX_ANCHOR

#: Tags at which a text ends, opening or closing.
ENDS = frozenset(b"a td th tr".split())

_PLAIN_TAG = re.compile(rb"<[a-zA-Z/!?][^<>]*+>")
# The same, within one text of many.
_PLAIN_TAG_OF_ONE = re.compile(rb"<[a-zA-Z/!?][^<>\x01]*+>")

#: Between the texts of many links. Any of them may hold it, too: then each is folded by itself.
_BETWEEN = "\x01"

_MARKS = (b"!", b"?", b"/")


def folded(text: bytes) -> str:
    """The text of a stretch in which every tag ends at its first `>`, with runs of white space made one space."""
    if b"<" in text:
        text = _PLAIN_TAG.sub(b"", text)
    if len(text) > MAX_FOLDED:
        text = text[:MAX_FOLDED]
    return " ".join(resolved(text).split())[:MAX_ANCHOR]


def all_folded(texts: Sequence[bytes]) -> list[str]:
    """:func:`folded` of each text. They are folded as one: a page has a hundred links."""
    longest = max(map(len, texts), default=0)
    joined = _BETWEEN.encode().join(texts)
    if b"<" in joined:
        joined = _PLAIN_TAG_OF_ONE.sub(b"", joined)
    whole = " ".join(resolved(joined).split())
    anchors = whole.replace(f" {_BETWEEN}", _BETWEEN).replace(f"{_BETWEEN} ", _BETWEEN).split(_BETWEEN)
    if longest > MAX_FOLDED or len(anchors) != len(texts):
        return [folded(text) for text in texts]
    return [anchor[:MAX_ANCHOR] for anchor in anchors] if longest > MAX_ANCHOR else anchors


def anchor_at(markup: bytes, at: int) -> str:
    """The text of the link whose tag ends at `at`, wherever that is. Looks no further than :data:`MAX_LOOKED_AT`."""
    texts = []
    stop = min(len(markup), at + MAX_LOOKED_AT)
    while at < stop:
        start = markup.find(b"<", at, stop)
        texts.append(markup[at : start if start >= 0 else stop])
        if start < 0:
            break
        tag = TAG.match(markup, start, stop)
        if tag is None:
            if markup[start + 1 : start + 2] in _MARKS:
                at = end_of_declaration(markup, start)
            else:
                texts.append(b"<")
                at = start + 1
            continue
        name, at = tag["name"].lower(), tag.end()
        if name in ENDS:
            break
        if name in RAW and not tag["closing"]:
            at = end_of_raw(markup, name, at)
    return folded(b"".join(texts).replace(b"<", b"&lt;"))
