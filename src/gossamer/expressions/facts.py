"""Facts that expressions ask for: parts of a URL, properties of a visit, and the text, keywords and types of a whole page.

Place in the flow: predicates read them at every gate. No stage puts the facts of a whole page into the visit: they are made of the
body when the first expression asks at `expand` or `store`, and kept for the page that was asked about last, since its gates are
asked one after the other. A processor that has just read the page hands over its document with :func:`keep_document`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from gossamer.documents.document import Document
from gossamer.documents.terms import keywords
from gossamer.documents.text import all_text
from gossamer.expressions.contract import GATES, Gate
from gossamer.values.errors import ReadApart
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.url import path_of
from gossamer.values.visit import Visit

# -- parts of a canonical URL: slices of the text, never a second parser (fault 34)


def path(url: str) -> str:
    """The path without the query; `/` where the URL has none."""
    return path_of(url).partition("?")[0]


def query(url: str) -> str:
    """The query without its `?`; empty without one."""
    return url.partition("?")[2]


def parameters(url: str) -> list[str]:
    """The parameters of the query in order, each as `name=value` or `name`."""
    text = query(url)
    return [one for one in text.split("&") if one] if text else []


def extension(url: str) -> str:
    """The text behind the last dot of the last segment, in lower case; empty without one. A name's leading dot is none."""
    name = path(url).rpartition("/")[2]
    stem, dot, last = name.rpartition(".")
    return last.lower() if dot and stem else ""


def segments(url: str) -> list[str]:
    """The segments of the path that are not empty."""
    return [one for one in path(url).split("/") if one]


def repeats(url: str) -> int:
    """How often the most frequent segment of the path occurs; numbers do not count, since dates and trees repeat them."""
    counts = Counter(one for one in segments(url) if not one.isdecimal())
    return max(counts.values(), default=0)


#: The facts that are made here.
OF_PAGES = ("text", "keywords", "types")

#: The property that tells the type of a thing.
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


class PageFacts:
    """The facts of one page, each made when it is asked for."""

    def __init__(self, visit: Visit, document: Document | None = None) -> None:
        """No fact is made yet. `document` is the one of this visit, where it was read already; its text is its prose."""
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
        """The weightiest first (:mod:`gossamer.documents.terms`): of the title and of the prose without menus."""
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

# -- facts of each kind of thing that a gate judges

Read = Callable[[Any], Any]

_OF_LINK: Mapping[str, Read] = {
    "url": lambda link: link.url,
    "relation": lambda link: link.relation,
    "anchor": lambda link: link.anchor,
    "nofollow": lambda link: link.nofollow,
}

_OF_TASK: Mapping[str, Read] = {
    "url": lambda task: task.url,
    "depth": lambda task: task.depth,
    "relation": lambda task: task.relation,
    "label": lambda task: task.request.label if task.request is not None else "",
}

_OF_HEAD: Mapping[str, Read] = {
    "url": lambda visit: visit.task.url,
    "depth": lambda visit: visit.task.depth,
    "relation": lambda visit: visit.task.relation,
    "label": lambda visit: visit.task.request.label if visit.task.request is not None else "",
    "status": lambda visit: visit.response.status,
    "mime": lambda visit: visit.media_type,
}

_OF_ANSWER: Mapping[str, Read] = {
    **_OF_HEAD,
    "outcome": lambda visit: str(visit.response.outcome),
    "size": lambda visit: len(visit.response.body),
}

_OF_DOCUMENT: Mapping[str, Read] = {
    **_OF_ANSWER,
    "title": lambda visit: visit.title,
    "language": lambda visit: visit.language,
    "headers": lambda visit: visit.response.headers,
    # A filter may have taken some away; the page has them all.
    "links": lambda visit: len(visit.links) + len(visit.refused),
    "text": lambda visit: facts_of(visit).text,
    "keywords": lambda visit: facts_of(visit).keywords,
    "types": lambda visit: facts_of(visit).types,
}

#: Gate -> fact -> how it is read from what is judged there: a `Link` at `follow`, a `Task` or a `Visit` elsewhere. The depth
#: of links is a matter of their page: the judge of links puts it into the expression first.
READS: Mapping[Gate, Mapping[str, Read]] = {
    "schedule": _OF_TASK,
    "fetch": _OF_TASK,
    "body": _OF_HEAD,
    "parse": _OF_ANSWER,
    "expand": _OF_DOCUMENT,
    "follow": {**_OF_LINK, "depth": lambda _: 0},
    "store": _OF_DOCUMENT,
}


def gates_of(fact: str) -> list[str]:
    """The gates where a fact is known."""
    return [gate for gate in GATES if fact in READS[gate]]
