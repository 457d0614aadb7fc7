"""Links of an HTML page, in document order.

Place in the flow: one of the processors that the process stage asks; it yields what the page *says*, unresolved. The
links stage makes URLs of it, against :attr:`~gossamer.model.document.Document.base`.

Which elements count (HTML, 4.6 and 4.2.4):

===========================  ===============================================================  ==================
element                      found                                                            relation
===========================  ===============================================================  ==================
`a`, `area`                  always                                                           `a href`, `area href`
`iframe`, `frame`            by default (`frames`)                                            `iframe src`, ...
`meta` refresh               always                                                           `meta content`
`link`                       by default (`link_elements`), if a token of `rel` is in          `link href`
                             :data:`FOLLOWED_RELATIONS` and none is a requisite's
`form`                       only with `forms`, where its method is GET                       `form action`
`link`, `img`, `script` ...  only with `requisites`: what a browser fetches to show the       `img srcset`,
                             page (:mod:`gossamer.model.requisites`)                          `link stylesheet`, ...
===========================  ===============================================================  ==================
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated

from selectolax.lexbor import LexborHTMLParser

from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model import markup
from gossamer.model.document import Document
from gossamer.model.requisites import LINK_TYPES
from gossamer.model.visit import Found
from gossamer.stages.process.css import css_links

#: `rel` tokens of `link` elements that lead to documents (HTML's list of link types, and names in use before it).
FOLLOWED_RELATIONS = frozenset(
    [
        "alternate",
        "amphtml",
        "appendix",
        "archives",
        "author",
        "bookmark",
        "canonical",
        "chapter",
        "contents",
        "copyright",
        "first",
        "glossary",
        "help",
        "home",
        "index",
        "last",
        "license",
        "next",
        "prerender",
        "prefetch",
        "prev",
        "previous",
        "section",
        "shortlink",
        "start",
        "subsection",
        "toc",
        "top",
        "up",
    ]
)

#: `rel` tokens by which a page says that it does not vouch for a link (HTML, 4.6.6; Google's `ugc` and `sponsored`).
NOFOLLOW = frozenset({"nofollow", "ugc", "sponsored"})

#: Characters of an anchor text that are kept: enough for an index, bounded whatever the page (FAULTS 76).
MAX_ANCHOR = 500

#: Candidates of one `srcset` that are yielded; pages have a handful.
MAX_CANDIDATES = 100

#: Where a link to a document stands.
_PLACES: Mapping[str, str] = {
    "a": "href",
    "area": "href",
    "link": "href",
    "iframe": "src",
    "frame": "src",
    "meta": "content",
    "form": "action",
}

# A selector knows names without their prefix: `[href]` finds both.
_SVG = ("href", "xlink:href")

#: Where requisites stand. An `input` has one only if it is an image.
_REQUISITES: Mapping[str, tuple[str, ...]] = {
    "link": ("href", "imagesrcset"),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "script": ("src",),
    "input": ("src",),
    "body": ("background",),
    "image": _SVG,
    "use": _SVG,
}
_FRAMES = ("iframe", "frame")
# The number, a separator, perhaps `url=`, perhaps a quote (HTML, "shared declarative refresh steps").
_REFRESH = re.compile(
    r"\s*(?:\d[\d.]*|\.[\d.]*)\s*[;,\s]\s*(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(.*))", re.IGNORECASE | re.DOTALL
)
# URL and descriptors of one image candidate (HTML, "parse a srcset attribute"): a comma ends it, but not in parentheses.
_CANDIDATE = re.compile(r"[\s,]*+(\S++)((?:[^,(]|\([^)]*+(?:\)|\Z))*+)")

#: Gives the text in an element.
_Text = Callable[[], str]

# What the parser calls `a`: a number is compared in a fifth of the time that a name takes.
_A, _LINK = (LexborHTMLParser(f"<{name}>").css(name)[0].tag_id for name in ("a", "link"))


class HtmlLinksSheet(Sheet, frozen=True):
    """Settings of :class:`HtmlLinks`."""

    link_elements: Annotated[bool, setting("Follow `link` elements that lead to documents (next, canonical, ...).")] = (
        True
    )
    frames: Annotated[bool, setting("Follow `iframe` and `frame`.")] = True
    forms: Annotated[bool, setting("Follow the addresses of forms that are sent by GET, without fields.")] = False
    requisites: Annotated[bool, setting("Follow style sheets, scripts, images, media and icons too.")] = False
    anchors: Annotated[bool, setting("Keep the text of links; costs about 1 us a link.")] = False


class HtmlLinks(Provider[HtmlLinksSheet]):
    """Finds the links of an HTML page. Contract: `processing.Processor`. Keeps no state."""

    def process(self, document: Document) -> Iterable[Found]:
        """The page's links; by a linear scan where the page is in trouble, so that even then none is lost."""
        if document.trouble:
            self.metrics.count("scanned")
            return self._scan(document.markup)
        sheet = self.sheet
        plain = document.is_plain
        found: list[Found] = []
        add = found.append
        # One walk by selector for all elements keeps document order, and costs less than a walk for each.
        last = 0
        for node in document.tree.css(_selector(sheet, plain)):
            if sheet.requisites:
                # An element that several selectors match comes once for each, one after the other.
                if node.mem_id != last:
                    found.extend(self._found(node.tag or "", node.attributes, node.text))
                    last = node.mem_id
                continue
            kind = node.tag_id
            if kind == _LINK:
                attributes = node.attributes
                href = attributes["href"]
                if href and _leads_on(attributes.get("rel") or ""):
                    add(Found(href, "link href"))
                continue
            if kind != _A:
                found.extend(self._found(node.tag or "", node.attributes, node.text))
                continue
            # Most links of most pages. Where no link can be disowned, one attribute is asked for, at half the price of
            # reading them all; where two are needed, reading all is the cheaper way.
            if plain:
                href, rel = node.attrs["href"], None
            else:
                attributes = node.attributes
                href, rel = attributes["href"], attributes.get("rel")
            if not href:
                continue
            if rel or sheet.anchors:
                anchor = _folded(node.text()) if sheet.anchors else ""
                add(Found(href, "a href", anchor, rel is not None and _disowned(rel)))
            else:
                add(Found(href))
        return found

    def _scan(self, text: bytes) -> Iterable[Found]:
        """The fallback: every tag of the bytes, without a tree. Anchor texts and `style` elements are not known here."""
        names = {tag.encode(): tag for tag in _elements(self.sheet, plain=False)}
        for tag in markup.tags(text):
            name = names.get(tag.name)
            if name is not None and not tag.closing:
                yield from self._found(name, markup.attributes(tag), str)

    def _found(self, tag: str, attributes: Mapping[str, str | None], text: _Text) -> Iterator[Found]:
        """What one element leads to; `text` gives the text in it."""
        sheet = self.sheet
        tokens = frozenset((attributes.get("rel") or "").lower().split())
        if sheet.requisites:
            yield from _requisites(tag, attributes, tokens, text)
        place = _PLACES.get(tag)
        href = attributes.get(place) if place else None
        if not href:
            return
        if tag == "meta":
            refreshes = (attributes.get("http-equiv") or "").strip().lower() == "refresh"
            href = refresh_target(href) if refreshes else None
        elif tag == "link":
            href = href if sheet.link_elements and _leads_on(attributes.get("rel") or "") else None
        elif tag == "form":
            href = href if sheet.forms and (attributes.get("method") or "get").strip().lower() == "get" else None
        if href:
            anchor = _folded(text()) if tag == "a" and sheet.anchors else ""
            yield Found(href, f"{tag} {place}", anchor, tag in ("a", "area") and not NOFOLLOW.isdisjoint(tokens))


