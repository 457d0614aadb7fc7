"""Formulas of a page as TeX: those of MathML, and what KaTeX, MathJax and Wikipedia make of theirs.

Place in the flow: :mod:`main_part` rewrites a page that has formulas before it looks for blocks. A browser draws MathML, so its
text says nothing; most systems keep the TeX that it was made of beside it. TeX in the text of a page, as `$x^2$`, is text.

Promises: a formula stands once, as `\\(x^2\\)`, or `\\[x^2\\]` where it stands on its own; one without TeX is its text. Linear:
each formula is looked at once, and no further than its own end.
"""

import html
import re
from collections.abc import Iterator

from gossamer.documents.element_names import TAG_BYTES, end_of_advertisement

#: A page without formulas has none of these.
_SIGNS = (b"<math", b"math/tex")

# A formula of MathML; and what may be a script with TeX, or an element that a library drew beside them.
_BEGINS = re.compile(rb"<(?:math|script|span)\b[^<>]*+>")
_OF_FORMULAS = re.compile(
    rb"""\A<(?:math\b|script\b.*\btype\s*=\s*["']?math/tex|"""
    rb"""span\b.*\bclass\s*=\s*["']?(?:katex-html|MathJax(?:_Preview|_Display|_SVG|_CHTML)?)\b)""",
    re.DOTALL,
)
_TEX = re.compile(rb"""<annotation\b[^<>]*application/x-tex[^<>]*>([^<]*)</annotation>""")
_SAID = re.compile(rb"""\balttext\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)')""")
_ON_ITS_OWN = re.compile(rb"""\bdisplay\s*=\s*["']?block\b|mode=display""")
_TAG = re.compile(rb"<[^<>]*>")
# Two symbols of MathML of which one stands above, below or under the other, and how TeX writes them.
_SYMBOL = rb"\s*+(<m[ino]\b[^<>]*+>[^<>]*+</m[ino]>)"
_PAIR = re.compile(rb"<(msup|msub|mfrac)\b[^<>]*+>" + 2 * _SYMBOL + rb"\s*+</\1>")
_BETWEEN = {b"msup": b"^", b"msub": b"_", b"mfrac": b"/"}
# What Wikipedia puts around each formula.
_STYLE = re.compile(rb"\A\{\\displaystyle\s+(.*)\}\Z", re.DOTALL)
# A picture of the formula beside it.
_PICTURE = re.compile(rb"\s*+(?:</span>)?\s*+<(?:img|meta)\b[^<>]*\bmwe-math-fallback-image[^<>]*>")


def with_formulas(markup: bytes) -> bytes:
    """The same page with TeX for its formulas; the page itself where it has none."""
    if not any(map(markup.__contains__, _SIGNS)):
        return markup
    return b"".join(_pieces(markup))


def _pieces(markup: bytes) -> Iterator[bytes]:
    at, is_closed = 0, True
    for begin in _BEGINS.finditer(markup):
        tag = begin[0][:TAG_BYTES]
        if begin.start() < at or not _OF_FORMULAS.search(tag):
            continue
        if tag.startswith(b"<span"):
            end = -1 if not is_closed else end_of_advertisement(markup, begin.start(), b"span")
            made, behind = (b"", markup.find(b">", end) + 1) if end >= 0 else (begin[0], begin.end())
            is_closed = end >= 0  # each search costs up to 64 KB
        else:
            closing = b"</math>" if tag.startswith(b"<math") else b"</script>"
            end = markup.find(closing, begin.end())
            if end < 0:  # the page is cut, or very odd: nothing behind is looked at
                break
            inner, behind = markup[begin.end() : end], end + len(closing)
            made = _formula(tag, inner)
            if picture := _PICTURE.match(markup, behind):
                made, behind = made + b"</span>" * picture[0].startswith(b"</span>"), picture.end()
        yield markup[at : begin.start()]
        yield made
        at = behind
    yield markup[at:]


def _formula(tag: bytes, inner: bytes) -> bytes:
    """A formula as markup of text."""
    if tag.startswith(b"<script"):
        tex = html.escape(inner.decode("utf-8", "replace"), quote=False).encode()
    elif found := _TEX.search(inner):
        tex = found[1]
    elif said := _SAID.search(tag):
        tex = said[1] or said[2] or b""
    else:
        shown = _PAIR.sub(lambda pair: pair[2] + _BETWEEN[pair[1]] + pair[3], inner.partition(b"<annotation")[0])
        text = b"".join(_TAG.sub(b"", shown).split())
        return b" " + text + b" " if text else b""
    tex = tex.strip()
    if style := _STYLE.match(tex):
        tex = style[1].strip()
    if not tex:
        return b""
    return b"\\[" + tex + b"\\]" if _ON_ITS_OWN.search(tag) else b"\\(" + tex + b"\\)"
