"""Links of an HTML page, in document order.

Place in the flow: one of the processors that the process stage asks; it yields what the page *says*, unresolved. The
links stage makes URLs of it, against :attr:`~gossamer.documents.document.Document.base`. It asks for no tree: what it reads is
the page as :mod:`gossamer.documents.skim` found it, tags that are read one by one and spans that one expression runs over.

Which elements count (HTML, 4.6 and 4.2.4):

===========================  ===============================================================  ==================
element                      found                                                            relation
===========================  ===============================================================  ==================
`a`, `area`                  always; an empty `href` is the page itself                       `a href`, `area href`
`iframe`, `frame`            by default (`frames`), `data-src` of lazy ones too               `iframe src`, ...
`iframe srcdoc`              always: what it holds is a page within the page                  as in the page
`meta` refresh               always                                                           `meta content`
`link`                       by default (`link_elements`), if a token of `rel` is in          `link href`
                             :data:`FOLLOWED_RELATIONS` and none is a requisite's
`form`                       only with `forms`, where its method is GET                       `form action`
`Link` field of the header   as the `link` element of this `rel`                              `header link`
`link`, `img`, `script` ...  only with `requisites`: what a browser fetches to show the       `img srcset`,
                             page (:mod:`gossamer.values.task`)                          `link stylesheet`, ...
===========================  ===============================================================  ==================
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import repeat
from typing import Annotated

import msgspec

from gossamer.documents.document import Document
from gossamer.documents.markup import SPACE, all_folded, anchor_at, attributes, resolved, written
from gossamer.documents.skim import SPANNED, Skim, Span, Tag
from gossamer.documents.statements import NOFOLLOW, FieldLink
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.parsing.contract import MAX_FOUND
from gossamer.parsing.other_links import candidates, link_type, requisites, waiting
from gossamer.values.errors import UnreadableUrl
from gossamer.values.patterns import lazy_pattern
from gossamer.values.request_identity import identity_of
from gossamer.values.task import BACKGROUNDS, LINK_TYPES
from gossamer.values.url import canonical
from gossamer.values.visit import TOO_MANY_LINKS, UNREAD_TAGS, Found

#: `rel` tokens of `link` elements that lead to documents (HTML's list of link types, and names in use before it).
_FOLLOWED = (
    "alternate amphtml appendix archives author bookmark canonical chapter contents copyright first glossary help home index last "
    "license next prerender prefetch prev previous section shortlink start subsection toc top up"
)
FOLLOWED_RELATIONS = frozenset(_FOLLOWED.split())

#: Where a link to a document stands.
PLACES: Mapping[str, str] = {
    "a": "href", "area": "href", "link": "href", "iframe": "src", "frame": "src", "meta": "content", "form": "action",
}  # fmt: skip

_FRAMES = ("iframe", "frame")
_DISOWNABLE = ("a", "area")
_OF_LINKS = frozenset([b"href", b"xlink:href", b"rel"])
# Tags that are read in full even where no requisites are wanted.
_DIFFERENT = frozenset(b"a area iframe frame".split())
# Tags that lead to documents: most of those that a skim takes one by one are scripts.
_LEADING = frozenset(place.encode() for place in PLACES)
# The number, a separator, perhaps `url=`, perhaps a quote (HTML, "shared declarative refresh steps").
REFRESH = lazy_pattern(
    r"\s*(?:\d[\d.]*|\.[\d.]*)\s*[;,\s]\s*(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(.*))", re.IGNORECASE | re.DOTALL
)
#: Bytes of a tag, and characters of a `rel`, up to which what they mean is remembered.
_MOST_REMEMBERED = 1_000

#: How deep pages in `srcdoc` are read: each is escaped once more than the one around it, so none goes deeper by accident.
MAX_WITHIN = 4

#: Bytes of a span that are read at once: matches of an expression are held in memory, and a page can be one span.
_MOST_AT_ONCE = 256 << 10

# A link as nearly all are written: in lower case and double quotes, without references, and with one `rel` at most. Of it, `rel` in
# front of the address, the address, and `rel` behind it; of one that is written in any other way, all attributes.
_LINK = (
    rb'(?:[%(s)s]++(?:%(o)s[%(s)s]++)*+(?:rel="(%(p)s++)"[%(s)s]++(?:%(o)s[%(s)s]++)*+)?+href="(%(p)s*+)"'
    rb'(?:[%(s)s]++%(o)s)*+(?:[%(s)s]++rel="(%(p)s++)"(?:[%(s)s]++%(o)s)*+)?+[%(s)s]*+>|[%(s)s/]([^<>]++)>)'
) % {b"o": rb'(?!href=|rel=|xlink:)[a-z0-9_:-]++="[^"<>]*+"', b"p": rb'[^"<>&\r\0]', b"s": SPACE}
_PLAIN_LINKS = lazy_pattern(b"<a" + _LINK)
_IN_CAPITALS = b"<[aA]" + _LINK  # looks at every tag, and takes half as long again
# With its text, up to the end of the link or of a table's cell, and whether that lies in the span.
_ANCHORED = b"<[aA]" + _LINK + rb"([^<]*+(?:<(?!/?(?:[aA]|[tT][dDhHrR])[%(s)s/>])[^<]*+)*+)(?=(<?))" % {b"s": SPACE}

# Links as they are mostly written, and every other tag of a span that may hold a requisite: by its name, or with a `style`, or
# where some have one, with what may be a picture behind it.
_OTHER = rb'(?!href=|rel=|style=%(more)s)[a-z-]++="[^"<>]*+"'
_TYPICAL = rb'<(?:[aA] (?:%(o)s )*+href="([^"<>&\r\0]*+)"(?: %(o)s)*+>'
_STYLED = rb"|[a-zA-Z][^%(s)s/<>]*+(?=[^<>sS]*+(?:[sS](?![tT][yY][lL][eE])[^<>sS]*+)*+[sS])([^<>]*+)>" % {b"s": SPACE}
_BEHIND = rb"|[a-zA-Z][^%(s)s/<>]*+(?=[^<>]*?(?i:style|background|bg))([^<>]*+)>" % {b"s": SPACE}


def _named(names: frozenset[bytes]) -> bytes:
    return rb"|(?=[%(first)s])(%(names)s)(?=[%(s)s/>])([^<>]*+)>" % {
        b"first": bytes(sorted({name[0] for name in names} | {name[0] - 32 for name in names})),
        b"names": b"|".join(b"".join(b"[%c%c]" % (c, c - 32) for c in name) for name in sorted(names, reverse=True)),
        b"s": SPACE,
    }


@cache
def _tags(*, styled: bool, backgrounds: bool) -> re.Pattern[bytes]:
    """The tags of a span; where a table may have pictures behind it, as few have, with its parts."""
    names = SPANNED | {tag.encode() for tag in BACKGROUNDS} if backgrounds else SPANNED
    typical = _TYPICAL % {b"o": _OTHER % {b"more": rb"|data-[a-z-]*b" if backgrounds else b""}}
    return re.compile(
        typical + _named(names) + (_BEHIND if backgrounds else _STYLED if styled else rb"|(?!)()") + rb")"
    )


_BACKGROUND = lazy_pattern(
    rb"[%(s)s\"'](?:background|data-(?:[a-z0-9-]*-)?(?:bg|background)[a-z-]*+)[%(s)s]*+=" % {b"s": SPACE}
)


class FoundLinks(msgspec.Struct, eq=False):
    """The links of one page as they are found, in bounded memory: of too many, each spelling once, up to :data:`MAX_FOUND`."""

    links: list[Found] = []
    """In document order. Code that adds to it calls :meth:`bound` now and then."""
    left_out: int = 0
    """How many were left out, each spelling once as far as that is known."""

    def take(self, found: Iterable[Found]) -> None:
        """Add these, which one tag or one style sheet can have a million of."""
        links = self.links
        for one in found:
            links.append(one)
            if len(links) > 2 * MAX_FOUND:
                self.bound()

    def bound(self, most: int = 2 * MAX_FOUND) -> None:
        """Keep the bound where there are more than `most`: with twice as many as are kept, the cost is linear."""
        if len(self.links) > most:
            once = _each_once(self.links)
            self.left_out += max(0, len(once) - MAX_FOUND)
            self.links[:] = once[:MAX_FOUND]


def _each_once(found: Iterable[Found]) -> list[Found]:
    """Those that differ in more than a fragment, each at its first place; one is `nofollow` only if each occurrence is."""
    kept: dict[str, Found] = {}
    for one in found:
        href, request = one.href, one.request
        cut = href.find("#")
        # The parser drops white space at the end, and keeps it before a fragment.
        spelling = href if cut < 0 or href[:cut][-1:].isspace() else href[:cut]
        identity = spelling if request is None else identity_of(spelling, request.mark)
        first = kept.setdefault(identity, one)
        if first.nofollow and not one.nofollow:
            kept[identity] = msgspec.structs.replace(first, nofollow=False)
    return list(kept.values())


class HtmlLinksSheet(Sheet, frozen=True):
    link_elements: Annotated[bool, setting("Follow `link` elements that lead to documents (next, canonical, ...).")] = (
        True
    )
    frames: Annotated[bool, setting("Follow `iframe` and `frame`.")] = True
    forms: Annotated[bool, setting("Follow the addresses of forms with method GET, without their fields.")] = False
    requisites: Annotated[bool, setting("Also follow style sheets, scripts, images, media and icons.")] = False
    anchors: Annotated[bool, setting("Keep the text of links; this costs about 1 us per link.")] = False


class HtmlLinks(Provider[HtmlLinksSheet]):
    """Finds the links of an HTML page. Contract: `Processor`. Keeps no state."""

    divisible = True
    finds_links = True

    def process(self, document: Document) -> Iterable[Found]:
        """The page's links, those of its header fields first."""
        finds = FoundLinks()
        if document.field_links:
            finds.links += found_in_fields(document.field_links, self.sheet)
        document.leave_out(UNREAD_TAGS, self._read(document, document.skim, finds))
        finds.bound(MAX_FOUND)
        document.leave_out(TOO_MANY_LINKS, finds.left_out)
        return finds.links

    def _read(self, document: Document, skim: Skim, finds: FoundLinks, depth: int = 0) -> int:
        """Find the links of a page, or of one within it; returns how many tags are not read."""
        sheet, found, unread = self.sheet, finds.links, skim.left_out
        pattern = _ANCHORED if sheet.anchors else _IN_CAPITALS if skim.has_capitals else b""
        links = re.compile(pattern) if pattern else _PLAIN_LINKS  # `re` keeps it
        different = _DIFFERENT | {b"form"} if sheet.forms else _DIFFERENT
        # Links of many stretches are made at once: most have few.
        rows: list[tuple[bytes, ...]] = []
        cut: dict[int, int] = {}
        for piece in skim.pieces:
            if not isinstance(piece, Tag):
                for begin, end in (piece,) if piece[1] - piece[0] <= _MOST_AT_ONCE else _parts(skim.markup, piece):
                    if sheet.requisites:
                        finds.take(self._everything(skim.markup, begin, end))
                        continue
                    rows += links.findall(skim.markup, begin, end)
                    if sheet.anchors and rows and not rows[-1][-1]:  # its text goes on behind the stretch
                        cut.setdefault(len(rows) - 1, end - len(rows[-1][-2]))
                    if len(found) + len(rows) > MAX_FOUND:
                        _add_links(found, rows, cut, skim.markup)
                        finds.bound()
            elif piece.name in _LEADING or sheet.requisites:
                read = piece.attributes if sheet.requisites or piece.name in different else {}
                if leads := self._of_tag(skim.markup, piece, read):
                    _add_links(found, rows, cut, skim.markup)
                    finds.take(leads)
                if piece.name == b"iframe" and "srcdoc" in read:
                    _add_links(found, rows, cut, skim.markup)
                    unread += self._read_within(document, read["srcdoc"], finds, depth)
                    finds.bound()
        _add_links(found, rows, cut, skim.markup)
        return unread

    def _read_within(self, document: Document, markup: str, finds: FoundLinks, depth: int) -> int:
        """The same of a page that stands in an attribute; its addresses go on from the base of the page around it."""
        if depth == MAX_WITHIN:
            document.missed = document.missed or f"pages in pages are read {MAX_WITHIN} deep"
            return 1
        skim = Skim(markup.encode("utf-8", "replace"))
        own = FoundLinks()
        unread = self._read(document, skim, own, depth + 1)
        base = next((tag.attributes["href"] for tag in skim.named(b"base") if "href" in tag.attributes), None)
        finds.links += own.links if base is None else [_moved(one, base, document.base) for one in own.links]
        finds.left_out += own.left_out
        return unread

    def _of_tag(self, markup: bytes, tag: Tag, read: Mapping[str, str]) -> Iterable[Found]:
        """The links of a tag that was read one by one; `read` are its attributes, where they are read in full."""
        sheet, name = self.sheet, tag.name
        if sheet.requisites or read:
            style = markup[tag.end : tag.text_end] if name == b"style" else b""
            return self._found(name, read, markup, tag.end, style)
        one: Found | None = None
        if name == b"link" and sheet.link_elements:
            one = (_of_link if len(tag.raw) <= _MOST_REMEMBERED else _of_link.__wrapped__)(tag.raw)
        elif name == b"meta" and b"http-equiv" in tag.raw.lower():
            target = _refreshes(tag.attributes)
            one = Found(target, "meta content") if target else None
        return () if one is None else (one,)

    def _everything(self, markup: bytes, begin: int, end: int) -> Iterator[Found]:
        """Links and requisites of a stretch of the page."""
        anchors = self.sheet.anchors
        # Attributes that few pages have would cost a look into every tag.
        written = markup[begin:end].lower()
        may_be = b"background" in written or (b"bg" in written and b"data-" in written)
        backgrounds = may_be and _BACKGROUND.search(written) is not None
        for match in _tags(styled=b"style" in written, backgrounds=backgrounds).finditer(markup, begin, end):
            address, name, raw, styled = match.groups()
            if address is not None:
                yield Found(address.decode(), "a href", anchor_at(markup, match.end()) if anchors else "")
            elif raw or styled:
                yield from self._found((name or b"").lower(), attributes(raw or styled), markup, match.end())

    def _found(
        self, name: bytes, attributes: Mapping[str, str], markup: bytes, end: int, style: bytes = b""
    ) -> Iterator[Found]:
        """The links of an element whose tag ends at `end`; `style` is the sheet in it."""
        sheet = self.sheet
        tag = name.decode("ascii", "replace")
        rel = attributes.get("rel", "")
        if sheet.requisites:
            yield from requisites(tag, attributes, rel.lower().split(), style)
        if tag == "iframe" and sheet.frames:
            yield from (Found(attributes[place], relation) for place, relation in waiting(tag, attributes))
        place = PLACES.get(tag)
        href = attributes.get(place) if place else None
        if tag == "a":
            href = href or attributes.get("xlink:href", href)
        if href is None or (not href and tag not in _DISOWNABLE):
            return
        if tag == "meta":
            href = _refreshes(attributes)
        elif (
            (tag == "link" and not (sheet.link_elements and _leads_on(rel[:_MOST_REMEMBERED])))
            or (tag in _FRAMES and not sheet.frames)
            or (tag == "form" and not (sheet.forms and (attributes.get("method") or "get").strip().lower() == "get"))
        ):
            return
        if href is not None:
            anchor = anchor_at(markup, end) if tag == "a" and sheet.anchors else ""
            yield Found(href, f"{tag} {place}", anchor, tag in _DISOWNABLE and _disowned(rel[:_MOST_REMEMBERED]))