def _requisites(tag: str, attributes: Mapping[str, str | None], tokens: frozenset[str], text: _Text) -> Iterator[Found]:
    """What a browser would fetch for one element."""
    if tag == "style":
        yield from css_links(text())
    elif style := attributes.get("style"):
        yield from css_links(style)
    if tag == "link":
        types = sorted(tokens & LINK_TYPES)
        if not types:
            return
        if href := attributes.get("href"):
            yield Found(href, f"link {types[0]}")
    elif tag == "input" and (attributes.get("type") or "").lower() != "image":
        return
    for place in _REQUISITES.get(tag, ()):
        value = attributes.get(place)
        if not value or (tag, place) == ("link", "href"):
            continue
        if place.endswith("srcset"):
            yield from (Found(url, f"{tag} {place}") for url in candidates(value))
        elif not value.startswith(("data:", "#")):
            yield Found(value, f"{tag} {place}")


def candidates(srcset: str) -> Iterator[str]:
    """The URLs of a `srcset`."""
    found = 0
    place = 0
    while found < MAX_CANDIDATES and (match := _CANDIDATE.match(srcset, place)) is not None:
        url, place = match[1], match.end()
        if url.endswith(","):
            # Commas behind a URL end the candidate: what looks like descriptors is the next one.
            url, place = url.rstrip(","), match.end(1)
        if url and not url.startswith("data:"):
            yield url
            found += 1


def refresh_target(content: str) -> str | None:
    """The URL of a `meta` refresh; None where it only reloads the page. Never obeyed in place (FAULTS 33)."""
    match = _REFRESH.match(content[:4096])
    if match is None:
        return None
    return (match[1] or match[2] or match[3] or "").strip() or None


def _elements(sheet: HtmlLinksSheet, *, plain: bool) -> list[str]:
    """The elements that can hold a link that is wanted."""
    names = ["a"]
    names += ["link"] if sheet.link_elements or sheet.requisites else []
    names += [] if plain else ["area", "meta", *(_FRAMES if sheet.frames else ())]
    names += ["form"] if sheet.forms else []
    if sheet.requisites:
        names += [name for name in (*_REQUISITES, "style") if name not in names]
    return names


@lru_cache(maxsize=64)
def _selector(sheet: HtmlLinksSheet, plain: bool) -> str:
    names = _elements(sheet, plain=plain)
    if not sheet.requisites:
        return ",".join("meta[http-equiv]" if name == "meta" else f"{name}[{_PLACES[name]}]" for name in names)
    parts = []
    for name in names:
        places = (*((_PLACES[name],) if name in _PLACES else ()), *_REQUISITES.get(name, ()))
        parts += [f"{name}[{place.removeprefix('xlink:')}]" for place in places]
    return ",".join(dict.fromkeys([*parts, "style", "[style]"]))


@lru_cache(maxsize=1024)
def _leads_on(rel: str) -> bool:
    """Whether a `link` of this `rel` leads to a document."""
    tokens = frozenset(rel.lower().split())
    return bool(tokens & FOLLOWED_RELATIONS) and not tokens & LINK_TYPES


def _disowned(rel: str) -> bool:
    return not NOFOLLOW.isdisjoint(rel.lower().split())


def _folded(text: str) -> str:
    return " ".join(text[: 4 * MAX_ANCHOR].split())[:MAX_ANCHOR]
