"""What expressions ask of a whole page and no stage puts into the visit: its text, its keywords, the types of its things.

Place in the flow: :mod:`gossamer.expressions.facts` reads them at the gates `expand` and `store`. They are made of the body when
the first expression asks, and kept for the page that was asked about last: its gates are asked one after the other. Whoever has
read the page just before hands over its document with :func:`keep_document`.
"""

from contextlib import suppress
from functools import cached_property

from gossamer.model.errors import ReadApart
from gossamer.model.visit import HTML_TYPES, Visit
from gossamer.reading.document import Document
from gossamer.reading.keywords import keywords
from gossamer.reading.text import all_text

#: The facts that are made here.
OF_PAGES = ("text", "keywords", "types")

#: What says of a thing that it is of a type.
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


class PageFacts:
    """The facts of one page, each made when it is asked for."""

    def __init__(self, visit: Visit, document: Document | None = None) -> None:
        """No fact is made yet.

        Args:
            visit: of the page.
            document: the one of this visit, where somebody has read it already. Its text is its prose.
        """
        self.visit = visit
        self._document = document or Document(visit, holds_up=True)

    @property
    def _is_html(self) -> bool:
        return self.visit.media_type in HTML_TYPES

    @cached_property
    def text(self) -> str:
        """Every word that a reader sees, a block on each line; of plain text the text; empty for all else. Nothing is cut."""
        if self._is_html:
            return all_text(self._document.markup, len(self._document.markup))
        if not self.visit.media_type.startswith("text/"):
            return ""
        return self._document.markup.decode("utf-8", "replace")

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        """The weightiest first (:mod:`gossamer.reading.keywords`): of the title and of the prose without menus."""
        prose = self._document.text if self._is_html else self.text
        return keywords(self.visit.title, prose)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The types of the things that the page describes in RDFa, JSON-LD and microdata, as IRIs."""
        triples = self.visit.triples
        if not triples and self._is_html:
            from gossamer.rdf.page import structured_data  # few crawls ask

            # A page that is too dear to be read here has triples if they are asked for, and says nothing otherwise.
            with suppress(ReadApart):
                triples = tuple(structured_data(self._document, rules=()).triples)
        return tuple({triple[2]: None for triple in triples if triple[1] == RDF_TYPE})


class _Last:
    """The page that was asked about last. Another gets its place whole, so that threads never mix two pages."""

    def __init__(self) -> None:
        self._facts: PageFacts | None = None

    def of(self, visit: Visit) -> PageFacts:
        """The facts of a page. Later stages hand on copies of a visit, with the same answer."""
        facts = self._facts
        if facts is None or facts.visit.response is not visit.response or facts.visit.title != visit.title:
            facts = self._facts = PageFacts(visit)
        return facts

    def keep(self, visit: Visit, document: Document) -> None:
        """Make the facts of this page, when they are asked for, of a document that was read already: it is decoded once."""
        self._facts = PageFacts(visit, document)


_last = _Last()
facts_of = _last.of
keep_document = _last.keep