def found_in_fields(links: Iterable[FieldLink], sheet: HtmlLinksSheet) -> Iterator[Found]:
    """The links of `Link` fields of a header: as the same `link` elements would have."""
    for link in links:
        if part := link_type(link.relations):
            if sheet.requisites:
                yield Found(link.url, part)
                yield from (Found(url, "link imagesrcset") for url in candidates(link.image_set))
        elif sheet.link_elements and link.relations & FOLLOWED_RELATIONS:
            yield Found(link.url, "header link")


def _moved(found: Found, base: str, around: str) -> Found:
    """A link of a page that names its own base."""
    try:
        return msgspec.structs.replace(found, href=canonical(found.href, canonical(base, around)))
    except UnreadableUrl:
        return found  # it is counted with those that are none


def _parts(markup: bytes, span: Span) -> Iterator[Span]:
    """A span in parts of bounded size, none of which begins within a tag."""
    begin, end = span
    while end - begin > _MOST_AT_ONCE:
        cut = markup.rfind(b"<", begin + 1, begin + _MOST_AT_ONCE)
        if cut < 0:
            cut = markup.find(b"<", begin + _MOST_AT_ONCE, end)
            if cut < 0:
                break
        yield begin, cut
        begin = cut
    yield begin, end


def _add_links(found: list[Found], rows: list[tuple[bytes, ...]], cut: dict[int, int], markup: bytes) -> None:
    """Add what `a` tags lead to, as :data:`_LINK` finds them, or with their texts. `cut`: of links whose text goes on, the place
    where it begins. Both are empty afterwards."""
    if not rows:
        return
    first = len(found)
    _, addresses, _, _, *texts = zip(*rows, strict=True)
    anchors = all_folded(texts[0]) if texts else [""] * len(rows)
    for index, place in cut.items():
        anchors[index] = anchor_at(markup, place)
    found += map(Found, b"\0".join(addresses).decode().split("\0"), repeat("a href"), anchors)
    leading_nowhere = set()
    for index, row in enumerate(rows):
        if row[3]:
            if link := _read(row[3]):
                found[first + index] = Found(link[0], "a href", anchors[index], link[1])
            else:
                leading_nowhere.add(first + index)
        elif (rel := row[0] or row[2]) and _disowned(str(rel[:_MOST_REMEMBERED], "utf-8", "replace")):
            found[first + index] = Found(found[first + index].href, "a href", anchors[index], True)
    if leading_nowhere:
        found[first:] = [found[index] for index in range(first, len(found)) if index not in leading_nowhere]
    rows.clear()
    cut.clear()


