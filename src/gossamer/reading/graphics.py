"""Graphics and formulas in a page (`svg`, `math`), in which the tokenizer's rules differ: no raw text, but CDATA.

Place in the flow: :mod:`gossamer.reading.skim` asks, where it matters, whether a place lies in them. They are followed by their
tags (HTML, 13.2.6.5), and so is what is open around them, since its end tags end them; the parser's repairs of what is
misnested are not.
"""

import re2

from gossamer.reading.markup import CDATA, DECLARES, RAW, SPACE, TAG, end_of_declaration, end_of_raw

# HTML tags that end graphics and formulas, and elements in these that hold HTML again (13.2.6.5, 13.2.4.2).
_BREAKS_OUT = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol "
    b"p pre ruby s small span strong strike sub sup table tt u ul var".split()
)
_HOLDS_HTML = {
    b"svg": frozenset(b"foreignobject desc title".split()),
    b"math": frozenset(b"annotation-xml mi mo mn ms mtext".split()),
}
# HTML elements without content: never open.
_VOID = frozenset(
    b"area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr".split()
)
# HTML elements that an end tag does not reach beyond (13.2.4.2): that of any of the special ones, "has an element in scope",
# and that of all others.
_BARRIERS = frozenset(b"applet caption html table td th marquee object template".split())
_SPECIAL = _BARRIERS | frozenset(
    b"address article aside blockquote body button center colgroup dd details dir div dl dt fieldset figcaption figure footer "
    b"form frameset h1 h2 h3 h4 h5 h6 head header hgroup li listing main menu nav ol p plaintext pre search section select "
    b"summary tbody tfoot thead tr ul".split()
)
# HTML elements that are there in a table alone.
_OF_TABLES = frozenset(b"caption colgroup tbody td tfoot th thead tr".split())

#: Elements that are followed at once, the innermost: an end tag looks through them, and what stands further out seldom ends here.
MAX_FOLLOWED = 40

#: Tags that are followed at 5 to 20 us each. What comes after so many is taken for ordinary markup: a page of graphics alone
#: holds up the crawl no longer than other odd ones do.
MAX_TAGS = 60_000

_BYTES = re2.Options()
_BYTES.encoding = re2.Options.Encoding.LATIN1
_HAS_FOREIGN = re2.compile(rb"(?i)<(?:svg|math)[%s/>]" % SPACE, _BYTES)

_HTML = b""

_Open = tuple[bytes, bytes, bool]
"""An open element: its name; `svg`, `math` or nothing for HTML; whether it is theirs and holds HTML."""


class Graphics:
    """Tells whether a place is in graphics or formulas, by tags. Asked in order; reads no byte twice."""

    def __init__(self, markup: bytes) -> None:
        self._markup = markup
        self._at = 0
        self._tags = 0
        self._first: int | None = None
        self._open: list[_Open] = []

    def holds(self, at: int) -> bool:
        """Whether what begins at `at`, which is not before any place asked for earlier, is an element of theirs."""
        self._follow(at)
        return self._is_inside

    def takes_cdata(self, at: int) -> bool:
        """Whether what begins at `at` is in one of their elements, be it one that holds HTML: there, CDATA is text (13.2.5.42)."""
        self._follow(at)
        return self._is_foreign

    def _follow(self, at: int) -> None:
        markup = self._markup
        if self._first is None:
            first = _HAS_FOREIGN.search(markup)
            self._first = first.start() if first else len(markup)
        if at <= self._first:
            return
        while self._at < at:
            start = markup.find(b"<", self._at, at)
            self._at = at if start < 0 else self._after(start)

    @property
    def _is_foreign(self) -> bool:
        return bool(self._open) and self._open[-1][1] != _HTML

    @property
    def _is_inside(self) -> bool:
        return self._is_foreign and not self._open[-1][2]

    def _after(self, start: int) -> int:
        markup = self._markup
        tag = TAG.match(markup, start)
        if tag is None:
            if self._is_foreign and markup.startswith(CDATA, start):
                return markup.find(b"]]>", start) + 1 or len(markup)
            declares = markup[start + 1 : start + 2] in DECLARES
            return end_of_declaration(markup, start) if declares else start + 1
        self._tags += 1
        if self._tags > MAX_TAGS:
            self._open.clear()
            return len(markup)
        name, was_inside = tag["name"].lower(), self._is_inside
        if tag["closing"]:
            self._close(name)
        else:
            self._see(name, tag["attributes"])
            if name in RAW and not was_inside:
                return end_of_raw(markup, name, tag.end())
        return int(tag.end())

    def _see(self, name: bytes, raw: bytes) -> None:
        """A start tag."""
        if self._is_inside and name not in _BREAKS_OUT:
            kind = self._open[-1][1]
            if not raw.endswith(b"/"):
                self._push((name, kind, name in _HOLDS_HTML[kind]))
            return
        while self._is_inside:
            self._open.pop()
        if name in _HOLDS_HTML:
            if not raw.endswith(b"/"):
                self._push((name, name, False))
            return
        if name == b"a":
            self._end(name, True)  # a link ends the one before it
        if name in _VOID or name in RAW or (name in _OF_TABLES and not any(one[0] == b"table" for one in self._open)):
            return
        self._push((name, _HTML, False))

    def _push(self, opened: _Open) -> None:
        if len(self._open) >= MAX_FOLLOWED:
            del self._open[0]
        self._open.append(opened)

    def _close(self, name: bytes) -> None:
        """An end tag."""
        if self._is_inside and name in (b"p", b"br"):
            while self._is_inside:
                self._open.pop()
        self._end(name, not self._is_foreign)

    def _end(self, name: bytes, is_html: bool) -> None:
        """Close the last element of this name that an end tag reaches: of theirs unless `is_html`, then of the HTML around."""
        barriers = _BARRIERS if name in _SPECIAL else _SPECIAL
        for place in range(len(self._open) - 1, -1, -1):
            opened, kind, holds_html = self._open[place]
            is_html = is_html or kind == _HTML
            if opened == name and (kind == _HTML or not is_html):
                del self._open[place:]
                return
            if is_html and (holds_html or (kind == _HTML and opened in barriers)):
                return
