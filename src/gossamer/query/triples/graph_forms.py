"""Graphs in the forms that other programs read: N-Quads, Turtle, JSON-LD and RDF/XML, written bit by bit.

Place in the flow: what CONSTRUCT and DESCRIBE answer with, and what `gossamer export` writes of a whole store.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, islice
from typing import TextIO

import pyoxigraph as oxigraph

from gossamer.query.triples.cleaning import CleanText
from gossamer.query.triples.questions import prefixes
from gossamer.rdf.writing import used_prefixes

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

    Raises:
        OSError: it cannot be written.
    """
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
