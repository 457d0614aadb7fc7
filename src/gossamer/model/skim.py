"""The tags of a page that a crawler asks for, found without a tree.

Place in the flow: :class:`~gossamer.model.document.Document` skims a page once; its title, base and robots tags are read from
that, and :mod:`gossamer.stages.process.html` reads links from it. The parser is for processors that ask for a tree.

**How.** In most of a page a tag is whatever stands between `<` and the next `>`. So one search by automaton (RE2) goes from
one *peculiar* place to the next: a comment or a tag that holds `<` or `>`, an element whose content is text (`script`), a tag
that is read one by one (`link`, `title`). Those are taken exactly, by the rules of :mod:`gossamer.model.markup`. What lies between
two of them is a :data:`Span`: a stretch in which `<a[^<>]*>` is right, so that whoever wants links runs one regular
expression over it. The head is taken exactly throughout, to know where it ends. A page with very many peculiar places is
taken exactly from there on. All of it is linear.

**What a tree would show, and this does not**, by choice; checked against the parser in `tests/properties/test_skim.py`:

- A link is found once, where it stands. The parser repeats an `a` that is left open in the next paragraphs, and moves what
  stands in a table outside of its cells before the table.
- Links in a frameset, and attributes `xlink:href` of `a` outside of graphics, are links.
- Where a frameset begins after other content, its frames count only if that content was no text, nor `body` or any tag that
  rules a frameset out; the parser drops that content then, this does not.
- What is in `template` is no part of the page, as in the tree; what is in `select` or `noscript` is.
- In graphics and formulas (`svg`, `math`), `title`, `style` and `script` are ordinary elements and CDATA is text, as in the
  tree; where HTML begins again in them is followed only by tags, not by what the parser has open.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any

import msgspec
import re2

from gossamer.model.markup import ATTRIBUTE, MAX_ATTRIBUTES, RAW, SPACE, TAG, attributes, end_of_declaration, end_of_raw

#: Tags taken one by one that are kept of a page: five times the links that are, so that nothing else crowds them out (FAULTS 76).
MAX_KEPT = 250_000

#: Peculiar places (4 us each) after which everything is taken exactly (1 us a tag): a hostile page, or a very odd one.
MAX_PECULIAR = 2_000

#: A tag with :data:`MAX_ATTRIBUTES` and no `<` in them is longer than two of these, so it covers one that begins at a
#: multiple of it: looking for a `<` in each tells at once that there is no such tag.
WINDOW = 2_048

#: A stretch of the page, from and up to a position, in which nothing hides a tag, and none of :data:`SINGLED` begins.
Span = tuple[int, int]


class Tag(msgspec.Struct, frozen=True, gc=False):
    """One start tag, taken exactly."""

    name: bytes
    """In lower case."""
    raw: bytes
    """Everything between name and `>`."""
    start: int
    end: int
    """Behind its `>`."""
    text_end: int
    """Where the content ends if it is raw text; otherwise :attr:`end`."""

    @property
    def attributes(self) -> dict[str, str]:
        """Names in lower case."""
        return attributes(self.raw)


#: Start tags that are always taken one by one: those whose content is text, those that say something of the page, and those
#: whose meaning depends on where they stand.
SINGLED = RAW | frozenset(b"plaintext template html base link meta area frame frameset form".split())

#: Start tags that lie in spans, and may matter to who looks for links there.
SPANNED = frozenset(b"a img source video audio track embed object input body image use".split())

# What may stand in a head; anything else ends it (13.2.6.4.4 and .6).
_IN_HEAD = frozenset(
    b"html head base basefont bgsound link meta title noscript noframes style script template".split()
)
_ENDS_HEAD = frozenset(b"body html br".split())

# Before these, a frameset is no longer taken (13.2.6.4.7, "frameset-ok flag").
_RULES_FRAMES_OUT = frozenset(
    b"body li dd dt button pre listing applet marquee object table area br embed img image keygen wbr input hr textarea xmp "
    b"iframe select".split()
)
# HTML tags that end graphics and formulas, and elements in these that hold HTML again (13.2.6.5, 13.2.4.2).
_BREAKS_OUT = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol "
    b"p pre ruby s small span strong strike sub sup table tt u ul var".split()
)
_HOLDS_HTML = frozenset(b"foreignobject desc title annotation-xml mi mo mn ms mtext".split())
_FOREIGN = frozenset((b"svg", b"math"))
_MAX_FOREIGN = 100

_WHITE = b"\t\n\f\r "
_LESS_THAN, _SLASH = b"</"
_DECLARES = (b"!", b"?", b"/")
_CDATA = b"<![CDATA["

_BYTES = re2.Options()
_BYTES.encoding = re2.Options.Encoding.LATIN1
# In turn: anything that begins like a tag or a declaration, with a `<` in it; a quoted value with `<` or `>`; a comment that its
# first `>` does not end; CDATA; tags by name.
_PECULIAR = re2.compile(
    rb"<[a-zA-Z/!?][^<>]*<"
    rb"""|=[%(s)s]*(?:"[^"<>]*[<>]|'[^'<>]*[<>])"""
    rb"|<!--[^<>]*[^-<>]-?>"
    rb"|<!\["
    rb"|(?i:<(?:%(names)s|/template|/form)[%(s)s/>])" % {b"s": SPACE, b"names": b"|".join(sorted(SINGLED))},
    _BYTES,
)
_HAS_FOREIGN = re2.compile(rb"(?i)<(?:svg|math)[%s/>]" % SPACE, _BYTES)


class Skim:
    """One page, skimmed. Its tags and spans, in order, are all there is of it outside comments, raw text and templates."""

    def __init__(self, markup: bytes, *, exactly: bool = False) -> None:
        """Skims it.

        Args:
            markup: well-formed UTF-8.
            exactly: takes every tag one by one, at ten times the cost: what the short way is measured against.
        """
        self.markup = markup
        self.pieces: list[Tag | Span] = []
        self.complete = True
        """False where :data:`MAX_KEPT` cut it."""
        self.is_crowded = False
        """A tag has more than :data:`~gossamer.model.markup.MAX_ATTRIBUTES`."""
        self._templates = 0
        self._in_form = False
        self._takes_frames: bool | None = None
        self._foreign = _Foreign(markup)
        self.head_end = self._skim_head()
        """Where the head ends: at the first tag or text that no head can hold."""
        if exactly:
            self._skim_exactly(self.head_end)
        else:
            self._skim_body(self.head_end)

    @cached_property
    def tags(self) -> list[Tag]:
        """The tags that were taken one by one."""
        return [piece for piece in self.pieces if type(piece) is Tag]

    def named(self, name: bytes) -> Iterator[Tag]:
        """Those of a name in :data:`SINGLED`."""
        return (tag for tag in self.tags if tag.name == name)

    # -- ways through the page

    def _skim_head(self) -> int:
        """Takes the head exactly, and says where it ends."""
        markup, at = self.markup, 0
        while (start := markup.find(b"<", at)) >= 0:
            tag = TAG.match(markup, start)
            if not self._templates:
                if start > at and markup[at:start].strip(_WHITE):
                    return at
                if tag is None and markup[start + 1 : start + 2] not in _DECLARES:
                    return start
                if tag is not None and (
                    tag["name"].lower() in _ENDS_HEAD if tag["closing"] else tag["name"].lower() not in _IN_HEAD
                ):
                    return start
            at = self._take(start, tag)
        return at

    def _skim_body(self, begin: int) -> None:
        """From one peculiar place to the next."""
        markup, search = self.markup, _PECULIAR.search
        # Between `text` and `at` no tag is open, so that nothing is looked back over twice.
        at = text = begin
        for _ in range(MAX_PECULIAR):
            peculiar = search(markup, at)
            if peculiar is None:
                self._span(begin, len(markup))
                return
            seen, stop = peculiar.span()
            start = seen if markup[seen] == _LESS_THAN else markup.rfind(b"<", text, seen)
            tag = TAG.match(markup, start) if start >= 0 else None
            if start < 0 or (start < seen and self._end_of(start, tag) <= seen):
                at = text = stop - 1  # a quote in the text
                continue
            self._span(begin, start)
            begin = at = text = self._take(start, tag)
        self._span(begin, at)
        self._skim_exactly(at)

    def _skim_exactly(self, at: int) -> None:
        """From one `<` to the next."""
        markup = self.markup
        while (start := markup.find(b"<", at)) >= 0:
            at = self._take(start, TAG.match(markup, start))

    # -- what is found there

    def _span(self, begin: int, end: int) -> None:
        """A stretch in which nothing is peculiar."""
        if begin < end and not self._templates:
            self.pieces.append((begin, end))
        if not self.is_crowded:
            self.is_crowded = _is_crowded(self.markup, begin, end)

    def _end_of(self, start: int, tag: Any) -> int:
        """Where what begins with a `<` ends; a `<` that begins nothing ends behind itself."""
        if tag is not None:
            return int(tag.end())
        markup = self.markup
        if markup[start + 1 : start + 2].isalpha() or markup[start + 2 : start + 3].isalpha() and markup[start + 1] == _SLASH:
            return len(markup)  # a tag that the page ends in
        if markup[start + 1 : start + 2] not in _DECLARES:
            return start + 1
        if markup.startswith(_CDATA, start) and self._foreign.holds(start):
            return markup.find(b"]]>", start) + 3 if markup.find(b"]]>", start) >= 0 else len(markup)
        return end_of_declaration(markup, start)

    def _take(self, start: int, tag: Any) -> int:
        """Takes what begins with the `<` at `start`; where the next thing may begin."""
        end = self._end_of(start, tag)
        if tag is None or len(tag["attributes"]) > WINDOW:
            self._count_attributes(start, end)
            if tag is None:
                return end
        name = tag["name"].lower()
        if tag["closing"]:
            if name == b"template":
                self._templates = max(0, self._templates - 1)
            elif name == b"form" and not self._templates:
                self._in_form = False
            return end
        text_end = end
        if name in RAW:
            text_end = self._end_of_text(name, start, end)
        elif name in (b"template", b"plaintext") and not self._foreign.holds(start):
            if name == b"plaintext":
                return len(self.markup)
            self._templates += 1
        if not self._templates and self._is_wanted(name, tag["attributes"], start):
            self.pieces.append(Tag(name, tag["attributes"], start, end, text_end))
        return text_end

    def _is_wanted(self, name: bytes, raw: bytes, start: int) -> bool:
        """Whether a tag is kept: one that is there by its place, and that may matter."""
        if name == b"frameset":
            if self._takes_frames is None:
                self._takes_frames = _takes_frames(self.markup, self.head_end, start)
            return False
        if name == b"frame":
            return bool(self._takes_frames)
        if name == b"form":
            if self._in_form:
                return False
            self._in_form = True
        if name not in SINGLED and name not in SPANNED and b"style" not in raw.lower():
            return False
        if len(self.pieces) >= MAX_KEPT:
            self.complete = False
            return False
        return True

    def _end_of_text(self, name: bytes, start: int, end: int) -> int:
        """Where the raw text behind a start tag ends; at once where there is none, in graphics."""
        markup = self.markup
        text_end = end_of_raw(markup, name, end)
        is_the_same = text_end < len(markup) and markup[end - 2] != _SLASH and markup.find(b"<", end, text_end) < 0
        return text_end if is_the_same or not self._foreign.holds(start) else end

    def _count_attributes(self, start: int, end: int) -> None:
        if not self.is_crowded and self.markup[start + 1 : start + 3].strip(b"/")[:1].isalpha():
            self.is_crowded = has_too_many_attributes(self.markup[start:end])


class _Foreign:
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
        return bool(self._open) and self._open[-1] in _FOREIGN

    def _after(self, start: int) -> int:
        markup = self._markup
        tag = TAG.match(markup, start)
        if tag is None:
            if self._is_inside and markup.startswith(_CDATA, start):
                return markup.find(b"]]>", start) + 1 or len(markup)
            declares = markup[start + 1 : start + 2] in _DECLARES
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
        elif (name in _FOREIGN or (inside and name in _HOLDS_HTML)) and not raw.endswith(b"/"):
            # No drawing nests like this; without a bound, looking for what an end tag closes would be quadratic.
            if len(self._open) < _MAX_FOREIGN:
                self._open.append(name)

    def _close(self, name: bytes) -> None:
        if self._is_inside and name in (b"p", b"br"):
            self._see(b"p", b"")
        elif name in self._open and (self._is_inside or self._open[-1] == name):
            while self._open.pop() != name:
                pass


def has_too_many_attributes(tag: bytes) -> bool:
    """More than :data:`~gossamer.model.markup.MAX_ATTRIBUTES` in one tag, given from its `<`."""
    return sum(1 for _ in islice(ATTRIBUTE.finditer(tag, 1), MAX_ATTRIBUTES + 2)) > MAX_ATTRIBUTES + 1


def _is_crowded(markup: bytes, begin: int, end: int) -> bool:
    """Whether a tag of a span has too many attributes."""
    find = markup.find
    at = begin
    while at + WINDOW < end:
        if find(b"<", at, at + WINDOW) >= 0:
            at += WINDOW
            continue
        start = markup.rfind(b"<", max(begin, at - WINDOW), at)
        if start >= 0:
            stop = find(b">", start, end)
            stop = stop if stop >= 0 else end
            if stop - start > WINDOW and has_too_many_attributes(markup[start:stop]):
                return True
        at = find(b"<", at + WINDOW, end)
        if at < 0:
            return False
    return False


def _takes_frames(markup: bytes, head_end: int, start: int) -> bool:
    """Whether a frameset at `start` is taken: nothing but harmless tags and white space stands between it and the head."""
    at = head_end
    while at < start:
        tag = TAG.match(markup, at)
        if tag is not None:
            if not tag["closing"] and tag["name"].lower() in _RULES_FRAMES_OUT:
                return False
            at = tag.end()
        elif markup[at : at + 1].isspace():
            at += 1
        elif markup[at] == _LESS_THAN and markup[at + 1 : at + 2] in _DECLARES:
            at = end_of_declaration(markup, at)
        else:
            return False
    return True
