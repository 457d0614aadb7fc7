"""Compare what a skim finds in HTML files with what the parser's tree holds: `gossamer dev skimmed FOLDER...`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser, LexborNode

from gossamer.documents import statements
from gossamer.documents.document import Document
from gossamer.parsing.html import HtmlLinks, HtmlLinksSheet
from gossamer.testing.storage import visit
from gossamer.values.errors import UnreadableUrl
from gossamer.values.url import canonical

#: Graphics and formulas, with their elements that hold HTML again (HTML, 13.2.4.2).
HOLDS_HTML = {
    "svg": frozenset({"foreignobject", "desc", "title"}),
    "math": frozenset({"annotation-xml", "mi", "mo", "mn", "ms", "mtext"}),
}

#: Where the files are said to come from.
PLACE = "http://site.test/folder/page"

#: Differences that are shown.
SHOWN = 20

Link = tuple[str, str, bool, str]
"""Relation, address, whether it is disowned, and the text of the link."""


def links_of_tree(tree: LexborHTMLParser) -> Iterator[Link]:
    """Links to documents but those of frames, metas and forms. The parser repeats some: how many there are means nothing."""
    for node in tree.css("a,area,link,iframe"):
        name, read = node.tag or "", node.attributes
        tokens = (read.get("rel") or "").lower().split()
        place = "src" if name == "iframe" else "href"
        href = read.get(place) or (read.get("xlink:href") if name == "a" else None)
        leads_to_itself = name in ("a", "area") and place in read
        if not href and not leads_to_itself:
            continue
        if name == "link" and not {"next", "prev", "canonical", "index"} & set(tokens):
            continue
        anchor = " ".join(node.text().split())[:500] if name == "a" else ""
        yield f"{name} {place}", href or "", name in ("a", "area") and "nofollow" in tokens, anchor
    for node in tree.css("iframe[srcdoc]"):
        yield from links_of_tree(LexborHTMLParser(node.attributes["srcdoc"] or ""))


def links_of_skim(document: Document) -> Iterator[Link]:
    """The same links, as a crawl gets them."""
    known = {"next", "prev", "canonical", "index"}
    wanted = {
        tag.attributes.get("href")
        for tag in document.skim.named(b"link")
        if known & set(tag.attributes.get("rel", "").lower().split())
    }
    for found in HtmlLinks(HtmlLinksSheet(anchors=True)).process(document):
        kind = found.relation.partition(" ")[0]
        if kind in ("a", "area", "iframe") or (kind == "link" and found.href in wanted):
            yield found.relation, found.href, found.nofollow, found.anchor


def said_by_tree(tree: LexborHTMLParser, document: Document) -> tuple[str, str, str, tuple[str, ...]]:
    """Title, base, canonical URL and directives, of a page whose header fields say nothing."""
    title = next(filter(_is_html, tree.css("title")), None)
    base = next(filter(_is_html, tree.css("base[href]")), None)
    own = [
        node.attributes["href"]
        for node in (tree.head.css("link[href][rel]") if tree.head is not None else ())
        if "canonical" in (node.attributes["rel"] or "").lower().split()
    ]
    metas = [
        node.attributes.get("content") or ""
        for node in tree.css("meta[name]")
        if statements.concerns(node.attributes["name"] or "", document.agent)
    ]
    url = _resolved(base.attributes["href"] or "", PLACE) or PLACE if base is not None else PLACE
    return (
        " ".join(title.text().split())[:1_000] if title is not None else "",
        url,
        _resolved(own[0], url) if own and own[0] else "",
        tuple(sorted(statements.directives(metas, document.agent))),
    )


def _is_html(node: LexborNode) -> bool:
    """Whether it is an element of the page itself, not of graphics or formulas in it."""
    around: list[str] = []
    above = node.parent
    while above is not None:
        around.append((above.tag or "").lower())
        above = above.parent
    kind = ""
    for name in reversed(around):
        if not kind and name in HOLDS_HTML:
            kind = name
        elif kind and name in HOLDS_HTML[kind]:
            kind = ""
    return not kind


def said_by_skim(document: Document) -> tuple[str, str, str, tuple[str, ...]]:
    """The same, as a crawl gets it."""
    return document.title, document.base, document.canonical, document.directives


def _resolved(href: str, base: str) -> str:
    try:
        return canonical(href, base)
    except UnreadableUrl:
        return ""


def differences(content: bytes) -> tuple[int, list[str]]:
    """How many links a page has, and in what skim and tree differ."""
    document = Document(visit(PLACE, content))
    tree = LexborHTMLParser(document.markup)
    ours = list(links_of_skim(document))
    mine, theirs = set(ours), set(links_of_tree(tree))
    found = [f"link in the skim alone: {link}" for link in sorted(mine - theirs)]
    found += [f"link in the tree alone: {link}" for link in sorted(theirs - mine)]
    found += [
        f"{one!r} in the skim, {other!r} in the tree"
        for one, other in zip(said_by_skim(document), said_by_tree(tree, document), strict=True)
        if one != other
    ]
    return len(ours), found


def main(arguments: list[str]) -> int:
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    pages = links = different = 0
    for folder in arguments:
        for path in sorted(Path(folder).rglob("*")):
            if not path.is_file() or ".htm" not in path.name:
                continue
            count, found = differences(path.read_bytes())
            pages, links, different = pages + 1, links + count, different + bool(found)
            if found and different <= SHOWN:
                print(path, *found[:5], sep="\n  ")
    print(f"{pages} pages with {links} links: {different} differ.")
    return 1 if different else 0
