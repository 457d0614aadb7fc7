"""Links of an HTML page, in document order.

Place in the flow: one of the processors that the process stage asks; it yields what the page *says*, unresolved. The
links stage makes URLs of it, against :attr:`~gossamer.model.document.Document.base`.

Which elements count (HTML, 4.6 and 4.2.4):

=========================  =================================================================  ==================
element                    followed                                                           relation
=========================  =================================================================  ==================
`a`, `area`                always                                                             `a href`, `area href`
`iframe`, `frame`          by default (`frames`)                                              `iframe src`, ...
`meta` refresh             always                                                             `meta content`
`link`                     by default (`link_elements`), if a token of `rel` is in            `link href`
                           :data:`FOLLOWED_RELATIONS` and none is a requisite's
`link`, `img`, `script`    only with `requisites`: what a browser fetches to show the page    `link href`, ...
=========================  =================================================================  ==================
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated

from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model import markup
from gossamer.model.document import Document
from gossamer.model.visit import Found

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

#: Those that lead to parts of the page itself. They win: `alternate stylesheet` is a style sheet.
REQUISITE_RELATIONS = frozenset(
    [
        "apple-touch-icon",
        "apple-touch-icon-precomposed",
        "icon",
        "manifest",
        "mask-icon",
        "modulepreload",
        "preload",
        "stylesheet",
    ]
)

#: `rel` tokens by which a page says that it does not vouch for a link (HTML, 4.6.6; Google's `ugc` and `sponsored`).
NOFOLLOW = frozenset({"nofollow", "ugc", "sponsored"})

#: Characters of an anchor text that are kept: enough for an index, bounded whatever the page (FAULTS 76).
MAX_ANCHOR = 500

#: Where an element keeps its link.
_PLACES: Mapping[str, str] = {
    "a": "href",
    "area": "href",
    "link": "href",
    "iframe": "src",
    "frame": "src",
    "meta": "content",
    "img": "src",
    "script": "src",
    "source": "src",
    "embed": "src",
}
_FRAMES = ("iframe", "frame")
_REQUISITES = ("img", "script", "source", "embed")
# The number, a separator, perhaps `url=`, perhaps a quote (HTML, "shared declarative refresh steps").
_REFRESH = re.compile(
    r"\s*(?:\d[\d.]*|\.[\d.]*)\s*[;,\s]\s*(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(.*))", re.IGNORECASE | re.DOTALL
)


class HtmlLinksSheet(Sheet, frozen=True):
    """Settings of :class:`HtmlLinks`."""

    link_elements: Annotated[bool, setting("Follow `link` elements that lead to documents (next, canonical, ...).")] = (
        True
    )
    frames: Annotated[bool, setting("Follow `iframe` and `frame`.")] = True
    requisites: Annotated[bool, setting("Follow style sheets, scripts, images and icons too.")] = False
    anchors: Annotated[bool, setting("Keep the text of links; costs about 1 us a link.")] = False


class HtmlLinks(Provider[HtmlLinksSheet]):
    """Finds the links of an HTML page. Contract: `processing.Processor`. Keeps no state."""

    def process(self, document: Document) -> Iterable[Found]:
        """The page's links; by a linear scan where the page is in trouble, so that even then none is lost."""
        if document.trouble:
            self.metrics.count("scanned")
            return self._scan(document.markup)
        sheet = self.sheet
        # One walk by selector for all elements keeps document order, and costs less than a walk for each; `attributes`
        # reads them all at once, which is cheaper than asking `attrs` for two of them.
        found = []
        for node in document.tree.css(_selector(sheet)):
            attributes, tag = node.attributes, node.tag or ""
            if tag == "a" and not sheet.anchors:
                href = attributes["href"]
                if href:
                    rel = attributes.get("rel")
                    found.append(Found(href, "a href", "", True) if rel and _disowned(rel) else Found(href))
                continue
            one = self._found(tag, attributes)
            if one is not None:
                found.append(one if tag != "a" else Found(one.href, one.relation, _folded(node.text()), one.nofollow))
        return found

    def _scan(self, text: bytes) -> Iterable[Found]:
        """The fallback: every tag of the bytes, without a tree. Anchor texts are not known here."""
        names = {tag.encode(): tag for tag in _elements(self.sheet)}
        for tag in markup.tags(text):
            name = names.get(tag.name)
            if name is not None and not tag.closing:
                one = self._found(name, markup.attributes(tag))
                if one is not None:
                    yield one

    def _found(self, tag: str, attributes: Mapping[str, str | None]) -> Found | None:
        """The link of one element; None where it has none that is followed."""
        place = _PLACES[tag]
        href = attributes.get(place)
        if tag == "meta":
            href = refresh_target(href) if href and (attributes.get("http-equiv") or "").lower() == "refresh" else None
        if not href or (tag == "link" and not self._follows(attributes.get("rel"))):
            return None
        disowned = tag in ("a", "area") and _disowned(attributes.get("rel") or "")
        return Found(href, f"{tag} {place}", "", disowned)

    def _follows(self, rel: str | None) -> bool:
        """Whether a `link` of this `rel` is followed."""
        tokens = frozenset((rel or "").lower().split())
        if tokens & REQUISITE_RELATIONS:
            return self.sheet.requisites
        return self.sheet.link_elements and bool(tokens & FOLLOWED_RELATIONS)


def refresh_target(content: str) -> str | None:
    """The URL of a `meta` refresh; None where it only reloads the page. Never obeyed in place (FAULTS 33)."""
    match = _REFRESH.match(content[:4096])
    if match is None:
        return None
    return (match[1] or match[2] or match[3] or "").strip() or None


def _elements(sheet: HtmlLinksSheet) -> list[str]:
    """The elements that can hold a link that is followed."""
    return [
        *("a", "area", "meta"),
        *(("link",) if sheet.link_elements or sheet.requisites else ()),
        *(_FRAMES if sheet.frames else ()),
        *(_REQUISITES if sheet.requisites else ()),
    ]


@lru_cache(maxsize=16)
def _selector(sheet: HtmlLinksSheet) -> str:
    return ",".join("meta[http-equiv]" if tag == "meta" else f"{tag}[{_PLACES[tag]}]" for tag in _elements(sheet))


def _disowned(rel: str) -> bool:
    return not NOFOLLOW.isdisjoint(rel.lower().split())


def _folded(text: str) -> str:
    return " ".join(text[: 4 * MAX_ANCHOR].split())[:MAX_ANCHOR]
