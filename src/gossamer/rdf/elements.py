"""The elements of a page in document order: out of the parser's tree, out of XML, or out of the tags of a head alone.

Place in the flow: the readers of RDFa, microdata and `meta` run over them. Each element comes with its depth, so that a reader
knows where the ones before it ended. XML is read by expat without a DTD: nothing is fetched, no entity is expanded, and a page
that declares its own is refused.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from html.entities import html5
from typing import TYPE_CHECKING, Protocol
from xml.parsers import expat

import msgspec

from gossamer.documents.document import Document
from gossamer.documents.markup import SPACE, TAG, attributes
from gossamer.documents.markup import resolved as characters
from gossamer.rdf.terms import (
    HTML_LITERAL,
    XML_LITERAL,
    XSD,
    literal,
)

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

#: Open elements at once that are taken of XML; the HTML parser has a limit of its own before it.
MAX_DEPTH = 5_000
#: Elements of one XML page: as many as of an HTML page that is parsed.
MAX_ELEMENTS = 150_000


class Content(Protocol):
    """The content of an element: a node of the parser's tree is one, and so is :class:`XmlContent`."""

    def text(self) -> str:
        """Its text, with that of the elements in it."""

    @property
    def inner_html(self) -> str | None:
        """Its markup."""


#: Depth (0 for the root), name in lower case, attributes, content.
Element = tuple[int, str, Mapping[str, str | None], Content]


class NotXml(Exception):
    """The page is no well-formed XML, declares something of its own, or is too large."""


def html_elements(tree: "LexborHTMLParser") -> Iterator[Element]:
    """The elements of a parsed page that have attributes, and those without that end one before them: text behind an
    element must not be taken for a part of it. Elements in a `template` are not among them."""
    root = tree.root
    if root is None:
        return
    open_elements: list[int] = []
    pop, push = open_elements.pop, open_elements.append
    last = 0
    for node in root.traverse(include_text=False):
        parent = node.parent
        above = parent.mem_id if parent is not None else 0
        while open_elements and open_elements[-1] != above:
            pop()
        attributes = node.attributes
        depth = len(open_elements)
        if attributes or depth <= last:
            last = depth
            yield depth, node.tag or "", attributes, node
        push(node.mem_id)


class XmlContent(msgspec.Struct):
    """Content of an element of XML: pieces of text, elements, and nothing else."""

    name: str
    attributes: dict[str, str]
    pieces: list["str | XmlContent"] = []

    def text(self) -> str:
        texts: list[str] = []
        waiting: list[str | XmlContent] = [self]
        while waiting:
            piece = waiting.pop()
            if isinstance(piece, str):
                texts.append(piece)
            else:
                waiting.extend(reversed(piece.pieces))
        return "".join(texts)

    @property
    def inner_html(self) -> str:
        return self.markup({})

    def markup(self, namespaces: Mapping[str, str]) -> str:
        """Its markup, in which the outermost elements declare these namespaces, by prefix."""
        written: list[str] = []
        # Each piece with the end tag that is due when all in it is written; without recursion, for pages may nest deeply.
        waiting: list[tuple[str | XmlContent, Mapping[str, str]] | str] = [
            (piece, namespaces) for piece in reversed(self.pieces)
        ]
        while waiting:
            following = waiting.pop()
            if isinstance(following, str):
                written.append(following)
                continue
            piece, known = following
            if isinstance(piece, str):
                written.append(escape(piece, quote=False))
                continue
            written.append(piece.start_tag(known))
            waiting.append(f"</{piece.name}>")
            waiting.extend((inner, {}) for inner in reversed(piece.pieces))
        return "".join(written)

    def start_tag(self, namespaces: Mapping[str, str]) -> str:
        known = {"xmlns" + (f":{prefix}" if prefix else ""): iri for prefix, iri in sorted(namespaces.items())}
        written = "".join(
            f' {name}="{escape(value)}"' for name, value in (self.attributes | known | self.attributes).items()
        )
        return f"<{self.name}{written}>"


