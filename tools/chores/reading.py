"""Compare how a crawl reads HTML files with the parser's tree.

`prose FOLDER=SELECTOR[!MENUS]...` measures what is taken for the text of real pages. Generators of documentation put what an author
wrote into one element, and menus around it, or as elements that the selector MENUS names into it. The words of that element without
`pre` are what a text should have; a word of a text that is not there is boilerplate or code. Its headings, listings, cells, tables
and links to other pages are what Markdown should have. `skimmed FOLDER...` compares what a skim finds with what the tree holds.
"""

import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser, LexborNode

from gossamer.documents import charset, statements
from gossamer.documents.document import Document
from gossamer.documents.markdown import as_markdown
from gossamer.documents.text import main_text
from gossamer.parsing.html import HtmlLinks, HtmlLinksSheet
from gossamer.testing.storage import visit
from gossamer.values.errors import UnreadableUrl
from gossamer.values.url import canonical

#: Pages of each folder, evenly spread; with fewer words than this, a page is a list of links.
PAGES, WORDS = 150, 50

#: Links of Markdown, and their URLs; lines of headings, and rows of tables.
LINK_OF_MARKDOWN = re.compile(r"\]\((?:[^()\n]|\([^()\n]*\))*\)")
URL_OF_MARKDOWN = re.compile(r"\]\(<?((?:[^()\s>]|\([^()\s]*\))+)")
HEADING_LINE, ROW_LINE = re.compile(r"\s*(?:[>*-] )*#").match, re.compile(r"\s*(?:[>*-] )*\|").match

#: Share of its cells that a table of Markdown has.
WHOLE = 0.9

#: No prose inside the content: code, and what shows nothing.
NO_PROSE = "pre,script,style,template,noscript,nav,footer"


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def agreement(found: Counter[str], right: Counter[str]) -> tuple[float, float, float]:
    """Precision, recall and their harmonic mean, by words."""
    common = sum((found & right).values())
    precision = common / found.total() if found else 0.0
    recall = common / right.total()
    return precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0


def pages_of(
    folder: Path, selector: str, menus: str
) -> Iterator[tuple[bytes, Counter[str], Counter[str], Counter[str]]]:
    """Pages with the words of their content, and how many things of each kind it has, and Markdown of it."""
    files = sorted(path for path in folder.rglob("*.html*") if path.is_file() and not path.is_symlink())
    taken = 0
    for path in files[:: max(1, len(files) // (2 * PAGES))]:
        data = path.read_bytes()
        markup = charset.to_utf8(data, charset.sniff(data, "", ""))
        tree = LexborHTMLParser(markup)
        content = tree.css_first(selector)
        if content is None or taken == PAGES:
            continue
        for node in content.css(menus) if menus else ():
            node.decompose()
        things, kept = kept_of(content, Document(visit(PLACE, data)))
        for node in content.css(NO_PROSE):
            node.decompose()
        right = words(content.text(separator=" "))
        if right.total() >= WORDS:
            taken += 1
            yield markup, right, things, kept


def kept_of(content: LexborNode, document: Document) -> tuple[Counter[str], Counter[str]]:
    """How many things of each kind an element has, and how many of them Markdown of its page has."""
    markdown = as_markdown(document.markup, document.base, document.main_part).text
    lines = LINK_OF_MARKDOWN.sub("]", markdown.replace("\\", "")).split("\n")
    everything, headings, rows = (bare(" ".join(filter(is_one, lines))) for is_one in (bool, HEADING_LINE, ROW_LINE))
    linked = {url.partition("#")[0] for url in URL_OF_MARKDOWN.findall(markdown)}
    things, kept = Counter[str](), Counter[str]()
    for kind, selector, place in (
        ("headings", "h1,h2,h3,h4,h5,h6", headings),
        ("listings", "pre", everything),
        ("cells", "td,th", everything),
    ):
        for node in content.css(selector):
            text = "" if kind == "cells" and node.css_first("table") else bare(node.text(separator=""))
            things[kind] += bool(text)
            kept[kind] += bool(text) and text in place
    for table in content.css("table"):
        cells = [text for cell in table.css("td,th") if (text := bare(cell.text(separator="")))]
        if len(cells) > 1 and len(table.css("table")) == 1 and not table.css_first("pre"):
            things["tables"] += 1
            kept["tables"] += sum(text in rows for text in cells) >= WHOLE * len(cells)
    for node in content.css("a[href]"):
        url = _resolved(node.attributes["href"] or "", document.base).partition("#")[0]
        if url.startswith("http") and url != document.url and bare(node.text()) and "pre" not in tags_around(node):
            things["links"] += 1
            kept["links"] += url in linked
    return things, kept


def bare(text: str) -> str:
    """Letters and digits alone."""
    return re.sub(r"\W+", "", text.lower())


def tags_around(node: LexborNode) -> set[str]:
    found, above = set[str](), node.parent
    while above is not None:
        found.add(above.tag or "")
        above = above.parent
    return found


def prose(arguments: list[str]) -> int:
    """Measure; 0 where there was something to measure."""
    every: list[tuple[float, float, float, float]] = []
    things, kept = Counter[str](), Counter[str]()
    for argument in arguments:
        folder, _, selectors = argument.partition("=")
        selector, _, menus = selectors.partition("!")
        told: list[tuple[float, float, float, float]] = []
        for markup, right, its_things, its_kept in pages_of(Path(folder), selector or "body", menus):
            things.update(its_things)
            kept.update(its_kept)
            began = time.process_time()
            text = main_text(markup)
            took = time.process_time() - began
            told.append((*agreement(words(text), right), took))
        _show(folder, told)
        every += told
    _show("all of them, by pages", every)
    print("Markdown keeps", ", ".join(f"{kept[kind]:,} of {number:,} {kind}" for kind, number in things.items()))
    return 0 if every else 1


def _show(name: str, rows: list[tuple[float, float, float, float]]) -> None:
    """Precision, recall, F1 and CPU of pages; nothing where there are none."""
    if not rows:
        return
    precision, recall, both, _ = (statistics.mean(column) for column in zip(*rows, strict=True))
    seconds = statistics.median(row[3] for row in rows)
    print(
        f"{name}: {len(rows)} pages, precision {precision:.3f}, recall {recall:.3f}, F1 {both:.3f}, {seconds * 1e3:.2f} ms"
    )


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


def skimmed(arguments: list[str]) -> int:
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
