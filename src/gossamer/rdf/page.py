"""The structured data of one page.

Place in the flow: `gossamer rdf` and `gossamer inspect` call :func:`structured_data` on a document; so does whoever else
wants a page's triples. It decides what the page can hold, reads that, and nothing more.
"""

import re
from collections import Counter
from collections.abc import Iterable

import msgspec

from gossamer.model import charset
from gossamer.model.document import Document
from gossamer.model.visit import XHTML
from gossamer.model.xhtml import NotXhtml, numbered
from gossamer.rdf.nodes import Element, NotXml, html_elements, xml_elements
from gossamer.rdf.patterns import copy_patterns, expand
from gossamer.rdf.rdfa import Host, Reader
from gossamer.rdf.terms import Gathered, Triple, Warned
from gossamer.rdf.vocabularies import VOCABULARIES

_XHTML1 = re.compile(rb"<!DOCTYPE[^>]*-//W3C//DTD XHTML")
#: Bytes in which a DOCTYPE is looked for.
_HEAD = 4_096


class StructuredData(msgspec.Struct, frozen=True):
    """What a page says in triples, and what was not understood or left out."""

    triples: list[Triple]
    warnings: list[Warned]
    """The first of them, with words."""
    counts: Counter[str]
    """All warnings, and what was left out, by kind."""


def structured_data(document: Document, *, expanding: bool = False) -> StructuredData:
    """The triples of a page.

    Args:
        document: HTML or XHTML.
        expanding: add what bundled vocabularies say of the names that the page uses.

    Raises:
        ParseSkipped: the page would cost the parser too much.
    """
    gathered = Gathered()
    host, elements = elements_of(document, gathered)
    language = document.response.header("content-language")
    reader = Reader(
        document.base,
        host,
        gathered,
        language=language if "," not in language else "",
        has_namespaces=b"xmlns:" in document.markup or host is not Host.HTML,
    )
    reader.read(elements)
    copy_patterns(gathered)
    if expanding:
        expand(gathered, VOCABULARIES)
    return StructuredData(list(gathered.triples), gathered.warnings, gathered.counts)


def elements_of(document: Document, gathered: Gathered) -> tuple[Host, Iterable[Element]]:
    """The elements of a page and the language they are in: XML where it is well-formed XHTML, HTML otherwise.

    Raises:
        ParseSkipped: the page would cost the HTML parser too much.
    """
    if document.mime == XHTML:
        text = charset.to_utf8(document.content, document.charset)
        try:
            host = Host.XHTML1 if _XHTML1.search(text[:_HEAD]) else Host.XHTML5
            return host, xml_elements(numbered(text))
        except (NotXml, NotXhtml) as error:
            gathered.warn("DocumentError", f"no XML, read as HTML: {error}")
    return Host.HTML, html_elements(document.tree)
