"""What `meta` elements say of a page: OpenGraph, Twitter cards and Dublin Core, as items.

They are read from the tags that the skim took one by one; no tree is needed.
"""

from collections.abc import Iterable

import msgspec

from gossamer.reading.skim import Tag

#: Values of one page that are kept.
MAX_VALUES = 1_000
#: Characters of one value.
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
    """`opengraph`, `twitter` or `dublin-core`."""
    values: dict[str, list[str]]
    """By name as the page writes it, such as `og:title`, `DC.creator`."""


def meta_items(tags: Iterable[Tag]) -> list[MetaItem]:
    """The items of a page, in the order in which they begin.

    Args:
        tags: its `meta` elements.
    """
    found: dict[str, dict[str, list[str]]] = {}
    count = 0
    for tag in tags:
        attributes = tag.attributes
        name = (attributes.get("property") or attributes.get("name") or "").strip()
        kind = KINDS.get(name.replace(".", ":").partition(":")[0].lower()) if (":" in name or "." in name) else None
        if kind is None or "content" not in attributes:
            continue
        if count >= MAX_VALUES:
            break
        count += 1
        found.setdefault(kind, {}).setdefault(name, []).append(attributes["content"][:MAX_VALUE])
    return [MetaItem(kind, values) for kind, values in found.items()]
