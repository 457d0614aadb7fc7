"""The elements of a head without a tree: out of the tags that the skim took one by one.

OpenGraph's `property` stands on much of the web, and for most of those pages it is all there is: making a tree, be it of the
head alone, costs more than reading it. What is not plain is left to the tree.
"""

import re

from gossamer.rdf.nodes import Element
from gossamer.reading.document import Document
from gossamer.reading.markup import SPACE, TAG, attributes, resolved

_HEAD = re.compile(rb"<head(?=[%s/>])" % SPACE, re.IGNORECASE)
# What may stand before a head that is one, besides `html`.
_NOTHING = re.compile(rb"[%(s)s]*(?:<!doctype[^<>]*>[%(s)s]*)?" % {b"s": SPACE}, re.IGNORECASE)
#: Elements whose text may be a literal; other tags of a head have none, or are scripts and styles.
_TEXT = frozenset([b"title", b"style", b"script", b"noframes"])


class _RawText:
    """What stands in an element that has nothing but text."""

    __slots__ = ("_has_references", "_raw")

    def __init__(self, raw: bytes, *, has_references: bool) -> None:
        self._raw = raw
        self._has_references = has_references

    def text(self) -> str:
        return resolved(self._raw) if self._has_references else self._raw.decode("utf-8", "replace")

    @property
    def inner_html(self) -> str:
        return self._raw.decode("utf-8", "replace")


def head_elements(document: Document) -> list[Element] | None:
    """The elements of a page's head, and `html`; nothing where the tags do not show plainly what a tree would hold."""
    markup, skim = document.markup, document.skim
    elements: list[Element] = []
    root = _RawText(b"", has_references=False)
    end_of_root = -1
    for tag in skim.tags:
        if tag.start >= skim.head_end:
            break
        if tag.name == b"html":
            if elements:
                return None
            elements.append((0, "html", tag.attributes, root))
            end_of_root = tag.end
            continue
        if not elements:
            elements.append((0, "html", {}, root))
        content = root
        if tag.name in _TEXT:
            content = _RawText(markup[tag.end : tag.text_end], has_references=tag.name == b"title")
        elements.append((2, tag.name.decode(), tag.attributes, content))
    found = _HEAD.search(markup, 0, skim.head_end)
    if found is not None:
        head = TAG.match(markup, found.start())
        before = markup[max(end_of_root, 0) : found.start()]
        if head is None or _NOTHING.fullmatch(before) is None or _HEAD.search(markup, head.end(), skim.head_end):
            return None  # it may stand in a comment or a script
        elements.insert(1 if elements else 0, (1, "head", attributes(head["attributes"]), root))
    return elements
