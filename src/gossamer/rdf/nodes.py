"""The elements of a page in document order, out of the HTML parser's tree or out of XML: what the readers run over.

Each element comes with its depth, so that a reader knows where the ones before it ended. XML is read by expat without a
DTD: nothing is fetched, no entity is expanded, and a page that declares its own is refused.
"""

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from html.entities import html5
from typing import TYPE_CHECKING, Protocol
from xml.parsers import expat

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

#: Open elements at once that are taken of XML; the HTML parser has a limit of its own before it.
MAX_DEPTH = 5_000
#: Elements of one XML page: as many as of an HTML page that is parsed.
MAX_ELEMENTS = 150_000


class Content(Protocol):
    """What stands in an element: a node of the parser's tree is one, and so is :class:`XmlContent`."""

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
    """The elements of a parsed page that have attributes, and those without that end one before them: what stands behind an
    element must not be taken for a part of it. What stands in `template` is not among them."""
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


class XmlContent:
    """Content of an element of XML: pieces of text, elements, and nothing else."""

    __slots__ = ("attributes", "name", "pieces")

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.attributes = attributes
        self.pieces: list[str | XmlContent] = []

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
        """The tag, declaring namespaces known around that it does not declare itself."""
        known = {"xmlns" + (f":{prefix}" if prefix else ""): iri for prefix, iri in sorted(namespaces.items())}
        written = "".join(
            f' {name}="{escape(value)}"' for name, value in (self.attributes | known | self.attributes).items()
        )
        return f"<{self.name}{written}>"


class _XmlReading:
    """One page on its way through expat."""

    def __init__(self) -> None:
        self.elements: list[Element] = []
        self._open: list[XmlContent] = []
        self._parser = parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.specified_attributes = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.SkippedEntityHandler = self._skipped
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text

    def run(self, markup: bytes) -> list[Element]:
        self._parser.Parse(markup, True)
        return self.elements

    @staticmethod
    def _doctype(_name: str, _system: str | None, _public: str | None, has_declarations: int) -> None:
        if has_declarations:
            raise NotXml("it declares entities or attributes")

    def _skipped(self, name: str, _is_parameter: int) -> None:
        self._text(html5.get(f"{name};", "\ufffd"))

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= MAX_DEPTH or len(self.elements) >= MAX_ELEMENTS:
            raise NotXml("it has too many elements")
        content = XmlContent(name, attributes)
        self.elements.append((len(self._open), name.rpartition(":")[2], attributes, content))
        if self._open:
            self._open[-1].pieces.append(content)
        self._open.append(content)

    def _end(self, _name: str) -> None:
        self._open.pop()

    def _text(self, text: str) -> None:
        if self._open:
            self._open[-1].pieces.append(text)


def xml_elements(markup: bytes) -> Iterable[Element]:
    """The elements of a page of XML.

    Args:
        markup: well-formed UTF-8.

    Raises:
        NotXml: it cannot be read as XML.
    """
    try:
        return _XmlReading().run(markup)
    except expat.ExpatError as error:
        raise NotXml(str(error)) from None
