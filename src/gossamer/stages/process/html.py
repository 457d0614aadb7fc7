"""Links of an HTML page, in document order.

Place in the flow: one of the processors that the process stage asks; it yields what the page *says*, unresolved. The links
stage makes URLs of it, against :attr:`~gossamer.model.document.Document.base`.

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
from typing import Annotated

from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model import markup
from gossamer.model.document import Document
from gossamer.model.visit import Found

#: `rel` tokens of `link` elements that lead to documents (HTML's list of link types, and names in use before it).
FOLLOWED_RELATIONS = frozenset(
    "alternate amphtml appendix archives author bookmark canonical chapter contents copyright first glossary help home index"
    " last license next prerender prefetch prev previous section shortlink start subsection toc top up".split()
)

#: Those that lead to parts of the page itself. They win: `alternate stylesheet` is a style sheet.
REQUISITE_RELATIONS = frozenset(
    "apple-touch-icon apple-touch-icon-precomposed icon manifest mask-icon modulepreload preload stylesheet".split()
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
_SELECTORS = {
    "a": "a[href]",
    "area": "area[href]",
    "link": "link[href]",
    "meta": "meta[http-equiv]",
    **{tag: f"{tag}[src]" for tag in (*_FRAMES, *_REQUISITES)},
}
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
        lowered = document.lowered
        tags = self._present(lowered)
        first = lowered.find(b"<a")
        if tags <= {"a", "link"} and (first < 0 or lowered.find(b"<link", first) < 0):
            return self._plain(document, "link" in tags)
        return self._in_order(document, tags)

    def _present(self, lowered: bytes) -> set[str]:
        """The elements that this page can hold links in: bytes tell what is not there for a few microseconds."""
        tags = {"a"}
        if self.sheet.link_elements or self.sheet.requisites:
            tags |= {"link"} if b"<link" in lowered else set()
        if b"<area" in lowered:
            tags.add("area")
        if b"http-equiv" in lowered and b"refresh" in lowered:
            tags.add("meta")
        wanted = (_FRAMES if self.sheet.frames else ()) + (_REQUISITES if self.sheet.requisites else ())
        return tags | {tag for tag in wanted if b"<" + tag.encode() in lowered}

    def _plain(self, document: Document, with_links: bool) -> list[Found]:
        """The common page: `link` elements stand before every `a`, and there is nothing else. Two walks by name are
        cheaper than one by selector, and nobody needs to ask a node for its name.
        """
        tree, found = document.tree, []
        if with_links:
            for node in tree.tags("link"):
                attributes = node.attrs
                href = attributes.get("href")
                if href and self._follows(attributes.get("rel")):
                    found.append(Found(href, "link href"))
        anchors, doubtful = self.sheet.anchors, _may_disown(document.lowered)
        for node in tree.tags("a"):
            attributes = node.attrs
            href = attributes.get("href")
            if href:
                nofollow = doubtful and _disowned(attributes.get("rel"))
                if anchors or nofollow:
                    found.append(Found(href, "a href", _folded(node.text()) if anchors else "", nofollow))
                else:
                    found.append(Found(href))
        return found

    def _in_order(self, document: Document, tags: set[str]) -> list[Found]:
        """Any page: one walk that meets every element in document order."""
        found = []
        for node in document.tree.css(",".join(_SELECTORS[tag] for tag in sorted(tags))):
            attributes, tag = node.attributes, node.tag or ""
            one = self._found(tag, attributes)
            if one is not None:
                if self.sheet.anchors and tag == "a":
                    one = Found(one.href, one.relation, _folded(node.text()), one.nofollow)
                found.append(one)
        return found

    def _scan(self, text: bytes) -> Iterable[Found]:
        """The fallback: every tag of the bytes, without a tree. Anchor texts are not known here."""
        allowed = {"a", "area", "meta"} | ({"link"} if self.sheet.link_elements or self.sheet.requisites else set())
        allowed |= set(_FRAMES if self.sheet.frames else ()) | set(_REQUISITES if self.sheet.requisites else ())
        names = {tag.encode(): tag for tag in allowed}
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
        disowned = tag in ("a", "area") and _disowned(attributes.get("rel"))
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


def _may_disown(lowered: bytes) -> bool:
    """Whether any `rel` of the page can hold a word of :data:`NOFOLLOW`: written out, or by character references."""
    return any(word in lowered for word in (b"nofollow", b"ugc", b"sponsored")) or (
        b"rel" in lowered and b"&#" in lowered
    )


def _disowned(rel: str | None) -> bool:
    return bool(rel) and not NOFOLLOW.isdisjoint((rel or "").lower().split())


def _folded(text: str) -> str:
    return " ".join(text[: 4 * MAX_ANCHOR].split())[:MAX_ANCHOR]
