"""The tags of a page that a crawler asks for, found without a tree.

Place in the flow: :class:`~gossamer.documents.document.Document` skims a page once; its title, base and robots tags are read from
that, and :mod:`gossamer.parsing.html` reads links from it. The parser is for processors that ask for a tree.

**How.** In most of a page a tag is whatever stands between `<` and the next `>`. So one search by automaton (RE2) goes from
one *peculiar* place to the next: a comment or a tag that holds `<` or `>`, an element whose content is text (`script`), a tag
that is read one by one (`link`, `title`). Those are taken exactly, by the rules of :mod:`gossamer.documents.markup`. What lies
between two of them is a :data:`Span`: a stretch in which `<a[^<>]*>` is right, so that a reader of links runs one regular
expression over it. The head is taken exactly throughout, to know where it ends. A page with very many peculiar places is
taken exactly from there on. All of it is linear.

**What a tree would show, and this does not**, by choice; checked against the parser in `tests/properties/test_skim.py`:

- A link is found once, where it stands. The parser repeats an `a` that is left open in the next paragraphs, and moves what
  stands in a table outside of its cells before the table.
- Links in a frameset, and attributes `xlink:href` of `a` outside of graphics, are links.
- Where a frameset begins after other content, its frames count only if that content was no text, nor `body` or any tag that
  rules a frameset out; the parser drops that content then, this does not.
- What is in `template` is no part of the page, as in the tree; what is in `select` or `noscript` is.
- In graphics and formulas (`svg`, `math`), `title`, `style` and `script` are ordinary elements, `title` and `base` are not the
  page's, and CDATA is text, as in the tree; what is open in and around them is followed by tags, without the parser's repairs of
  what is misnested.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

import msgspec

from gossamer.documents.graphics import Graphics
from gossamer.documents.markup import (
    ATTRIBUTE,
    CDATA,
    DECLARES,
    MAX_ATTRIBUTES,
    RAW,
    SPACE,
    TAG,
    attributes,
    end_of_declaration,
    end_of_other,
    end_of_raw,
    is_end_tag,
)
from gossamer.values.patterns import LazySpans, lazy_automaton, lazy_pattern

# Signs of RDFa and microdata among attributes, for `gossamer.rdf.page`. They err to the safe side: a text that looks like such
# an attribute is a sign, too.

_SPACE = rb"[\t\n\f\r ]"

# `rel` says something to RDFa where it has a CURIE, an IRI or one of the terms of HTML; beside `vocab`, which is a sign by
# itself, any word will do.
RDFA = (
    rb"(?:property|typeof|vocab|inlist)%(s)s*="
    rb"|rel%(s)s*=[^<>=]*(?::|license|describedby|role)"
    rb"|rev%(s)s*=" % {b"s": _SPACE}
)
MICRODATA = rb"itemscope|itemprop"

#: Any of them, in whatever case; each begins with a letter.
ANY = b"(?i:" + RDFA + b"|" + MICRODATA + b")"

#: Tags taken one by one that are kept of a page (fault 76): 16 to 30 MB at most. Of a page with more, tags that repeat another
#: are dropped, and then those behind half as many that differ are left out and counted: far more than links of it are kept.
MAX_KEPT = 100_000

#: Peculiar places (4 us each) after which everything is taken exactly (1 us a tag): a hostile page, or a very odd one.
MAX_PECULIAR = 2_000

#: Bytes of a tag up to which its attributes are remembered.
MAX_REMEMBERED = 500

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
    def attributes(self) -> Mapping[str, str]:
        """Names in lower case, the first of each name, references resolved."""
        return remembered(self.raw) if len(self.raw) <= MAX_REMEMBERED else attributes(self.raw)


@lru_cache(maxsize=1024)
def remembered(raw: bytes) -> Mapping[str, str]:
    """The attributes of a tag that is met on page after page of a site, as those in a head are."""
    return attributes(raw)


#: Start tags that are always taken one by one: those whose content is text, those that say something of the page, and those
#: whose meaning depends on where they stand.
SINGLED = RAW | frozenset(b"plaintext template html base link meta area frame frameset form".split())

#: Start tags that lie in spans, and may matter to who looks for links there.
SPANNED = frozenset(b"a img source video audio track embed object input body image use feimage".split())
# Tags of both kinds that are kept whatever stands before them, as long as there is room: most of those that are taken.
_ALWAYS_WANTED = (SINGLED | SPANNED) - frozenset(b"title base meta frame frameset form".split())
# A tag with one of these words among its attributes may show a picture, whatever element it is.
_SHOW_PICTURES = (b"style", b"background", b"bg")
# Those that say something of the page: not if they stand in graphics (where a `meta` ends these), or in a page of frames.
_OF_PAGE = frozenset(b"title base meta".split())

# Elements that may stand in a head; any other ends it (13.2.6.4.4 and .6).
_IN_HEAD = frozenset(b"html head base basefont bgsound link meta title noscript noframes style script template".split())
_BEHIND_HEAD = _IN_HEAD - {b"noscript"}
_ENDS_HEAD = frozenset(b"body html br".split())

# Before these, a frameset is no longer taken (13.2.6.4.7, "frameset-ok flag").
_RULES_FRAMES_OUT = frozenset(
    b"body li dd dt button pre listing applet marquee object table area br embed img image keygen wbr input hr textarea xmp "
    b"iframe select".split()
)
_WHITE = b"\t\n\f\r "
_LESS_THAN, _SLASH = b"</"
_BEGINS_PECULIAR = b"<="
_LENGTH_OF_CAPITAL = len(b"<A ")

# The fragment of a link, in which links that lead to the same document differ; behind white space it is not taken off with it.
_FRAGMENT = lazy_pattern(
    rb"""(?i)(?<=href=)(?:"(?:[^"#&]|&(?!#))*(?<![%(s)s])(#[^"]*)"|'(?:[^'#&]|&(?!#))*(?<![%(s)s])(#[^']*)'"""
    rb"""|(?:[^"'#&%(s)s]|&(?!#))*(#[^%(s)s]*))""" % {b"s": SPACE}
)

