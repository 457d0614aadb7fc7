"""Graphics and formulas in a page (`svg`, `math`), in which the tokenizer's rules differ: no raw text, but CDATA.

Place in the flow: :mod:`gossamer.model.skim` asks, where it matters, whether a place lies in them. They are followed by their
tags (HTML, 13.2.6.5), not by what a tree builder has open.
"""

import re2

from gossamer.model.markup import CDATA, DECLARES, RAW, SPACE, TAG, end_of_declaration, end_of_raw

# HTML tags that end graphics and formulas, and elements in these that hold HTML again (13.2.6.5, 13.2.4.2).
_BREAKS_OUT = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol "
    b"p pre ruby s small span strong strike sub sup table tt u ul var".split()
)
_HOLDS_HTML = {
    b"svg": frozenset(b"foreignobject desc title".split()),
    b"math": frozenset(b"annotation-xml mi mo mn ms mtext".split()),
}

#: Elements that are followed into graphics: no drawing nests like this, and looking for what an end tag closes is quadratic.
MAX_FOREIGN = 100

_BYTES = re2.Options()
_BYTES.encoding = re2.Options.Encoding.LATIN1
_HAS_FOREIGN = re2.compile(rb"(?i)<(?:svg|math)[%s/>]" % SPACE, _BYTES)


class Graphics:
    """Tells whether a place is in graphics or formulas, by tags. Asked in order; reads no byte twice."""

    def __init__(self, markup: bytes) -> None:
        self._markup = markup
        self._at = 0
        self._first: int | None = None
        self._open: list[bytes] = []

    def holds(self, at: int) -> bool:
        """Whether what begins at `at`, which is not before any place asked for earlier, is an element of theirs."""
        markup = self._markup
        if self._first is None:
            first = _HAS_FOREIGN.search(markup)
            self._first = first.start() if first else len(markup)
        if at <= self._first:
            return False
        while self._at < at:
            start = markup.find(b"<", self._at, at)
            self._at = at if start < 0 else self._after(start)
        return self._is_inside

    @property
    def _is_inside(self) -> bool:
        return bool(self._open) and self._open[-1] in _HOLDS_HTML

    def _after(self, start: int) -> int:
        markup = self._markup
        tag = TAG.match(markup, start)
        if tag is None:
            if self._is_inside and markup.startswith(CDATA, start):
                return markup.find(b"]]>", start) + 1 or len(markup)
            declares = markup[start + 1 : start + 2] in DECLARES
            return end_of_declaration(markup, start) if declares else start + 1
        name, was_inside = tag["name"].lower(), self._is_inside
        if tag["closing"]:
            self._close(name)
        else:
            self._see(name, tag["attributes"])
            if name in RAW and not was_inside:
                return end_of_raw(markup, name, tag.end())
        return int(tag.end())

    def _see(self, name: bytes, raw: bytes) -> None:
        inside = self._is_inside
        if inside and name in _BREAKS_OUT:
            while self._is_inside:
                self._open.pop()
        elif (
            (name in _HOLDS_HTML or (inside and name in _HOLDS_HTML[self._open[-1]]))
            and not raw.endswith(b"/")
            and len(self._open) < MAX_FOREIGN
        ):
            self._open.append(name)

    def _close(self, name: bytes) -> None:
        if self._is_inside and name in (b"p", b"br"):
            self._see(b"p", b"")
        elif name in self._open and (self._is_inside or self._open[-1] == name):
            while self._open.pop() != name:
                pass
