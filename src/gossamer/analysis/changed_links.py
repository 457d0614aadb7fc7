"""Links of archived documents, changed: in the tree of a page, in style sheets.

Place in the flow: :mod:`gossamer.analysis.mirror` makes links between URLs into links between files, and
:mod:`gossamer.analysis.replaying` leads them into the archive; both say what becomes of a link, and everything else is here. Pages
become UTF-8 with a byte order mark in front, which says so to a browser whatever the page said.
"""

import codecs
import re
from collections.abc import Callable
from typing import Any

from gossamer.engine.sheet import build
from gossamer.engine.wiring import Wiring
from gossamer.parsing.html import MAX_WITHIN, PLACES, REFRESH
from gossamer.parsing.links import JoinCache, LinksSheet, normaliser, resolve_links, with_queries
from gossamer.parsing.other_links import CANDIDATE, REQUISITES, css_places, waiting
from gossamer.values.task import CSS_URL
from gossamer.values.visit import Found

#: Takes a link as it is written, and its relation, to how it is written in the mirror.
Change = Callable[[str, str], str]

#: Attributes that hold one link, by element.
_LINKS: dict[str, set[str]] = {}
for _tag, _place in PLACES.items():
    if _tag != "meta":
        _LINKS.setdefault(_tag, set()).add(_place)
for _tag, _places in REQUISITES.items():
    _LINKS.setdefault(_tag, set()).update(_places)

#: Attributes that would keep a browser from using a file that was rewritten, or that lies on a disk.
_IN_THE_WAY = ("integrity", "crossorigin", "nonce")


def changed_css(text: str, change: Change) -> str:
    """A style sheet, or a `style` attribute, with its links changed."""
    done, parts = 0, []
    for start, end, found in css_places(text):
        url = change(found.href, found.relation)
        escaped = "".join(f"\\{ord(one):x} " if one in '"\\\n\r\f<>' else one for one in url)
        parts += [text[done:start], f'"{escaped}"']
        done = end
    return "".join((*parts, text[done:]))


def changed_html(tree: Any, change: Change) -> bytes:
    """A parsed page (`LexborHTMLParser`) with its links changed, as UTF-8; the tree is changed."""
    return codecs.BOM_UTF8 + _changed(tree, change).encode("utf-8", "replace")


def _changed(tree: Any, change: Change, depth: int = 0) -> str:
    """The same as text, with the pages in its `iframe srcdoc`, as deep as a crawl reads them."""
    for node in tree.root.traverse():
        tag = node.tag
        if tag == "style" and (sheet := node.text(deep=True)):
            node.inner_html = changed_css(sheet, change).replace("</", "<\\/")
        attributes = node.attributes
        if not attributes:
            continue
        if tag == "base":
            # Links are relative to the file from here on.
            if "href" in attributes:
                del node.attrs["href"]
            continue
        if style := attributes.get("style"):
            node.attrs["style"] = changed_css(style, change)
        for name in _IN_THE_WAY:
            if name in attributes:
                del node.attrs[name]
        if tag == "iframe" and depth < MAX_WITHIN and (within := attributes.get("srcdoc")):
            node.attrs["srcdoc"] = _changed(type(tree)(within), change, depth + 1)  # by the same parser
        _change_links(node, tag, attributes, change)
    html: str = tree.html
    return html


def _change_links(node: Any, tag: str, attributes: dict[str, str | None], change: Change) -> None:
    if tag == "meta":
        if (attributes.get("http-equiv") or "").lower() == "refresh":
            content = attributes.get("content") or ""
            match = REFRESH.match(content[:4096])
            if match is not None and (url := (match[1] or match[2] or match[3] or "").strip()):
                seconds = re.split(r"[;,\s]", content[: match.start(match.lastindex or 0)].lstrip(), maxsplit=1)[0]
                node.attrs["content"] = f"{seconds}; url={change(url, 'meta content')}"
        return
    for place in _LINKS.get(tag, ()):
        value = attributes.get(place)
        if value is None:
            continue
        if place.endswith("srcset"):
            node.attrs[place] = _changed_set(value, change)
        elif not value.strip().lower().startswith(("data:", "#", "javascript:", "mailto:", "tel:")):
            node.attrs[place] = change(value, f"{tag} {place}")
    for place, relation in list(waiting(tag, attributes)):
        value = attributes[place] or ""
        if relation == CSS_URL and "(" in value:
            node.attrs[place] = changed_css(value, change)
        else:
            node.attrs[place] = _changed_set(value, change) if place.endswith("set") else change(value, relation)


def _changed_set(value: str, change: Change) -> str:
    """A `srcset` with its links changed; candidates that embed their picture stay."""
    written, place = [], 0
    while (match := CANDIDATE.match(value, place)) is not None:
        url, described, place = match[1], match[2].strip(), match.end()
        if url.endswith(","):
            url, described, place = url.rstrip(","), "", match.end(1)
        if url:
            new = url if url.startswith("data:") else change(url, CSS_URL)
            written.append(f"{new} {described}".strip())
    return ", ".join(written)


class LinkTargets:
    """Says which URL a link of an archived document leads to, by the rules by which its crawl followed links."""

    def __init__(self, wiring: Wiring) -> None:
        """`wiring` is the crawl's own."""
        plan = wiring.components.get("links")
        settings = plan.settings if plan is not None and plan.use == "links" else {}
        self._normalise = normaliser(build(LinksSheet, settings))
        self._cache = JoinCache()

    def target(self, href: str, relation: str, *, url: str, base: str, charset: str) -> str:
        """The canonical URL that a link of this kind (`img src`) leads to in the document at `url`, whose links are relative to
        `base`; empty where the crawl could not follow it. `charset` is empty for UTF-8."""
        one = (Found(href, relation),)
        found = with_queries(one, base, charset) if charset else one
        links, _ = resolve_links(found, base, url, self._cache, 1, self._normalise)
        return links[0].url if links else ""
