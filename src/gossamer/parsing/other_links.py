"""Links of documents other than HTML, feeds and sitemaps: style sheets, plain text, and listings; and page requisites.

Place in the flow: processors by media type. Style sheets name page requisites (:mod:`gossamer.values.task`): without
`requisites` a crawl does not want them; :mod:`gossamer.parsing.html` asks for `style` elements and attributes, too. Plain text
is wired by choice. Listings are directories of ftp, menus of gopher, and lists of URLs (`text/uri-list`), which file
directories are; the protocol modules of these schemes name the media types.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated
from urllib.parse import quote_from_bytes

from gossamer.documents.document import Document
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.values.patterns import lazy_pattern
from gossamer.values.task import BACKGROUNDS, CSS_IMPORT, CSS_URL, LINK_TYPES
from gossamer.values.visit import Found

# Patterns are texts: `re` compiles and keeps one when it is first asked for, since most crawls meet nothing of this.

# Style sheets, by one linear scan: nothing is parsed that need not be.

# Comments, strings, `@import "..."`, `url(...)` and `@import url(...)` (CSS Syntax 3, sections 4.3.2 to 4.3.6). Each
# alternative that begins to match goes on to its end or to the end of the sheet, so that nothing is read twice.
_STRING = r""""(?:[^"\\\n]|\\.)*+(?:"|\n|\Z)|'(?:[^'\\\n]|\\.)*+(?:'|\n|\Z)"""
_TOKEN = (
    r"(?is)/\*.*?(?:\*/|\Z)"
    rf"|@(?:(?P<import>import\b)|namespace\b(?:[^;\"']|{_STRING})*+)"
    rf"|\b(?:url\(\s*+(?:(?P<quoted>{_STRING})|(?P<plain>(?:[^\"'()\\\s]|\\[0-9a-f]{{1,6}}+\s?+|\\.)*+))|(?P<set>image-set\())"
    rf"|(?P<string>{_STRING})"
)
#: Up to the end of what a function holds; parentheses in it may hold others (CSS Images 4, 2.6: `type()`, `url()`, gradients).
_HELD = rf"(?s)(?:[^()\"']|{_STRING}|\((?:[^()\"']|{_STRING}|\([^()]*+\))*+\))*+"
_OF_TYPE = lazy_pattern(r"type\(\s*\Z", re.IGNORECASE)
#: Characters before a string in which `type(` is looked for.
_BEFORE = 40
_ESCAPE = r"(?s)\\(?:([0-9a-fA-F]{1,6})[ \t\n\f\r]?|(\n)|(.))"
_BETWEEN = r"(?s)(?:\s|/\*.*?\*/)*+"


class CssLinksSheet(Sheet, frozen=True):
    requisites: Annotated[bool, setting("Follow links of style sheets to imports, pictures and fonts.")] = False


class CssLinks(Provider[CssLinksSheet]):
    """Finds the links of a style sheet. Contract: `Processor`. Keeps no state."""

    divisible = True

    def process(self, document: Document) -> Iterable[Found]:
        """The sheet's URLs, where requisites are wanted."""
        if not self.sheet.requisites:
            return ()
        # The mark, then `Content-Type`, then UTF-8, as CSS says (Syntax 3, 3.2); `@charset` is left to history.
        text = document.markup.decode()
        return css_links(text)


def css_links(text: str) -> Iterator[Found]:
    """Every import, `url()` and candidate of an `image-set()` of a sheet or of a `style` attribute, in order. Linear."""
    return (found for _, _, found in css_places(text))


def css_places(text: str) -> Iterator[tuple[int, int, Found]]:
    """As :func:`css_links`, each with where it stands: from its quote, or its first character, up to the end of that. Linear."""
    after_import = set_end = -1
    for match in re.finditer(_TOKEN, text):
        if match["import"]:
            between = re.compile(_BETWEEN).match(text, match.end())
            after_import = between.end() if between else match.end()
            continue
        if match["set"]:
            if match.start() >= set_end and (held := re.compile(_HELD).match(text, match.end())):
                set_end = held.end()
            continue
        token = match["quoted"] or match["string"]
        is_import = match.start() == after_import
        is_listed = match.start() < set_end and not _OF_TYPE.search(text, match.start() - _BEFORE, match.start())
        if match["string"] and not (is_import or is_listed):
            continue
        url = _unescaped(token[1:].rstrip("\n")) if token else _unescaped(match["plain"] or "")
        if token and url[-1:] == token[0]:
            url = url[:-1]
        if not url or url.startswith(("data:", "#")) or (not token and match["plain"] is None):
            continue
        group = "quoted" if match["quoted"] else "string" if token else "plain"
        yield match.start(group), match.end(group), Found(url, CSS_IMPORT if is_import else CSS_URL)


def _unescaped(text: str) -> str:
    """A string or `url()` without escapes; a code point that is none becomes U+FFFD."""
    if "\\" not in text:
        return text
    return re.sub(_ESCAPE, _character, text)


def _character(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[3] or ""
    code = int(match[1], 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


# Plain text: words that begin with `http://` or `https://`.

_URL = r"""(?i)\bhttps?://[^\s<>"'`\\^{|}]++"""

#: Characters that end a sentence, a bracket or emphasis rather than a URL.
_AFTER = ".,;:!?*_)]\u2026\u201d\u00bb"


class TextLinks(Provider[NoSettings]):
    """Finds URLs in plain text. Contract: `Processor`. Keeps no state."""

    divisible = True

    def process(self, document: Document) -> Iterable[Found]:
        text = document.markup.decode()
        for match in re.finditer(_URL, text):
            url = _trimmed(match[0])
            if not url.endswith("://"):
                yield Found(url, "text url")


def _trimmed(url: str) -> str:
    """Without what stands behind it in a sentence; a bracket that was opened in the URL stays."""
    bare = url.rstrip(_AFTER)
    if url[len(bare) : len(bare) + 1] == ")" and bare.count("(") > bare.count(")"):
        return bare + ")"
    return bare


# Listings.

#: Lines of a listing that are read: more than there are links kept of one, whatever else stands between.
MOST_LINES = 100_000

#: A line as `ls -l` writes it: mode, links, owner, perhaps group, size, month, day, time or year, name.
_UNIX = (
    rb"(?P<kind>[-dl])[-rwxsStTlL]{9}\S?\s+\d+\s+\S+\s+(?:\S+\s+)?\d+\s+\S{3,9}\s+\d{1,2}\s+[\d:]{4,5}\s(?P<name>.+)\Z"
)
#: A line as `dir` of DOS writes it: date, time, size or `<DIR>`, name.
_DOS = rb"(?i)\d\d-\d\d-\d\d(?:\d\d)?\s+\d\d:\d\d(?:[AP]M)?\s+(?:(?P<folder><DIR>)|\d+)\s+(?P<name>.+)\Z"

#: Menu entries that are nothing to fetch: notes, errors, telnet sessions, other servers for the same.
_NO_DOCUMENT = frozenset(b"i3T82+")


def _lines(document: Document) -> Iterator[bytes]:
    for line in document.content.split(b"\n", MOST_LINES)[:MOST_LINES]:
        yield line.rstrip(b"\r")


class FtpListing(Provider[NoSettings]):
    """Finds links to the entries of an ftp directory. Contract: `Processor`."""

    divisible = True

    def process(self, document: Document) -> Iterable[Found]:
        """Lines of the two forms that servers use; others are not guessed at."""
        for line in _lines(document):
            entry = re.match(_UNIX, line[:4096]) or re.match(_DOS, line[:4096])
            if entry is None:
                continue
            parts = entry.groupdict()
            name, folder = parts["name"], parts.get("folder") or parts.get("kind") == b"d"
            if parts.get("kind") == b"l":
                name = name.partition(b" -> ")[0]
            if name in (b".", b"..") or b"/" in name:
                continue
            # `./`: a name may look like a scheme.
            yield Found(
                f"./{quote_from_bytes(name)}{'/' if folder else ''}", "ftp entry", name.decode("utf-8", "replace")
            )


class GopherMenu(Provider[NoSettings]):
    """Finds links to the entries of a gopher menu (RFC 1436, 3.8). Contract: `Processor`."""

    divisible = True

    def process(self, document: Document) -> Iterable[Found]:
        """Type and text, selector, host and port of each line, parted by tabs."""
        for line in _lines(document):
            if line == b".":
                return
            parts = line.split(b"\t")
            if len(parts) < 4 or not line or line[0] in _NO_DOCUMENT:
                continue
            text, selector, host, port = parts[:4]
            anchor = text[1:].decode("utf-8", "replace")
            if text[:1] == b"h" and selector.startswith((b"URL:", b"/URL:")):
                yield Found(selector.partition(b"URL:")[2].decode("latin-1"), "gopher entry", anchor)
            elif port.strip().isdigit():
                place = f"{host.decode('latin-1').strip()}:{port.decode('latin-1').strip()}"
                yield Found(f"gopher://{place}/{chr(line[0])}{quote_from_bytes(selector)}", "gopher entry", anchor)


class UriList(Provider[NoSettings]):
    """Finds the links of a list of URLs (RFC 2483, section 5). Contract: `Processor`."""

    divisible = True

    def process(self, document: Document) -> Iterable[Found]:
        """Every line that is no comment."""
        for line in _lines(document):
            if line and not line.startswith(b"#"):
                yield Found(line.decode("utf-8", "replace"), "uri list")


# Page requisites, which a browser fetches by itself to show an element: pictures, style sheets, scripts, media. HTML links ask for
# those of each element where they are wanted; the mirror rewrites what is found here. Pictures that a script moves into place when
# they come into view count, too: a browser without scripts would not fetch them, and an archive without them shows empty frames.

# In graphics; where both are, both are found.
_SVG = ("href", "xlink:href")

#: Where requisites stand. An `input` has one only if it is an image.
REQUISITES: Mapping[str, tuple[str, ...]] = {
    "link": ("href", "imagesrcset"),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "script": ("src", *_SVG),
    "input": ("src",),
    "image": _SVG,
    "use": _SVG,
    "feimage": _SVG,
    **dict.fromkeys(BACKGROUNDS, ("background",)),
}

#: The same with the relation of what is found there, but for `link`, whose `rel` says it.
_PLACED = {
    tag: tuple((place, f"{tag} {place}") for place in places if (tag, place) != ("link", "href"))
    for tag, places in REQUISITES.items()
}

#: Elements whose contents scripts move into place, and the attributes in which they wait: `data-src`, `data-lazy-srcset`,
#: `data-original`, `data-cfsrc`, `data-poster` and their kind.
_LAZY = frozenset({"img", "source", "video", "audio"})
_WAITING = r"data-(?:[a-z0-9]{1,20}-){0,3}(?:[a-z]{0,20}src(?:set)?|original(?:-set)?|poster|lazy(?:-?load)?|echo)"
#: The same of pictures behind any element: `data-bg`, `data-background-image`, `data-bgset` and their kind.
_WAITING_BEHIND = (
    r"data-(?:[a-z0-9]{1,20}-){0,2}(?:bg|background)(?:-?(?:img|image|images|src|url|hidpi|multi|set|lazy|mobile|tablet|desktop|webp))"
    r"{0,3}"
)
_IS_SIZE = lazy_pattern(r"\s*+[\d.][\d.,/%\s]*+\Z")
#: The form that tells an address from a switch as `data-lazy="true"`, and from a template.
_IS_ADDRESS = r"[\t\n\f\r ]*+(?!data:|[#{<\[])[^\t\n\f\r ]*[./?]"

# URL and descriptors of one image candidate (HTML, "parse a srcset attribute"): a comma ends it, but not in parentheses. Blanks are
# those of ASCII alone.
CANDIDATE = lazy_pattern(r"[\t\n\f\r ,]*+([^\t\n\f\r ]++)((?:[^,(]|\([^)]*+(?:\)|\Z))*+)")


def requisites(tag: str, attributes: Mapping[str, str], tokens: Iterable[str], style: bytes) -> Iterator[Found]:
    """The files that a browser would fetch for one element.

    Args:
        tag: its name.
        attributes: names in lower case.
        tokens: of its `rel`, in lower case.
        style: the sheet in a `style` element.
    """
    if tag == "style":
        yield from css_links(style.decode("utf-8", "replace"))
    elif declarations := attributes.get("style"):
        yield from css_links(declarations)
    if tag == "link":
        relation = link_type(tokens)
        if not relation:
            return
        if href := attributes.get("href"):
            yield Found(href, relation)
    elif tag == "input" and (attributes.get("type") or "").lower() != "image":
        return
    elif tag == "image" and "src" in attributes:
        tag = "img"  # the parser's own correction (HTML, 13.2.6.4.7)
    yield from _placed(tag, attributes)


def _placed(tag: str, attributes: Mapping[str, str]) -> Iterator[Found]:
    """The requisites that the attributes of an element name, but for the address of a `link`."""
    places = _PLACED.get(tag, ())
    if tag in _LAZY or ("data-" in (names := " ".join(attributes)) and ("bg" in names or "background" in names)):
        places = (*places, *waiting(tag, attributes))
    for place, relation in places if tag != "iframe" else ():
        value = attributes.get(place)
        if not value:
            continue
        if relation == CSS_URL and "(" in value:
            yield from css_links(value)
        elif relation.endswith("srcset") or place.endswith("bgset"):
            yield from (Found(url, relation) for url in candidates(value))
        elif not value.startswith(("data:", "#")):
            yield Found(value, relation)


def link_type(tokens: Iterable[str]) -> str:
    """The relation of a `link` to a part of its page, as `link icon`; empty for a link to a document."""
    return next((f"link {one}" for one in sorted(LINK_TYPES.intersection(tokens))), "")


def waiting(tag: str, attributes: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """The attributes in which pictures, media and frames wait for a script, each with the relation of what is found there: for a
    picture behind any element, an address or `url()`."""
    for name, value in attributes.items():
        if not value or not name.startswith("data-"):
            continue
        if (tag in _LAZY or tag == "iframe") and re.fullmatch(_WAITING, name):
            if re.match(_IS_ADDRESS, value):
                yield name, f"{tag} data-srcset" if name.endswith("set") else f"{tag} data-src"
        elif tag != "iframe" and ("bg" in name or "background" in name) and re.fullmatch(_WAITING_BEHIND, name):
            is_address = "(" not in value and re.match(_IS_ADDRESS, value) and not _IS_SIZE.match(value)
            if is_address or "url(" in value.lower():
                yield name, CSS_URL


def candidates(srcset: str) -> Iterator[str]:
    """The URLs of a `srcset`."""
    place = 0
    while (match := CANDIDATE.match(srcset, place)) is not None:
        url, place = match[1], match.end()
        if url.endswith(","):
            # Commas behind a URL end the candidate: text like descriptors is the next one.
            url, place = url.rstrip(","), match.end(1)
        if url and not url.startswith("data:"):
            yield url
