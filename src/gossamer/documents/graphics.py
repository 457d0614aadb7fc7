"""Graphics and formulas in a page (`svg`, `math`), in which the tokenizer's rules differ: no raw text, but CDATA.

Place in the flow: :mod:`gossamer.documents.skim` asks, where it matters, whether a place lies in them. They are followed by their
tags (HTML, 13.2.6.5); the parser's repairs of what is misnested are not.

Following a tag costs 2 us, so as few are followed as can be. Most graphics are plain: one expression runs over all of such a
drawing. Nothing is followed between graphics, since nearly all end by their own end tags. Where a tag in them may end something
that is open around them, the page is followed anew from its beginning, with all of its tags.
"""

from bisect import bisect_right
from collections.abc import Sequence

from gossamer.documents.markup import CDATA, RAW, SPACE, TAG, VOID, end_of_other, end_of_raw
from gossamer.values.patterns import LazySpans

# HTML tags that end graphics and formulas, and elements in these that hold HTML again (13.2.6.5, 13.2.4.2).
_BREAKS_OUT = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol "
    b"p pre ruby s small span strong strike sub sup table tt u ul var".split()
)
_HOLDS_HTML = {
    b"svg": frozenset(b"foreignobject desc title".split()),
    b"math": frozenset(b"annotation-xml mi mo mn ms mtext".split()),
}
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

#: Steps (a tag, a comment, a plain drawing) at 2 to 5 us each. Markup after so many is taken for ordinary markup: a page of
#: graphics alone holds up the crawl no longer than other odd ones do.
MAX_STEPS = 60_000

_BEGINS_FOREIGN = LazySpans(rb"(?i)<(?:svg|math)[%s/>]" % SPACE)
# Plain graphics, up to their end tag: nothing in them holds HTML with tags, hides a tag, or begins graphics or formulas. Behind
# that end tag none are open, even if an end tag of something around has ended them before.
_PLAIN_TAGS = (
    b"a animate animatemotion animatetransform circle clippath defs ellipse fe[a-z]+ filter g image line lineargradient marker "
    b"mask metadata mpath path pattern polygon polyline radialgradient rect set stop switch symbol text textpath tspan use view "
    b"[a-z]+:[a-z]+"
)
_PLAIN_TEXTS = b"title desc style script"
_PLAIN_ATTRIBUTES = rb"""(?:[%(s)s]+[a-z][a-z0-9:._-]*=(?:"[^"<>]*"|'[^'<>]*'))*[%(s)s]*/?>""" % {b"s": SPACE}
_PLAIN = LazySpans(
    rb"(?i)<svg%(a)s(?:[^<]|</?(?:%(tags)s)%(a)s|%(texts)s|<!--[^<>-]*(?:-[^<>-]+)*-->)*</svg>"
    % {
        b"a": _PLAIN_ATTRIBUTES,
        b"tags": _PLAIN_TAGS.replace(b" ", b"|"),
        b"texts": b"|".join(
            rb"<%(t)s%(a)s[^<]*</%(t)s>" % {b"t": name, b"a": _PLAIN_ATTRIBUTES} for name in _PLAIN_TEXTS.split()
        ),
    },
)

_HTML = b""

_Open = tuple[bytes, bytes, bool]
"""An open element: its name; `svg`, `math` or nothing for HTML; whether it is theirs and holds HTML."""


class Graphics:
    """Tells whether a place is in graphics or formulas, by tags. Asked in order; linear in the bytes."""

    def __init__(self, markup: bytes, spans: Sequence[tuple[int, int]], *, exactly: bool = False) -> None:
        """Nothing is followed yet.

        Args:
            spans: stretches of it, in order, in which nothing hides a tag. Those before a place are added before it is asked for.
            exactly: follows every tag: what the short way is measured against.
        """
        self._markup = markup
        self._spans = spans
        self._at = 0
        self._steps = 0
        self._next = -1
        """Where the next of them may begin; less than :attr:`_at` where that is not known."""
        self._open: list[_Open] = []
        """The elements that are open: all of them if every tag is followed, otherwise theirs and those in them."""
        self._follows_all = exactly
        self._lacks_around = False
        """A tag asked for an element around them, while only some tags are followed."""

    def holds(self, at: int) -> bool:
        """Whether what begins at `at`, which is not before any place asked for earlier, is an element of theirs."""
        self._follow(at)
        return self._is_inside

    def takes_cdata(self, at: int) -> bool:
        """Whether what begins at `at` is in one of their elements, be it one that holds HTML: there, CDATA is text (13.2.5.42)."""
        self._follow(at)
        return self._is_foreign

    def _follow(self, at: int) -> None:
        find = self._markup.find
        while self._at < at:
            self._steps += 1
            if self._steps > MAX_STEPS:
                self._open.clear()
                self._at = len(self._markup)
                return
            if not self._open and not self._follows_all and self._goes_over(at):
                continue
            start = find(b"<", self._at, at)
            self._at = at if start < 0 else self._after(start)
            if self._lacks_around:
                self._at = self._steps = 0
                self._open.clear()
                self._follows_all, self._lacks_around = True, False

    def _goes_over(self, at: int) -> bool:
        """Outside of them, go on to where the next may begin; true if it does not begin before `at`, or is plain and passed."""
        if self._next < self._at:
            begins, _ = _BEGINS_FOREIGN.first(self._markup, self._at, len(self._markup))[0]
            self._next = begins if begins >= 0 else len(self._markup)
        if self._next >= at:
            self._at = at
            return True
        # In a span it is a tag for certain. Elsewhere it may be hidden: by something that begins behind the span before it.
        before = bisect_right(self._spans, (self._next, len(self._markup))) - 1
        if before >= 0:
            self._at = max(self._at, min(self._next, self._spans[before][1]))
        end = _PLAIN.here(self._markup, self._at, at)[0][1] if self._at == self._next else -1
        self._at = max(self._at, end)
        return end >= 0

    @property
    def _is_foreign(self) -> bool:
        return bool(self._open) and self._open[-1][1] != _HTML

    @property
    def _is_inside(self) -> bool:
        return self._is_foreign and not self._open[-1][2]

    def _after(self, start: int) -> int:
        """Follow what begins with the `<` at `start`; where the next thing may begin."""
        markup = self._markup
        was_inside = self._is_inside
        tag = TAG.match(markup, start)
        if tag is None:
            if self._is_foreign and markup.startswith(CDATA, start):
                return markup.find(b"]]>", start) + 1 or len(markup)
            return end_of_other(markup, start)
        closing, name, raw = tag.groups()
        name = name.lower()
        if closing:
            if was_inside and name in (b"p", b"br"):
                while self._is_inside:
                    self._open.pop()
            self._end(name, not self._is_foreign)
        else:
            self._see(name, raw)
            if name in RAW and not was_inside:
                return end_of_raw(markup, name, tag.end())
        return int(tag.end())

    def _see(self, name: bytes, raw: bytes) -> None:
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
        if name in VOID or name in RAW or (not self._open and not self._follows_all):
            return
        if name in _OF_TABLES and not any(one[0] == b"table" for one in self._open):
            self._lacks_around = not self._follows_all
            return
        self._push((name, _HTML, False))

    def _push(self, opened: _Open) -> None:
        if len(self._open) >= MAX_FOLLOWED:
            del self._open[0]
        self._open.append(opened)

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
        self._lacks_around = bool(self._open) and not self._follows_all
