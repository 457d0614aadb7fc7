"""The graphs of pages: how rows of the table `triples` become graphs, and the forms in which graphs are written.

A graph is named by the URL of its page, and holds what the latest visit found. Blank nodes get names that no other visit gives, so
that equal names in two pages stay two nodes where the pages are written together.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, TextIO

import msgspec
import pyoxigraph as oxigraph

from gossamer.rdf.store.questions import CleanText, prefixes
from gossamer.rdf.terms import STRING, clean_iri
from gossamer.rdf.writing import used_prefixes
from gossamer.values.instants import visit_order
from gossamer.values.visit import Triple

#: What is taken of the table, in this order.
COLUMNS = ("graph", "subject", "predicate", "object", "datatype", "language", "visit")

# What ends an IRI or a line of N-Quads: a name that holds it is left to the slow way, which judges names one by one.
_BREAKS = re.compile('[\x00-\x20<>"{}|^`\\\\]')
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
_NO_LABEL = re.compile("[^A-Za-z0-9]")


class PageGraph(msgspec.Struct, frozen=True):
    """What one visit of a page found."""

    url: str
    """Of the page; :attr:`iri` is the name of the graph."""
    visit: str
    triples: list[Triple]

    @property
    def iri(self) -> str:
        """The URL in a form that RDF takes for an IRI."""
        return clean_iri(self.url)


def newest_graphs(rows: Sequence[tuple[Any, ...]]) -> dict[str, PageGraph]:
    """What the latest visit among these rows found, by the URL of its page.

    Args:
        rows: of :data:`COLUMNS`; those of one visit follow each other.
    """
    found: dict[str, PageGraph] = {}
    for (url, of_visit), group in groupby(rows, itemgetter(0, 6)):
        visit = of_visit or ""
        before = found.get(url)
        if before is not None and visit_order(before.visit) > visit_order(visit):
            continue
        label = f"_:v{_NO_LABEL.sub('x', visit)}"
        found[url] = PageGraph(url, visit, _named_apart(group, label))
    return found


def _named_apart(rows: Iterable[tuple[Any, ...]], label: str) -> list[Triple]:
    # A comparison of two characters costs a third of a call of `startswith`, and there are millions of them.
    return [
        (
            f"{label}x{subject[2:]}" if subject[:2] == "_:" else subject,
            predicate,
            f"{label}x{value[2:]}" if value[:2] == "_:" and not datatype else value,
            datatype or "",
            language or "",
        )
        for _, subject, predicate, value, datatype, language, _ in rows
    ]


class Unwritable(ValueError):
    """A name cannot stand in N-Quads."""


def lines(triples: Iterable[Triple], place: str = "") -> Iterator[str]:
    """Triples as lines of N-Triples, or of N-Quads.

    Args:
        place: the graph, as it stands in the line: `<IRI>` and a space; nothing for N-Triples.

    Raises:
        Unwritable: a name holds what would end it. Whether it is an IRI otherwise, a parser judges.
    """
    names: dict[str, str] = {}
    known = names.get
    for subject, predicate, value, datatype, language in triples:
        first = known(subject) or _name(subject, names)
        second = known(predicate) or _name(predicate, names)
        if not datatype:
            yield f"{first} {second} {known(value) or _name(value, names)} {place}.\n"
            continue
        text = value.translate(_ESCAPES) if '"' in value or "\\" in value or "\n" in value or "\r" in value else value
        if language:
            kind = f"@{_tag(language)}"
        else:
            kind = "" if datatype == STRING else f"^^{known(datatype) or _name(datatype, names)}"
        yield f'{first} {second} "{text}"{kind} {place}.\n'


def _name(name: str, names: dict[str, str]) -> str:
    if _BREAKS.search(name) is not None:
        raise Unwritable(name)
    written = names[name] = name if name.startswith("_:") else f"<{name}>"
    return written


def _tag(language: str) -> str:
    if not language.replace("-", "").isalnum() or not language.isascii():
        raise Unwritable(language)
    return language


# Graphs in the forms that other programs read: N-Quads, Turtle, JSON-LD and RDF/XML, written bit by bit. What CONSTRUCT and
# DESCRIBE answer with, and what `gossamer export` writes of a whole store.

_FORMATS = {
    "turtle": oxigraph.RdfFormat.TURTLE,
    "nquads": oxigraph.RdfFormat.N_QUADS,
    "jsonld": oxigraph.RdfFormat.JSON_LD,
    "rdfxml": oxigraph.RdfFormat.RDF_XML,
}

# An element with a prefix and no name behind it: what pyoxigraph writes, and alone reads, where no name can be cut off.
_NAMELESS = re.compile(rb"<[\w.-]+:[ />]")

#: Quads of a graph that are looked at for the prefixes that it needs; one that is larger declares all of them.
_LOOKED_AT = 10_000

#: Those that name graphs. The others have the triples of all graphs together.
_WITH_GRAPHS = frozenset({"nquads", "jsonld"})


def write_graph(quads: Iterable[oxigraph.Quad], form: str, out: TextIO) -> Counter[str]:
    """Write quads in one of the forms; returns what the form cannot hold, by reason.
    Raises OSError: it cannot be written."""
    left_out: Counter[str] = Counter()
    if form == "rdfxml":
        quads = _nameable(quads, left_out)
    names = None
    if form == "turtle":
        quads = iter(quads)
        first = list(islice(quads, _LOOKED_AT))
        names = used_prefixes(first, prefixes()) if len(first) < _LOOKED_AT else prefixes()
        quads = chain(first, quads)
    rows = quads if form in _WITH_GRAPHS else (quad.triple for quad in quads)
    clean = CleanText(out, form)
    oxigraph.serialize(rows, clean.stream, _FORMATS[form], prefixes=names)
    clean.finish()
    return left_out


def all_quads(store: oxigraph.Store) -> Iterator[oxigraph.Quad]:
    """Everything in a store, page by page."""
    for graph in store.named_graphs():
        yield from store.quads_for_pattern(None, None, None, graph)


def _nameable(quads: Iterable[oxigraph.Quad], left_out: Counter[str]) -> Iterator[oxigraph.Quad]:
    """Those whose predicates XML can have as names of elements."""
    for quad in quads:
        if _is_name(quad.predicate.value):
            yield quad
        else:
            left_out["no_element_name"] += 1


@lru_cache(maxsize=10_000)
def _is_name(predicate: str) -> bool:
    """Whether RDF/XML that has a predicate says it again when it is read."""
    node = oxigraph.NamedNode(predicate)
    triple = oxigraph.Triple(oxigraph.NamedNode("urn:a"), node, oxigraph.NamedNode("urn:b"))
    try:
        written = oxigraph.serialize([triple], None, oxigraph.RdfFormat.RDF_XML) or b""
        return not _NAMELESS.search(written) and [
            read.predicate for read in oxigraph.parse(written, oxigraph.RdfFormat.RDF_XML)
        ] == [node]
    except (SyntaxError, ValueError):
        return False
