"""Triples as text for programs, and as lists of things for people."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec
import pyoxigraph as oxigraph

from gossamer.rdf.names import MetaItem
from gossamer.rdf.page import StructuredData
from gossamer.rdf.terms import STRING, TYPE, clean_iri
from gossamer.rdf.vocabularies import PREFIXES
from gossamer.values.visit import Triple

# Triples as text: N-Quads, Turtle and JSON-LD, written by pyoxigraph.
#
# What a stranger wrote hides, reorders and commands nothing on a terminal: characters that cannot be seen are escaped.


#: By the word that a person gives.
FORMATS = {
    "nquads": oxigraph.RdfFormat.N_QUADS,
    "turtle": oxigraph.RdfFormat.TURTLE,
    "jsonld": oxigraph.RdfFormat.JSON_LD,
}


_LAYOUT = {ord(character): " " for character in "\n\r\t"}
_HIDDEN = re.compile("[^\x00-\x7e]")


def quads(triples: Iterable[Triple], graph: str = "", left_out: Counter[str] | None = None) -> Iterator[oxigraph.Quad]:
    """Triples as pyoxigraph has them.

    Args:
        graph: URL of the page, which names the graph that they are in; in the default graph without.
        left_out: counts those with a name that is no IRI, which no format can hold.
    """
    place = oxigraph.NamedNode(clean_iri(graph)) if graph else oxigraph.DefaultGraph()
    for subject, predicate, value, datatype, language in triples:
        try:
            if not datatype:
                term: oxigraph.NamedNode | oxigraph.BlankNode | oxigraph.Literal = _resource(value)
            elif language:
                term = oxigraph.Literal(value, language=language)
            else:
                term = oxigraph.Literal(value, datatype=oxigraph.NamedNode(datatype))
            yield oxigraph.Quad(_resource(subject), oxigraph.NamedNode(predicate), term, place)
        except ValueError:
            if left_out is not None:
                left_out["not_an_iri"] += 1


def _resource(name: str) -> oxigraph.NamedNode | oxigraph.BlankNode:
    return oxigraph.BlankNode(name[2:]) if name.startswith("_:") else oxigraph.NamedNode(name)


def used_prefixes(rows: Iterable[oxigraph.Quad], known: Mapping[str, str] = PREFIXES) -> dict[str, str]:
    """Those prefixes by which names in some quads begin: forty lines of others would hide a short graph.

    Args:
        known: prefix -> IRI, which ends in a hash or a slash.
    """
    begun: set[str] = set()
    for quad in rows:
        value = quad.object
        # That a text is one is not written.
        if isinstance(value, oxigraph.Literal) and not value.language and value.datatype.value != STRING:
            value = value.datatype
        for term in (quad.subject, quad.predicate, value):
            if isinstance(term, oxigraph.NamedNode):
                name = term.value
                begun.add(name[: max(name.rfind("#"), name.rfind("/")) + 1])
    return {prefix: iri for prefix, iri in known.items() if iri in begun}


def serialized(triples: Iterable[Triple], form: str, graph: str, left_out: Counter[str] | None = None) -> bytes:
    """Triples in one of :data:`FORMATS`.

    Args:
        graph: URL of the page, which formats with graphs name.
        left_out: as for :func:`quads`.
    """
    named = graph if form != "turtle" else ""
    rows = list(quads(triples, named, left_out))
    written = _written(rows, form, used_prefixes(rows) if form == "turtle" else None)
    if written.isascii() or written.translate(_LAYOUT).isprintable():
        return written.encode()
    # Escapes are allowed in full IRIs and in texts, but not in names with a prefix.
    return _HIDDEN.sub(_json if form == "jsonld" else _turtle, _written(rows, form, None)).encode()


def _written(rows: list[oxigraph.Quad], form: str, prefixes: dict[str, str] | None) -> str:
    chosen = (quad.triple for quad in rows) if form == "turtle" else rows
    return (oxigraph.serialize(chosen, format=FORMATS[form], prefixes=prefixes) or b"").decode()


def _turtle(match: re.Match[str]) -> str:
    character = match[0]
    return character if character.isprintable() else f"\\U{ord(character):08X}"


def _json(match: re.Match[str]) -> str:
    character = match[0]
    return character if character.isprintable() else json.dumps(character)[1:-1]


# The structured data of a page by subject, as `gossamer inspect` shows it.


class Thing(msgspec.Struct, frozen=True):
    """All that a page says of one subject."""

    kind: str
    """Always `triples`."""
    subject: str
    """An IRI, or a blank node, which begins with `_:`."""
    types: list[str]
    properties: dict[str, list[str]]
    """IRIs and texts, by IRI of the property."""


def told(data: StructuredData) -> list[MetaItem | Thing]:
    """The items of a page, then its subjects in the order in which they come."""
    things: dict[str, Thing] = {}
    for subject, predicate, value, _, _ in data.triples:
        thing = things.get(subject)
        if thing is None:
            thing = things[subject] = Thing("triples", subject, [], {})
        if predicate == TYPE:
            thing.types.append(value)
        else:
            thing.properties.setdefault(predicate, []).append(value)
    return [*data.items, *things.values()]