# In turn: anything that begins like a tag or a declaration, with a `<` in it; a quoted value with `<` or `>`; a comment that its
# first `>` does not end; CDATA; tags by name.
_PECULIAR_PATTERN = (
    rb"<[a-zA-Z/!?][^<>]*<"
    rb"""|=[%(s)s]*(?:"[^"<>]*[<>]|'[^'<>]*[<>])"""
    rb"|<!--[^<>]*[^-<>]-?>"
    rb"|<!\["
    rb"|(?i:<(?:%(names)s|/template|/form)[%(s)s/>])" % {b"s": SPACE, b"names": b"|".join(sorted(SINGLED))}
)
_PECULIAR = LazySpans(_PECULIAR_PATTERN)
# The same, or an `a` tag in capitals, or a sign of structured data: one search for all costs what one for the first does.
_CAPITAL = rb"<A[%s/]" % SPACE
_PECULIAR_OR_CAPITAL = LazySpans(_PECULIAR_PATTERN + b"|" + _CAPITAL)
_NOTABLE = LazySpans(_PECULIAR_PATTERN + b"|" + _CAPITAL + b"|" + ANY)
_SIGN = lazy_automaton(ANY)


class Skim:
    """One page, skimmed. Its tags and spans, in order, are all there is of it outside comments, raw text and templates."""

    def __init__(self, markup: bytes, *, exactly: bool = False) -> None:
        """Skims it. `exactly`: takes every tag one by one, at ten times the cost: what the short way is measured against."""
        self.markup = markup
        self.pieces: list[Tag | Span] = []
        self.spans: list[Span] = []
        """All spans, those in templates, too."""
        self.is_exact = exactly
        """Everything behind the last span was taken exactly."""
        self.left_out = 0
        """Tags that :data:`MAX_KEPT` left out."""
        self._is_full = False
        self.is_crowded = False
        """A tag has more than :data:`~gossamer.documents.markup.MAX_ATTRIBUTES`."""
        self._has_sign = False
        self.has_capitals = False
        """An `a` tag in a span may begin with a capital; else a search for `<a` finds all of them."""
        self._taken: list[bytes] = []
        self.in_head: list[bytes] = []
        """The values in start tags of the head, as far as it is a head and not :data:`MAX_PECULIAR` tags."""
        self._exact_from = len(markup)
        self._templates = 0
        self._in_form = False
        self._has_title = False
        self._takes_frames: bool | None = None
        self._follows_all = exactly
        self.head_end = len(markup)
        self.head_end = self._skim_head()
        """Where the head ends: at the first tag or text that no head can hold."""
        if exactly:
            self._skim_exactly(self.head_end)
        else:
            self._skim_body(self.head_end)

    @cached_property
    def has_sign(self) -> bool:
        """Behind the head, something looks like an attribute of RDFa or microdata."""
        if self._has_sign or (self._taken and _SIGN.search(b" ".join(self._taken)) is not None):
            return True
        return self._exact_from < len(self.markup) and _SIGN.search(self.markup, self._exact_from) is not None

    @cached_property
    def _graphics(self) -> Graphics:
        return Graphics(self.markup, self.spans, exactly=self._follows_all)

    @property
    def tags(self) -> list[Tag]:
        """The tags that were taken one by one."""
        return [piece for piece in self.pieces if type(piece) is Tag]

    @cached_property
    def _by_name(self) -> dict[bytes, list[Tag]]:
        found: dict[bytes, list[Tag]] = {}
        for piece in self.pieces:
            if type(piece) is Tag:
                found.setdefault(piece.name, []).append(piece)
        return found

    def named(self, name: bytes) -> Sequence[Tag]:
        """Those of a name in :data:`SINGLED`."""
        return self._by_name.get(name, ())

    # -- ways through the page

    def _skim_head(self) -> int:
        """Takes the head exactly, and says where it ends."""
        markup, at, allowed = self.markup, 0, _IN_HEAD
        find, match, take = markup.find, TAG.match, self._take
        while (start := find(b"<", at)) >= 0:
            tag = match(markup, start)
            if not self._templates:
                if start > at and markup[at:start].strip(_WHITE):
                    return at
                if tag is not None:
                    closing, name = tag.group(1, 2)
                    name = name.lower()
                    if name in _ENDS_HEAD if closing else name not in allowed:
                        return start
                    if closing and name == b"head":
                        allowed = _BEHIND_HEAD
                elif markup[start + 1 : start + 2] not in DECLARES:
                    return start
            at = take(start, tag)
        return at

    def _skim_body(self, begin: int) -> None:
        """From one peculiar place to the next."""
        markup, first, end = self.markup, _NOTABLE.first, len(self.markup)
        # Between `text` and `at` no tag is open, so that nothing is looked back over twice.
        at = text = begin
        for _ in range(MAX_PECULIAR):
            seen, stop = first(markup, at, end)[0]
            if seen < 0:
                self._span(begin, end)
                return
            if markup[seen] not in _BEGINS_PECULIAR:
                self._has_sign, first = True, _PECULIAR_OR_CAPITAL.first
                continue
            if stop - seen == _LENGTH_OF_CAPITAL and markup.startswith(b"<A", seen) and markup[stop - 1] != _LESS_THAN:
                self._has_sign = self._has_sign or _SIGN.search(markup, at) is not None
                self.has_capitals, first = True, _PECULIAR.first
                continue
            start = seen if markup[seen] == _LESS_THAN else markup.rfind(b"<", text, seen)
            tag = TAG.match(markup, start) if start >= 0 else None
            if start < 0 or (start < seen and self._end_of(start, tag) <= seen):
                at = text = stop - 1  # a quote in the text
                continue
            self._span(begin, start)
            begin = at = text = self._take(start, tag)
        self._span(begin, at)
        self.is_exact = True
        self._skim_exactly(at)

    def _skim_exactly(self, at: int) -> None:
        """From one `<` to the next."""
        markup = self.markup
        self._exact_from = at
        while (start := markup.find(b"<", at)) >= 0:
            at = self._take(start, TAG.match(markup, start))

    # -- what is found there

    def _span(self, begin: int, end: int) -> None:
        """A stretch in which nothing is peculiar."""
        if begin < end:
            self.spans.append((begin, end))
            if not self._templates:
                self.pieces.append((begin, end))
        if end - begin > WINDOW and not self.is_crowded:
            self.is_crowded = _is_crowded(self.markup, begin, end)

    def _end_of(self, start: int, tag: Any) -> int:
        """The end of the thing that begins with a `<`; a `<` that begins nothing ends behind itself."""
        if tag is not None:
            return int(tag.end())
        markup = self.markup
        if markup.startswith(CDATA, start) and self._graphics.takes_cdata(start):
            return markup.find(b"]]>", start) + 3 if markup.find(b"]]>", start) >= 0 else len(markup)
        return end_of_other(markup, start)

    def _take(self, start: int, tag: Any) -> int:
        """Takes what begins with the `<` at `start`; where the next thing may begin."""
        if tag is None:
            end = self._end_of(start, tag)
            self._count_attributes(start, end)
            return end
        closing, name, raw = tag.groups()
        name, end = name.lower(), tag.end()
        if len(raw) > WINDOW:
            self._count_attributes(start, end)
        if closing:
            if name == b"template":
                self._templates = max(0, self._templates - 1)
            elif name == b"form" and not self._templates:
                self._in_form = False
            return int(end)
        if raw and start < self._exact_from:
            noted = self._taken if start >= self.head_end else self.in_head
            if len(noted) < MAX_PECULIAR:
                noted.append(raw)
        text_end = behind = end
        if name in RAW:
            text_end, behind = self._text_of(name, start, end)
        elif name in (b"template", b"plaintext") and not self._graphics.holds(start):
            if name == b"plaintext":
                return len(self.markup)
            self._templates += 1
        if not self._templates and (
            (name in _ALWAYS_WANTED and len(self.pieces) < MAX_KEPT // 2) or self._is_wanted(name, raw, start)
        ):
            self.pieces.append(Tag(name, raw, start, end, text_end))
        return int(behind)

    def _is_wanted(self, name: bytes, raw: bytes, start: int) -> bool:
        """Whether a tag is kept: one that is there by its place, and that may matter."""
        if name == b"frameset":
            if self._takes_frames is None:
                self._takes_frames = _takes_frames(self.markup, self.head_end, start)
                if self._takes_frames:
                    self.pieces = [
                        piece
                        for piece in self.pieces
                        if not (isinstance(piece, Tag) and piece.name in _OF_PAGE and piece.start >= self.head_end)
                    ]
            return False
        # The first title is the page's: graphics have one for each node, and an endless page may have one in each line.
        if name == b"title" and self._has_title:
            return False
        # A page of frames has no body that it could stand in, and graphics have a title of their own.
        if (
            name in _OF_PAGE
            and start >= self.head_end
            and (self._takes_frames or (name != b"meta" and self._graphics.holds(start)))
        ):
            return False
        if name == b"title":
            self._has_title = True
        if name == b"frame":
            return bool(self._takes_frames)
        if name == b"form":
            if self._in_form:
                return False
            self._in_form = True
        if name not in SINGLED and name not in SPANNED and not any(map(raw.lower().__contains__, _SHOW_PICTURES)):
            return False
        if len(self.pieces) >= MAX_KEPT and not self._is_full:
            self.pieces = _each_once(self.pieces)
            self._is_full = len(self.pieces) > MAX_KEPT // 2  # it would soon be to do again
        self.left_out += self._is_full
        return not self._is_full

    def _text_of(self, name: bytes, start: int, end: int) -> tuple[int, int]:
        """The end of the text that begins at `end`, and the place where the next thing may begin: before it, in graphics."""
        markup = self.markup
        following = markup.find(b"<", end)
        if following >= 0 and markup[end - 2] != _SLASH and is_end_tag(markup, name, following):
            return following, following  # the same, wherever it stands
        if not self._graphics.holds(start):
            text_end = end_of_raw(markup, name, end)
            return text_end, text_end
        if following >= 0 and markup.startswith(CDATA, following):
            following = markup.find(b"]]>", following)
        return following if following >= 0 else len(markup), end

    def _count_attributes(self, start: int, end: int) -> None:
        if not self.is_crowded and self.markup[start + 1 : start + 3].strip(b"/")[:1].isalpha():
            self.is_crowded = has_too_many_attributes(self.markup[start:end])


def _each_once(pieces: "list[Tag | Span]") -> "list[Tag | Span]":
    """Without tags that say what one before them says, and hold no text of their own."""
    kept: dict[object, Tag | Span] = {}
    for piece in pieces:
        key: object = piece
        if isinstance(piece, Tag) and piece.text_end == piece.end:
            match = _FRAGMENT.search(piece.raw)
            start, end = match.span(match.lastindex or 0) if match else (0, 0)
            key = piece.name, piece.raw[:start], piece.raw[end:]
        kept.setdefault(key, piece)
    return list(kept.values())


def has_too_many_attributes(tag: bytes) -> bool:
    """More than :data:`~gossamer.documents.markup.MAX_ATTRIBUTES` in one tag, given from its `<`."""
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
        elif markup[at] == _LESS_THAN and markup[at + 1 : at + 2] in DECLARES:
            at = end_of_declaration(markup, at)
        else:
            return False
    return True
