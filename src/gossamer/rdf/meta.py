"""What `meta` and `link` elements say of a page, as items: OpenGraph, Twitter cards, Dublin Core, and plain names and links.

They are read from the tags that the skim took one by one; no tree is needed.
"""

from collections.abc import Collection, Iterable
from functools import lru_cache

import msgspec

from gossamer.documents.skim import MAX_REMEMBERED, Tag
from gossamer.rdf.names import resolved

#: Values of one page that are kept.
MAX_VALUES = 1_000
#: Characters of one value, name or link type.
MAX_VALUE = 10_000

#: What the name begins with, in lower case: the kind of item it belongs to.
KINDS = {
    "og": "opengraph",
    "article": "opengraph",
    "book": "opengraph",
    "fb": "opengraph",
    "music": "opengraph",
    "product": "opengraph",
    "profile": "opengraph",
    "video": "opengraph",
    "twitter": "twitter",
    "dc": "dublin-core",
    "dcterms": "dublin-core",
}


class MetaItem(msgspec.Struct, frozen=True):
    """What a page says of itself in one such vocabulary."""

    kind: str
    """`opengraph`, `twitter`, `dublin-core`, `meta` or `link`."""
    values: dict[str, list[str]]
    """By name as the page writes it, such as `og:title`, `DC.creator`, `description`; links by link type, such as `canonical`."""


def meta_items(tags: Iterable[Tag], base: str, rules: Collection[str]) -> list[MetaItem]:
    """The items of a page, in the order in which they begin.

    Args:
        tags: its `meta` and `link` elements, and others, which say nothing here.
        base: URL that links are resolved against.
        rules: what is left out (:mod:`gossamer.rdf.filtering`).
    """
    found: dict[str, dict[str, list[str]]] = {}
    count = 0
    folder = base[: base.partition("?")[0].rfind("/") + 1]
    for tag in tags:
        if tag.name != b"meta" and tag.name != b"link":
            continue
        said = _remembered(tag.name, tag.raw) if len(tag.raw) <= MAX_REMEMBERED else _said(tag)
        for kind, name, rule, value in said:
            if rule in rules:
                continue
            if count >= MAX_VALUES:
                return [MetaItem(*item) for item in found.items()]
            count += 1
            if kind == "link":
                # Pages of one folder have most of their links in common, so these are resolved once.
                value = resolved(value, base if value[0] in "?#" else folder)[:MAX_VALUE]  # noqa: PLW2901
            found.setdefault(kind, {}).setdefault(name, []).append(value)
    return [MetaItem(*item) for item in found.items()]


#: Kind of item, name in it, the rule that leaves it out, and the value.
_Said = tuple[tuple[str, str, str, str], ...]


def _said(tag: Tag) -> _Said:
    """What one element says. A link may have several types."""
    attributes = tag.attributes
    if tag.name == b"link":
        # A link without an address is none; one with `property` or `itemprop` belongs to RDFa and microdata.
        href = attributes.get("href", "").strip("\t\n\f\r ")[:MAX_VALUE]
        if not href:
            return ()
        types = dict.fromkeys(attributes.get("rel", "")[:MAX_VALUE].lower().split())
        return tuple(("link", one, one, href) for one in types)
    name = (attributes.get("property") or attributes.get("name") or "").strip()[:MAX_VALUE]
    if not name or "content" not in attributes:
        return ()
    known = KINDS.get(name.replace(".", ":").partition(":")[0].lower()) if (":" in name or "." in name) else None
    if known is None and "name" not in attributes:
        return ()  # a property of a vocabulary that only RDFa tells apart
    return ((known or "meta", name, f"meta:{name.lower()}", attributes["content"][:MAX_VALUE]),)


@lru_cache(maxsize=4_096)
def _remembered(name: bytes, raw: bytes) -> _Said:
    return _said(Tag(name, raw, 0, 0, 0))
