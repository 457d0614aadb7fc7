"""XHTML: pages that are XML, rewritten as the HTML that says the same, so that everything behind reads one language.

Place in the flow: :class:`~gossamer.documents.document.Document` calls :func:`as_html` on the text of a page of the type
`application/xhtml+xml`; the process stage calls :func:`type_of_xml` to know XHTML that is sent as plain XML. A document that is
not well-formed stays as it is, and is read as HTML.

The parser is expat, without a DTD: nothing is fetched, and a page that declares anything of its own (entities, attributes) is
refused at its DOCTYPE and read as HTML, so that no entity is ever expanded (fault 60). The names that HTML has for characters
are resolved where a public DOCTYPE of XHTML stands, as browsers do. Input and output are bounded, and the work is linear.
"""

import re
from html.entities import html5
from xml.parsers import expat

from gossamer.documents.charset import of_mark, of_units, to_utf8
from gossamer.documents.markup import RAW, VOID
from gossamer.values.media_type import XHTML

#: Bytes in which the root of XHTML is looked for: a DOCTYPE and a few comments come before it.
ROOT_BYTES = 4_096

#: Bytes of HTML that are made at most, twice the longest page that is read: only attacks grow by more.
MAX_MADE = 32 << 20
#: Characters of the longest name of a namespace: the parser writes it out for each element in it.
MAX_NAMESPACE = 200

_NAMESPACE = "http://www.w3.org/1999/xhtml"
_FOREIGN = frozenset({"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"})
_PREFIXES = {"http://www.w3.org/1999/xlink": "xlink:", "http://www.w3.org/XML/1998/namespace": "xml:"}

_VOIDS = frozenset(name.decode() for name in VOID)
#: HTML elements whose tags are text, and those of them whose text HTML takes as it is. XML may have elements in them, HTML cannot.
_TEXT = frozenset(name.decode() for name in RAW) | {"plaintext"}
_RAW = _TEXT - {"title", "textarea"}

#: DOCTYPEs with which browsers know the names of characters (HTML, 14.2).
_PUBLIC = re.compile(rb"<!DOCTYPE\s++\S++\s++PUBLIC\s++[\"']-//(?:W3C//DTD (?:XHTML|MathML)|WAPFORUM//DTD XHTML)")
# A name, but not where it is none: possessive, or to the end of the page.
_NAMED = re.compile(
    rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|&([A-Za-z][A-Za-z0-9]*+);", re.DOTALL
)
_OF_XML = frozenset([b"amp", b"lt", b"gt", b"quot", b"apos"])
_ROOT = re.compile(
    rb"\s*+(?:<\?[^>]*+>\s*+|<!--.*?-->\s*+|<!DOCTYPE[^>\[]*+(?:\[[^\]]*+\]\s*+)?>\s*+)*+"
    rb"<(?:[A-Za-z_][\w.-]*+:)?html(?=[\s>/])[^>]*?=\s*+[\"']http://www\.w3\.org/1999/xhtml[\"']",
    re.DOTALL,
)


def type_of_xml(content: bytes, mime: str) -> str:
    """The media type of a document that is XML: `application/xhtml+xml` where its root is that of XHTML, otherwise `mime`.
    `content`: its beginning, in any encoding; `mime`: one of :data:`~gossamer.values.media_type.XML_TYPES`."""
    head = content[:ROOT_BYTES]
    return XHTML if _ROOT.match(to_utf8(head, of_mark(head) or of_units(head) or "utf-8")) else mime


def as_html(markup: bytes) -> bytes:
    """The same page in HTML; the page itself where it is no well-formed XML, or declares anything."""
    try:
        return _Rewriting().run(numbered(markup))
    except (expat.ExpatError, NotXhtml):
        return markup


def numbered(markup: bytes) -> bytes:
    """The same page with characters by their numbers, where its DOCTYPE gives them the names that HTML has for them. Raises
    NotXhtml: a name is none of these."""
    return _NAMED.sub(_by_number, markup) if _PUBLIC.search(markup[:ROOT_BYTES]) else markup


class NotXhtml(Exception):
    """The page is read as HTML."""


def _by_number(match: re.Match[bytes]) -> bytes:
    """A character by its number instead of its name."""
    name = match[1]
    if name is None or name in _OF_XML:
        return match[0]
    characters = html5.get(f"{name.decode()};")
    if characters is None:
        raise NotXhtml
    return b"".join(b"&#%d;" % ord(character) for character in characters)


class _Rewriting:
    """One page on its way through the parser."""

    def __init__(self) -> None:
        self._made = bytearray(b"<!DOCTYPE html>")
        self._within: list[str] = []
        """The element whose text is written, where its tags cannot be; and those in it."""
        self._is_bare: bool | None = None
        """The root is `html` without a namespace, as pages have it that no browser shows: its elements are HTML's."""

    def run(self, markup: bytes) -> bytes:
        """The page in HTML. Raises ExpatError: it is not well-formed; NotXhtml: it declares something, or is no page."""
        parser = expat.ParserCreate("utf-8", " ")
        parser.buffer_text = parser.specified_attributes = parser.ordered_attributes = True
        parser.StartDoctypeDeclHandler = lambda _name, _system, _public, declares: self._refuse(bool(declares))
        parser.StartNamespaceDeclHandler = lambda _prefix, name: self._refuse(len(name or "") > MAX_NAMESPACE)
        parser.SkippedEntityHandler = lambda _name, _is_parameter: self._refuse(True)
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.Parse(markup, True)
        return bytes(self._made)

    @staticmethod
    def _refuse(is_refused: bool) -> None:
        if is_refused:
            raise NotXhtml

    def _write(self, text: str) -> None:
        self._made += text.encode()
        self._refuse(len(self._made) > MAX_MADE)

    def _named(self, expanded: str) -> str:
        """The name that an element has in HTML; one with a colon, which HTML has not, where it is none of HTML's."""
        namespace, _, name = expanded.rpartition(" ")
        if self._is_bare is None:
            self._is_bare = expanded == "html"
        if namespace in _FOREIGN:
            return name
        is_html = namespace == _NAMESPACE or (self._is_bare and not namespace)
        return name if is_html and name == name.lower() else f"x:{name}"

    def _start(self, expanded: str, attributes: list[str]) -> None:
        name = self._named(expanded)
        if self._within:
            self._within.append(name)
            return
        written = [f"<{name}"]
        for place in range(0, len(attributes), 2):
            namespace, _, key = attributes[place].rpartition(" ")
            prefix = _PREFIXES.get(namespace) if namespace else ""
            if prefix is not None and (prefix or key == key.lower() or expanded.partition(" ")[0] in _FOREIGN):
                value = attributes[place + 1].replace("&", "&amp;").replace('"', "&quot;")
                written.append(f' {prefix}{key}="{value}"')
        self._write("".join([*written, ">"]))
        if name in _TEXT and expanded.partition(" ")[0] not in _FOREIGN:
            self._within.append(name)

    def _end(self, expanded: str) -> None:
        if self._within:
            self._within.pop()
            if self._within:
                return
        name = self._named(expanded)
        if name not in _VOIDS or expanded.partition(" ")[0] in _FOREIGN:
            self._write(f"</{name}>")

    def _text(self, text: str) -> None:
        if self._within and self._within[0] in _RAW:
            self._write(text.replace("<", "< "))  # begins no tag, and no style sheet or script says anything by it
        elif len(self._within) < 2:
            self._write(text.replace("&", "&amp;").replace("<", "&lt;"))