def _read(raw: bytes) -> tuple[str, bool] | None:
    """Address of a link, and whether it is disowned; None without an address. Of its other attributes nothing is made."""
    read: dict[bytes, bytes] = {}
    for name, double, single, bare in written(raw):
        if (name := name.lower()) in _OF_LINKS:
            read.setdefault(name, double or single or bare)
    href = read.get(b"href")
    href = href or read.get(b"xlink:href", href)
    if href is None:
        return None
    rel = resolved(read.get(b"rel", b""), in_attribute=True)
    return resolved(href, in_attribute=True), bool(rel) and _disowned(rel[:_MOST_REMEMBERED])


def refresh_target(content: str) -> str | None:
    """The URL of a `meta` refresh; None where it only reloads the page. Never obeyed in place (fault 33)."""
    match = REFRESH.match(content[:4096])
    if match is None:
        return None
    return (match[1] or match[2] or match[3] or "").strip() or None


@lru_cache(maxsize=1024)
def _of_link(raw: bytes) -> Found | None:
    """The links of a `link`. Pages of a site have the same ones in great part."""
    read = attributes(raw)
    href = read.get("href")
    return Found(href, "link href") if href and _leads_on(read.get("rel", "")[:_MOST_REMEMBERED]) else None


def _refreshes(attributes: Mapping[str, str]) -> str | None:
    is_refresh = attributes.get("http-equiv", "").strip().lower() == "refresh"
    return refresh_target(attributes.get("content", "")) if is_refresh else None


@lru_cache(maxsize=1024)
def _leads_on(rel: str) -> bool:
    tokens = frozenset(rel.lower().split())
    return bool(tokens & FOLLOWED_RELATIONS) and not tokens & LINK_TYPES


@lru_cache(maxsize=1024)
def _disowned(rel: str) -> bool:
    """Whether the page does not vouch for a link of this `rel`. Commas part words, too (Google Search
    Central, "Qualify your outbound links to Google")."""
    return not NOFOLLOW.isdisjoint(rel.lower().replace(",", " ").split())