def xml_elements(markup: bytes) -> Iterable[Element]:
    """The elements of a page of XML. Raises NotXml: it cannot be read as XML."""
    elements: list[Element] = []
    opened: list[XmlContent] = []

    def doctype(_name: str, _system: str | None, _public: str | None, has_declarations: int) -> None:
        if has_declarations:
            raise NotXml("it declares entities or attributes")

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(opened) >= MAX_DEPTH or len(elements) >= MAX_ELEMENTS:
            raise NotXml("it has too many elements")
        content = XmlContent(name, attributes)
        elements.append((len(opened), name.rpartition(":")[2], attributes, content))
        add(content)
        opened.append(content)

    def add(piece: str | XmlContent) -> None:
        if opened:
            opened[-1].pieces.append(piece)

    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.specified_attributes = True
    parser.StartDoctypeDeclHandler = doctype
    parser.SkippedEntityHandler = lambda name, _: add(html5.get(f"{name};", "\ufffd"))
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: opened.pop()
    parser.CharacterDataHandler = add
    try:
        parser.Parse(markup, True)
    except expat.ExpatError as error:
        raise NotXml(str(error)) from None
    return elements


# The elements of a head without a tree: out of the tags that the skim took one by one. OpenGraph's `property` stands on much of
# the web, and for most of those pages it is all there is: making a tree, be it of the head alone, costs more than reading it.
# Markup that is not plain is left to the tree.

_HEAD = re.compile(rb"<head(?=[%s/>])" % SPACE, re.IGNORECASE)
# Markup that may stand before a head that is one, besides `html`.
_NOTHING = re.compile(rb"[%(s)s]*(?:<!doctype[^<>]*>[%(s)s]*)?" % {b"s": SPACE}, re.IGNORECASE)
#: Elements whose text may be a literal; other tags of a head have none, or are scripts and styles.
_TEXT = frozenset([b"title", b"style", b"script", b"noframes"])


class _RawText(msgspec.Struct):
    """The content of an element that has nothing but text."""

    raw: bytes
    has_references: bool

    def text(self) -> str:
        return characters(self.raw) if self.has_references else self.raw.decode("utf-8", "replace")

    @property
    def inner_html(self) -> str:
        return self.raw.decode("utf-8", "replace")


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


# Literals of RDFa: plain, typed, times of HTML, and markup.

#: Value, datatype and language of an object.
Value = tuple[str, str, str]

#: Datatypes whose value is the markup in the element.
MARKUP = frozenset([XML_LITERAL, HTML_LITERAL])

#: Characters of the longest time; nothing longer is looked at.
MAX_TIME = 100

_ZONE = r"(?:Z|[+-]\d\d:\d\d)?"
# HTML+RDFa 1.1, section 3.1: the first that matches is the datatype.
_TIMES = [
    (f"{XSD}{name}", re.compile(pattern))
    for name, pattern in (
        ("duration", r"-?P(?=.)(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=.)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?"),
        ("dateTime", rf"-?\d{{4,}}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?{_ZONE}"),
        ("date", rf"-?\d{{4,}}-\d\d-\d\d{_ZONE}"),
        ("time", rf"\d\d:\d\d:\d\d(?:\.\d+)?{_ZONE}"),
        ("gYearMonth", rf"-?\d{{4,}}-\d\d{_ZONE}"),
        ("gYear", rf"-?\d{{4,}}{_ZONE}"),
    )
]


def typed(text: str, datatype: str, language: str) -> Value:
    return (text, datatype, "") if datatype else literal(text, language)


def time(text: str, language: str) -> Value:
    """A literal of the first datatype of times whose form it has, or a plain one."""
    if len(text) <= MAX_TIME:
        for datatype, form in _TIMES:
            if form.fullmatch(text):
                return text, datatype, ""
    return literal(text, language)


def written(content: Content, datatype: str, namespaces: Mapping[str, str]) -> Value:
    markup = content.markup(namespaces) if isinstance(content, XmlContent) else content.inner_html
    return markup or "", datatype, ""
